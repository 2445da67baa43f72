"""Case 076: spans that are their own ancestors."""

from __future__ import annotations

import pytest

from hotspan.analysis import analyse
from hotspan.tracer.testing import build_trace


@pytest.mark.parametrize(
    ("spans", "cut", "n_requests"),
    [
        pytest.param([("a", 0, 100, "a")], ("a", "a"), 1, id="self-parent"),
        pytest.param([("a", 0, 100, "c"), ("b", 10, 90, "a"), ("c", 20, 80, "b")], ("c", "b"), 0, id="three"),
        pytest.param(
            [("root", 0, 100), ("a", 10, 90, "b"), ("b", 20, 80, "a"), ("x", 30, 40, "b")],
            ("b", "a"),
            1,
            id="beside-a-root",
        ),
    ],
)
def test_a_cycle_is_cut_where_its_last_span_starts_and_both_ids_are_named(spans, cut, n_requests):
    """It ends, every span is counted once, and the warning says where it was cut."""
    report = analyse([build_trace(*spans, stages={name: "tool" for name, *_ in spans})])

    (warning,) = [warning for warning in report.evidence.warnings if "loop" in warning]
    assert all(f"{name:0>16}" in warning for name in cut)
    assert report.evidence.n_cycles_cut == 1
    assert report.evidence.n_spans == len(spans)
    assert report.evidence.n_requests == n_requests
