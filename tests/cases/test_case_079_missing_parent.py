"""Case 079: a parent that is not in the file."""

from __future__ import annotations

from hotspan.analysis import analyse
from hotspan.tracer.testing import build_trace


def test_a_partial_trace_is_counted_and_no_request():
    """Its calls are figures of their stage; its root's duration is no request's."""
    whole = build_trace(("root", 0, 100), stages={"root": "request"}, trace_id="1")
    part = build_trace(
        ("search", 0, 5000, "elsewhere"),
        ("POST", 10, 20, "search"),
        stages={"search": "retrieval"},
        trace_id="2",
    )

    report = analyse([whole, part])

    assert (report.evidence.n_traces, report.evidence.n_partial_traces, report.evidence.n_orphan_spans) == (
        2,
        1,
        1,
    )
    assert (report.request.n, report.request.duration_ns.max) == (1, 100)
    (row,) = [row for row in report.stages if row.stage == "retrieval"]
    assert (row.n_calls, row.duration_ns.max, row.critical_path_ns) == (1, 5000, 0)
    assert row.calls_per_request.max == 0
