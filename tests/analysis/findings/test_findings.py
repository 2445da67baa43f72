"""A finding has figures for it, one against it and a next step, or it is not there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hotspan.analysis.findings import findings
from hotspan.analysis.model import (
    Evidence,
    GenerationSummary,
    PhaseRow,
    Report,
    RequestSummary,
    StageRow,
    Unattributed,
)
from hotspan.analysis.patterns import Asking, Patterns
from hotspan.analysis.percentiles import distribution

MS = 1_000_000


def _row(stage, share, durations=(10, 10, 10, 10), **extra):
    times = [ms * MS for ms in durations]
    return StageRow(
        stage=stage,
        n_calls=len(times),
        n_errors=0,
        n_cancelled=0,
        calls_per_request=None,
        duration_ns=distribution(times),
        busy_ns=sum(times),
        wall_ns=sum(times),
        self_ns=sum(times),
        critical_path_ns=round(share * 1e9),
        critical_path_ratio=share,
        **extra,
    )


def _first(first_ms, later_p90_ms):
    return {
        "first_call_name": "work",
        "first_call_ns": first_ms * MS,
        "later_calls_p90_ns": later_p90_ms * MS,
        "n_later_calls": 3,
    }


def _report(**parts):
    request = RequestSummary(n=200, duration_ns=distribution([100 * MS] * 200))
    return replace(Report(request=request, unattributed=Unattributed(0, 0.0)), **parts)


def _phases(**ms):
    return GenerationSummary(
        n_calls=10,
        n_attempts=10,
        status={"ok": 10},
        phases_ns={name: value * MS for name, value in ms.items()},
    )


@pytest.mark.parametrize(
    ("n_lost", "severities"),
    [
        pytest.param(0, [], id="none"),
        pytest.param(5, ["warning"], id="some"),
        pytest.param(50, ["critical"], id="many"),
    ],
)
def test_lost_spans_spoil_every_figure(n_lost, severities):
    """What the writer lost is said, and from a tenth on it is critical."""
    found = findings(_report(evidence=Evidence(n_spans=100, n_dropped_spans=n_lost)))

    assert [(finding.id, finding.severity) for finding in found] == [
        ("spans-lost", severity) for severity in severities
    ]


def test_spans_that_had_not_ended_are_another_matter_than_lost_ones():
    """Each cause has its own advice: less load on the way, or an end of the work before the program's."""
    both = findings(_report(evidence=Evidence(n_spans=96, n_dropped_spans=4, n_unended_spans=3)))
    (open_,) = findings(_report(evidence=Evidence(n_spans=1, n_dropped_spans=1, n_unended_spans=1)))

    assert [(finding.id, finding.text.split(":")[0]) for finding in both] == [
        ("spans-lost", "1 of 100 spans was lost before they were written"),
        ("spans-unended", "3 of 100 spans had not ended when their program did"),
    ]
    assert open_.severity == "critical"
    assert "load" not in open_.next_step


def test_spans_that_could_not_be_read_are_not_lost():
    """They were written: what is wrong is the writer, and the evidence says it."""
    evidence = Evidence(n_spans=100, n_invalid_spans=50, n_unfinished_spans=10, n_orphan_spans=5)

    assert findings(_report(evidence=evidence)) == ()


def test_a_stream_in_one_piece_blames_no_proxy_when_the_engine_decoded_over_time():
    """The engine's own figures are given, CPU is checked first; without them every cause is a possibility."""
    blind = replace(_phases(), n_buffered=4)
    seen = replace(
        blind,
        n_buffered_decoded=3,
        buffered_decode_ns=40.0 * MS,
        buffered_engine_wait_ns=5.0 * MS,
        buffered_ttft_ns=60.0 * MS,
    )

    (with_account,) = findings(_report(generation=seen))
    (without,) = findings(_report(generation=blind))

    assert "starved of CPU" in with_account.text
    assert with_account.next_step.index("CPU") < with_account.next_step.index("proxy")
    assert with_account.evidence == {
        "buffered_calls": 4,
        "buffered_calls_with_engine_decode": 3,
        "mean_ttft_ms": 60.0,
        "mean_engine_first_token_ms": 5.0,
        "mean_engine_decode_ms": 40.0,
        "against": {"ok_calls": 10},
    }
    assert without.next_step.startswith("Possible causes: a proxy, gateway or server")


def test_a_factor_has_three_significant_digits():
    """1991.66 times is more digits than were measured."""
    (found,) = findings(_report(stages=(_row("tool", 0.2, **_first(1991.66, 1)),)))

    assert "took 1,990 times" in found.text


def test_evidence_keeps_its_precision_and_names_its_statistic():
    """A mean says that it is one, and 1.54 µs is not 2 µs."""
    decode = PhaseRow("decode", mean_ns=1540.0, p50_ns=1540.0, p95_ns=1540.0, critical_path_ratio=0.6)
    row = _row("generation", 0.9, phases=(decode,))
    (found,) = findings(_report(stages=(row,), generation=_phases(first_token_wait=0.001, decode=0.00154)))

    assert found.evidence["mean_decode_ms"] == pytest.approx(0.00154)
    assert found.evidence["against"] == {"mean_rest_of_call_ms": pytest.approx(0.001)}


def test_evidence_names_only_what_the_run_has():
    """A stage that is not there is no stage of 0.0 %, a phase that was not measured none of 0 ms."""
    stages = (_row("retrieval", 0.9), _row("generation", 0.06))
    asking = Asking(200, 100, {"retrieval": 90, "generation": 6, "": 4})
    (side,) = findings(
        _report(stages=stages, unattributed=Unattributed(1, 0.04), patterns=Patterns(asking=asking))
    )
    (hold,) = findings(
        _report(stages=(_row("generation", 0.9),), generation=_phases(consumer_hold=60, first_token_wait=40))
    )

    assert side.evidence == {
        "requests_with_a_model_call": 200,
        "retrieval_ratio": 0.9,
        "against": {"generation_ratio": 0.06},
    }
    assert hold.evidence["against"] == {"mean_call_ms": 100.0}


def test_time_before_the_model_needs_a_model():
    """Where no request asks one, a faster model is no question."""
    assert findings(_report(stages=(_row("retrieval", 0.9),), unattributed=Unattributed(1, 0.04))) == ()


def test_the_most_severe_comes_first():
    """What spoils the figures is read before what they say."""
    report = _report(
        evidence=Evidence(n_spans=10, n_dropped_spans=10),
        request=RequestSummary(n=3),
        unattributed=Unattributed(1, 0.9),
    )

    assert [finding.severity for finding in findings(report)] == ["critical", "warning", "info"]


def test_every_finding_has_figures_for_and_against_and_a_next_step():
    """No advice without evidence."""
    report = _report(
        evidence=Evidence(n_spans=90, n_dropped_spans=10),
        stages=(_row("rerank", 0.5), _row("generation", 0.4)),
        generation=replace(_phases(queue=50, prefill=5, decode=20, consumer_hold=25), n_attempts=12),
        unattributed=Unattributed(1, 0.1),
    )

    found = findings(report)

    assert len(found) >= 5
    for finding in found:
        assert finding.evidence["against"]
        assert any(isinstance(value, int | float) for value in finding.evidence.values())
        assert finding.next_step.endswith((".", "…"))
