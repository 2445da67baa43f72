"""Case 086: children that overflow their parent, and their own children with them."""

from __future__ import annotations

from hotspan.analysis.critical_path import critical_path
from hotspan.analysis.repair import repair
from hotspan.tracer.testing import build_trace


def test_clipping_is_transitive():
    """A [1,30] > B [15,35] > C [20,40]: B ends at 30, and so does C."""
    #  A |-----------------------------|
    #  B               |---------------:----|
    #  C                    |----------:---------|
    trace = build_trace(("A", 1, 30), ("B", 15, 35, "A"), ("C", 20, 40, "B"))

    tree, repairs = repair(trace)

    names = [span.name for span in tree.spans]
    assert dict(zip(names, zip(tree.starts, tree.ends, strict=True), strict=True)) == {
        "A": (1, 30),
        "B": (15, 30),
        "C": (20, 30),
    }
    assert repairs.n_late == 2
    assert [(names[s.span], s.end_ns - s.start_ns) for s in critical_path(tree, 0)] == [
        ("A", 14),
        ("B", 5),
        ("C", 10),
    ]
