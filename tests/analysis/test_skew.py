"""Clocks of other processes, set right when somebody asks: who is moved, by how much, and that it is said."""

from __future__ import annotations

import pytest

from hotspan.analysis import analyse
from hotspan.analysis.skew import adjust_skew
from hotspan.tracer.record import Resource
from hotspan.tracer.testing import build_trace

MS = 1_000_000
ASK = (10_000 * MS, 10_100 * MS)
HERE, THERE = Resource({"service.name": "app"}), Resource({"service.name": "search", "host.name": "far"})


def trace(*remote, resource=THERE):
    """A request of 100 ms here, with spans of another process below it: name, start, end (ms), parent."""
    spans = [(name, ASK[0] + start * MS, ASK[0] + end * MS, parent) for name, start, end, parent in remote]
    built = build_trace(("ask", *ASK), *spans, stages={"ask": "request", "find": "retrieval"})
    return type(built)(
        "1", [span._replace(resource=HERE if span.name == "ask" else resource) for span in built.spans]
    )


def offsets(adjusted):
    """Where each span lies after it, in ms from the request's start."""
    (found,) = adjusted
    return {
        span.name: ((span.start_ns - ASK[0]) / MS, (span.end_ns - ASK[0]) / MS)
        for span in found.spans
        if span.name != "ask"
    }


@pytest.mark.parametrize(
    ("child", "expected"),
    [
        # ask   |----------|
        # find                 |--|      5 s ahead
        pytest.param((5000, 5040), (30, 70), id="ahead"),
        pytest.param((-5000, -4960), (30, 70), id="behind"),
        pytest.param((80, 120), (30, 70), id="over-the-end"),
        pytest.param((10, 50), (10, 50), id="inside-stays"),
        pytest.param((-10, 190), (0, 200), id="longer-begins-with-its-parent"),
    ],
)
def test_a_span_of_another_process_is_moved_into_its_parent(child, expected):
    """The room that is left is half before it and half after; its duration stays."""
    assert offsets(adjust_skew([trace(("find", *child, "ask"))])) == {"find": expected}


def test_what_its_process_wrote_below_it_moves_along():
    """One clock, one shift."""
    found = offsets(adjust_skew([trace(("find", 5000, 5040, "ask"), ("index", 5010, 5020, "find"))]))

    assert found == {"find": (30, 70), "index": (40, 50)}


def test_within_a_process_nothing_moves():
    """A child that ends after its parent is late, not skewed."""
    assert offsets(adjust_skew([trace(("find", 5000, 5040, "ask"), resource=HERE)])) == {"find": (5000, 5040)}


def test_the_report_says_who_was_moved_and_by_how_much():
    """The figures are those of the moved spans, and nobody is left to wonder."""
    report = analyse(adjust_skew([trace(("find", -5000, -4960, "ask"))]))

    assert {row.stage: row.critical_path_ratio for row in report.stages}["retrieval"] == pytest.approx(0.4)
    assert report.evidence.n_early_spans == 0
    assert (
        "the clock of search on far was shifted by +5030.000 ms, once, as asked" in report.evidence.warnings
    )


def test_a_loop_of_parents_is_left_as_it_is():
    """What has no root has no place to move to."""
    looped = build_trace(("a", 1, 2, "b"), ("b", 1, 2, "a"))

    assert [span.name for span in next(adjust_skew([looped])).spans] == ["a", "b"]
