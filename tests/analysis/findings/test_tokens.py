"""The time that tokens take: whose measure it is, and where it is not known."""

from __future__ import annotations

import pytest
from made_traces import answer, engine, many, request

from hotspan.analysis import analyse

N = 25


def unstreamed(number, decode, *, output=11, at=None):
    """A request whose model call is not streamed, and whose engine says how long it decoded."""
    return request(number, 50 + decode, answer(0, 50 + decode, output=output), engine(10, 40, decode), at=at)


def test_slow_tokens_are_told_by_the_engine_where_the_client_does_not_know():
    """Without a stream there is no TPOT; the engine's decoding over the tokens is the time of each."""
    report = analyse(many(N, lambda k: unstreamed(k, 850)))
    (found,) = [finding for finding in report.findings if finding.id == "tpot-high"]

    assert report.generation.tpot_ns is None
    assert found.evidence["time_per_token_p50_ms"] == 85
    assert found.evidence["against"]["of_these_by_the_engine"] == N
    assert "tpot-high" not in {
        finding.id for finding in analyse(many(N, lambda k: unstreamed(k, 450))).findings
    }


def test_the_clients_time_per_token_goes_before_the_engines():
    """What reaches the client is what it waits for; no call is timed twice."""
    report = analyse(
        many(N, lambda k: request(k, 1000, answer(0, 920, ttft=20, last=920, output=11), engine(0, 20, 900)))
    )
    (found,) = [finding for finding in report.findings if finding.id == "tpot-high"]

    assert found.evidence["time_per_token_p50_ms"] == 90
    assert "of_these_by_the_engine" not in found.evidence["against"]


def test_tokens_slowed_by_concurrency_are_told_by_the_engine_too():
    """Eight answers at once decode longer than four, by the engine alone."""
    runs, number = [], 0
    for burst in range(30):
        users = (1, 4, 8)[burst % 3]
        for _ in range(users):
            number += 1
            runs.append(unstreamed(number, 100 + 50 * users, at=100_000 * burst))
    found = {finding.id: finding.evidence for finding in analyse(runs).findings}

    assert found["decode-slowed-by-concurrency"]["time_per_token_quiet_third_p50_ms"] == 30
    assert found["decode-slowed-by-concurrency"]["time_per_token_busy_third_p50_ms"] == 50
    assert found["decode-slowed-by-concurrency"]["against"]["of_these_by_the_engine"] == number


@pytest.mark.parametrize("last", [None, 950])
def test_decoding_until_the_calls_end_is_not_called_decoding(last):
    """Where the last token is not known, what follows it is in the figure, and the finding says so."""
    report = analyse(many(N, lambda k: request(k, 1000, answer(0, 1000, ttft=50, last=last))))
    (found,) = [finding for finding in report.findings if finding.id == "decode-dominates"]

    assert ("is decoding" in found.text) is (last is not None)
    assert found.evidence["against"].get("calls_without_a_last_token") == (None if last else N)
