"""Case 084: self time minus the sum of overlapping children is negative."""

from __future__ import annotations

from hotspan.analysis.repair import repair
from hotspan.analysis.report import analyse
from hotspan.analysis.self_time import self_times
from hotspan.tracer.testing import build_trace


def test_five_children_at_once_cover_their_time_once():
    """Parent 0-10, five children 2-8: self 4, their union 6, their sum 30."""
    trace = build_trace(
        ("parent", 0, 10),
        *((f"c{n}", 2, 8, "parent") for n in range(5)),
        stages={"parent": "request", **{f"c{n}": "generation" for n in range(5)}},
    )

    tree, _ = repair(trace)
    report = analyse([trace])
    (row,) = [row for row in report.stages if row.stage == "generation"]

    assert self_times(tree)[0] == 4
    assert (row.wall_ns, row.busy_ns) == (6, 30)
    assert report.amplification.parallelism == 5
    assert report.amplification.model_calls.mean == 5
