"""Case 027: spans that end, or start, after the root has closed."""

from __future__ import annotations

from hotspan.analysis import analyse
from hotspan.tracer.testing import build_trace


def test_a_fire_and_forget_child_is_late_and_not_in_the_requests_100_percent():
    """Root 0-100, child 50-300, grandchild from 150: self 50, the late part shown, nothing dropped."""
    trace = build_trace(
        ("root", 0, 100),
        ("background", 50, 300, "root"),
        ("inner", 150, 250, "background"),
        stages={"root": "request", "background": "tool", "inner": "retrieval"},
    )

    report = analyse([trace])

    rows = {row.stage: row for row in report.stages}
    assert rows["request"].self_ns == 50
    assert report.evidence.n_late_spans == 2
    assert report.evidence.n_spans == 3
    # On the path is only what the background did before the root closed.
    assert (rows["tool"].critical_path_ns, rows["retrieval"].critical_path_ns) == (50, 0)
    assert report.unattributed.critical_path_ns == 50
    # Its own figures are as measured.
    assert rows["tool"].duration_ns.max == 250
    assert rows["retrieval"].n_calls == 1
