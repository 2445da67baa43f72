"""Case 089: a critical path that could not be computed, shown as if there were no bottleneck."""

from __future__ import annotations

import pytest
from made_traces import Call, answer, request

from hotspan.analysis import analyse
from hotspan.exporters.reports import console
from hotspan.exporters.reports.choose import choose
from hotspan.exporters.reports.screen import Screen
from hotspan.tracer.errors import UnusableTraceError
from hotspan.tracer.record import SpanRecord, Trace

GOOD = request(1, 100, Call("retrieval", "search", 0, 40), answer(40, 100))
ROOTLESS = Trace("2", [SpanRecord("2", "b", "missing", "search", 10, 20, {"hotspan.stage": "retrieval"})])
LOOP = Trace(
    "3",
    [
        SpanRecord("3", "a", "b", "a", 10, 20, {"hotspan.stage": "tool"}),
        SpanRecord("3", "b", "a", "b", 10, 20, {"hotspan.stage": "tool"}),
    ],
)
ENDLESS = Trace("4", [SpanRecord("4", "a", None, "ask", 10, None, {"hotspan.stage": "request"})])
MOMENT = request(5, 0, Call("retrieval", "search", 0, 0))


@pytest.mark.parametrize(
    ("trace", "reason"),
    [
        pytest.param(ROOTLESS, "no complete request", id="no-root"),
        pytest.param(LOOP, "no complete request", id="loop"),
        pytest.param(ENDLESS, "no complete request", id="no-end"),
        pytest.param(MOMENT, "every request ends when it starts", id="no-duration"),
    ],
)
def test_what_cannot_be_computed_says_why(trace, reason):
    """No share is 0 %: it is absent, and the reason stands above the figures."""
    report = analyse([trace])
    text = console.render(report, Screen(width=200))

    assert any(reason in warning for warning in report.evidence.warnings)
    assert reason in text
    assert all(row.critical_path_ratio is None for row in report.stages)
    assert report.unattributed.critical_path_ratio is None


@pytest.mark.parametrize("bad", [ROOTLESS, LOOP, ENDLESS], ids=["no-root", "loop", "no-end"])
def test_the_other_traces_are_computed_all_the_same(bad):
    """One trace that has no path takes nothing from those that have one, and is counted."""
    report = analyse([bad, GOOD])

    shares = {row.stage: row.critical_path_ratio for row in report.stages if row.critical_path_ratio}
    assert shares == {"generation": pytest.approx(0.6), "retrieval": pytest.approx(0.4)}
    evidence = report.evidence
    assert evidence.n_partial_traces + evidence.n_unfinished_spans + evidence.n_cycles_cut > 0


def test_show_refuses_where_there_is_no_request():
    """An empty picture would look like a request that did nothing."""
    with pytest.raises(UnusableTraceError, match="no complete request"):
        choose([ROOTLESS])
