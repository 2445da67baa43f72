"""Case 095: one group looks faster because its answers are shorter."""

from __future__ import annotations

import pytest
from made_traces import answer, many, request

from hotspan.analysis import analyse
from hotspan.exporters.reports import console, markdown
from hotspan.exporters.reports.screen import Screen

NOTE = "answers are 338 to 914 tokens long: compare the time per token (TPOT), not that of a call"


def run(number, *, tokens=(338, 914)):
    """Odd requests are of version a, even ones of b; a token takes 10 ms in both."""
    n = tokens[number % 2 == 0]
    end = 100 + 10 * (n - 1)
    call = answer(0, end, ttft=100, last=end, output=n, prompt=100)
    return request(number, end, call, attributes={"version": "ab"[number % 2 == 0]})


def test_groups_show_tokens_per_answer_and_time_per_token_and_warn():
    """The mean durations differ by far, the time per token does not; a shift of over 10 % is said."""
    report = analyse(many(10, run), by="version")
    by_version = {value: part.generation for value, part in report.groups.reports}
    text = console.render(report, Screen(width=200))

    assert {v: found.tokens.output / found.n_calls for v, found in by_version.items()} == {"a": 338, "b": 914}
    assert by_version["a"].tpot_ns.p50 == pytest.approx(by_version["b"].tpot_ns.p50)
    assert text.count("TPOT 10.0 ms") == 3
    assert NOTE in text
    assert "338 to 914 tokens" in markdown.render(report)


def test_without_streams_the_note_has_the_time_by_tokens():
    """No TPOT to compare: a call's time over its output tokens is what the spans allow."""

    def whole(number):
        n, each = ((338, 10), (914, 12))[number % 2 == 0]
        call = answer(0, each * n, output=n, prompt=100)
        return request(number, each * n, call, attributes={"version": "ab"[number % 2 == 0]})

    text = " ".join(console.render(analyse(many(10, whole), by="version"), Screen(width=200)).split())

    assert "compare the time of a call by its output tokens (10.0 ms to 12.0 ms), not that" in text


def test_answers_of_about_one_length_need_no_warning():
    """Less than 10 % apart."""
    text = console.render(analyse(many(10, lambda k: run(k, tokens=(338, 360))), by="version"), Screen())

    assert "tokens long" not in text


def test_a_mean_of_tokens_is_the_sum_over_the_calls():
    """No mean of ratios: three calls of 10 tokens and one of 100 have 32.5 tokens a call."""
    calls = [answer(0, 100, ttft=10, last=100, output=n) for n in (10, 10, 10, 100)]
    report = analyse([request(k, 100, call) for k, call in enumerate(calls, start=1)])

    assert "32.5 output tokens" in console.render(report, Screen())
