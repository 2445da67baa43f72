"""Deep and wide traces are walked, not recursed into."""

from __future__ import annotations

import pytest

from hotspan.analysis import analyse
from hotspan.tracer.testing import build_trace

N_DEEP, N_WIDE, N_PARALLEL = 10_000, 100_000, 20_000


def _chain(n):
    return [("s0", 0, 2 * n), *((f"s{i}", i, 2 * n - i, f"s{i - 1}") for i in range(1, n))]


def _siblings(n, *, at_once):
    spans = (("c%d" % i, 0 if at_once else i, n if at_once else i + 1, "s0") for i in range(n))  # noqa: UP031  # fast
    return [("s0", 0, n), *spans]


@pytest.mark.parametrize(
    ("spans", "self_ns"),
    [
        pytest.param(_chain(N_DEEP), 2 * (N_DEEP - 1), id="deep"),
        pytest.param(_siblings(N_WIDE, at_once=False), 0, id="wide"),
        pytest.param(_siblings(N_PARALLEL, at_once=True), 0, id="all-at-once"),
    ],
)
def test_any_shape_of_trace_is_analysed(spans, self_ns):
    """10,000 levels and 100,000 siblings: no recursion, no step that is quadratic in either."""
    stages = {name: "tool" for name, *_ in spans[1:]} | {"s0": "request"}

    report = analyse([build_trace(*spans, stages=stages)])

    total = sum(row.critical_path_ns or 0 for row in report.stages) + report.unattributed.critical_path_ns
    assert total == spans[0][2]
    assert (
        sum(row.self_ns for row in report.stages if row.stage == "tool") + report.stages[0].self_ns >= self_ns
    )
    assert report.evidence.n_spans == len(spans)
