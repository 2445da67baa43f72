"""Case 085: the total of a stage passes 100 % when its calls run at once."""

from __future__ import annotations

from hotspan.analysis import analyse
from hotspan.tracer.testing import build_trace


def test_busy_may_exceed_the_request_and_no_share_does():
    """Two columns: busy, a sum; wall, a union.  The exclusive shares add up to 100 %."""
    trace = build_trace(
        ("request", 0, 100),
        *((f"t{n}", 0, 90, "request") for n in range(3)),
        ("answer", 90, 100, "request"),
        stages={"request": "request", "answer": "generation", **{f"t{n}": "tool" for n in range(3)}},
    )

    report = analyse([trace])
    rows = {row.stage: row for row in report.stages}

    assert (rows["tool"].busy_ns, rows["tool"].wall_ns) == (270, 90)
    shares = [row.critical_path_ratio for row in report.stages if row.critical_path_ratio is not None]
    assert sum(shares) + report.unattributed.critical_path_ratio == 1
    assert rows["tool"].critical_path_ratio == 0.9
