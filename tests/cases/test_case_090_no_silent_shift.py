"""Case 090: a clock that is off is said, and no span is moved."""

from __future__ import annotations

import pytest

from hotspan.analysis import analyse
from hotspan.tracer.record import Resource
from hotspan.tracer.testing import build_trace

HERE, THERE = Resource({"service.name": "app"}), Resource({"service.name": "search", "host.name": "far"})


@pytest.mark.parametrize(
    ("child", "resource", "counted"),
    [
        pytest.param((150, 190), HERE, (1, 0), id="after-its-parent-in-one-process"),
        pytest.param((-4940, -4900), THERE, (0, 1), id="of-another-host-and-five-seconds-early"),
        pytest.param((-1, 39), HERE, (0, 1), id="early-by-rounding-in-one-process"),
    ],
)
def test_a_child_outside_its_parent_stays_where_it_is(child, resource, counted):
    """Its own duration is as measured; outside its parent it is late or early, and on no critical path."""
    trace = build_trace(
        ("ask", 10_000, 10_100),
        ("find", 10_000 + child[0], 10_000 + child[1], "ask"),
        stages={"ask": "request", "find": "retrieval"},
    )
    spans = [span._replace(resource=resource if span.name == "find" else HERE) for span in trace.spans]

    report = analyse([type(trace)("1", spans)])

    rows = {row.stage: row for row in report.stages}
    assert rows["retrieval"].duration_ns.max == 40
    assert rows["retrieval"].critical_path_ns == max(0, min(child[1], 100) - max(child[0], 0))
    assert rows["request"].duration_ns.max == 100
    assert (report.evidence.n_late_spans, report.evidence.n_early_spans) == counted
    assert any("nothing was shifted" in warning for warning in report.evidence.warnings) is bool(counted[1])
