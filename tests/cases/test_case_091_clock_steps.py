"""Case 091, analysis: a writer whose clock stepped back in mid-span."""

from __future__ import annotations

from hotspan.analysis import analyse
from hotspan.tracer.testing import build_trace


def test_a_negative_duration_enters_no_figure():
    """Its time is not known; the request and the other calls are as they were."""
    trace = build_trace(
        ("request", 10, 100),
        ("search", 20, 40, "request"),
        ("stepped", 5000, 60, "request"),
        stages={"request": "request", "search": "retrieval", "stepped": "retrieval"},
    )

    report = analyse([trace])

    assert report.evidence.n_invalid_spans == 1
    (row,) = [row for row in report.stages if row.stage == "retrieval"]
    assert (row.busy_ns, row.wall_ns, row.duration_ns.n) == (20, 20, 1)


def test_a_child_before_its_parent_is_said_and_not_shifted():
    """Clocks that differ are a fact to report, not to repair in silence."""
    trace = build_trace(
        ("request", 5000, 6000),
        ("search", 10, 40, "request"),
        stages={"request": "request", "search": "retrieval"},
    )

    report = analyse([trace])

    assert report.evidence.n_early_spans == 1
    assert any("nothing was shifted" in warning for warning in report.evidence.warnings)
    (row,) = [row for row in report.stages if row.stage == "retrieval"]
    assert (row.duration_ns.max, row.wall_ns, row.critical_path_ns) == (30, 0, 0)
