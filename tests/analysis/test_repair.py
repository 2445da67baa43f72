"""Repair says what it changed, and changes nothing else."""

from __future__ import annotations

import pytest

from hotspan.analysis.critical_path import critical_path
from hotspan.analysis.repair import repair
from hotspan.tracer import semconv
from hotspan.tracer.record import Scope, SpanRecord, Trace
from hotspan.tracer.testing import build_trace


def _intervals(trace):
    tree, _ = repair(trace)
    return {
        span.name: (start, end) for span, start, end in zip(tree.spans, tree.starts, tree.ends, strict=True)
    }


@pytest.mark.parametrize(
    ("child", "expected"),
    [
        pytest.param((10, 40), (10, 40), id="inside"),
        pytest.param((0, 100), (0, 100), id="as-long-as-the-parent"),
        pytest.param((80, 130), (80, 100), id="ends-late"),
        pytest.param((120, 130), (100, 100), id="starts-after-the-parent"),
        pytest.param((100, 130), (100, 100), id="starts-as-the-parent-ends"),
    ],
)
def test_a_child_is_clipped_to_its_parent(child, expected):
    """What lies after the parent's end is cut off; a child wholly outside keeps its place with length 0."""
    assert _intervals(build_trace(("root", 0, 100), ("child", *child, "root")))["child"] == expected


def test_a_child_that_starts_early_is_cut_not_shifted():
    """A clock that is off moves nothing silently: the child is clipped, and counted."""
    tree, repairs = repair(build_trace(("root", 50, 100), ("child", 10, 70, "root")))

    assert (tree.starts[1], tree.ends[1]) == (50, 70)
    assert (repairs.n_early, repairs.n_late) == (1, 0)


@pytest.mark.parametrize("event", ["http.disconnect", "websocket.disconnect"])
def test_a_server_that_waits_for_its_client_to_hang_up_holds_nothing_up(event):
    """ASGI servers listen for that while the answer is sent, and end after it.

    request |-----------------------|
    chat      |----------------|
    receive   |..........................|    no work, however long
    """
    trace = build_trace(
        ("r", 0, 100),
        ("chat", 10, 90, "r"),
        ("receive", 12, 110, "r"),
        attributes={"receive": {"asgi.event.type": event}},
        stages={"chat": "generation"},
    )
    served = [span._replace(scope=Scope("asgi")) if span.name == "receive" else span for span in trace.spans]
    tree, repairs = repair(Trace("1", served))

    assert [(tree.spans[s.span].name, s.start_ns, s.end_ns) for s in critical_path(tree, 0)] == [
        ("r", 0, 10),
        ("chat", 10, 90),
        ("r", 90, 100),
    ]
    assert repairs.n_late == 0


def test_measured_times_stay_beside_the_clipped_ones():
    """A stream that outlives its root is still that long for its own figures."""
    tree, repairs = repair(build_trace(("root", 0, 100), ("stream", 80, 150, "root")))

    assert tree.duration_ns(1) == 20
    assert tree.spans[1].duration_ns == 70
    assert repairs.n_late == 1


def test_ids_are_linked_whatever_their_case_and_length():
    """`AB` and `00000000000000ab` are one span id; a trace id loses no zeros."""
    child = SpanRecord("1F", "2", "AB", "child", 1, 2)
    root = SpanRecord("1f", "ab".rjust(16, "0"), None, "root", 0, 5)

    tree, repairs = repair(Trace("1F", [child, root]))

    assert tree.trace_id == "1f".rjust(32, "0")
    assert [span.name for span in tree.spans] == ["root", "child"]
    assert tree.parents == [-1, 0]
    assert repairs.n_orphans == 0


def test_unfinished_and_invalid_spans_hand_their_children_up():
    """A span that cannot be measured leaves the tree; what it called stays below its parent."""
    root = SpanRecord("1", "1", None, "root", 10, 100)
    unfinished = SpanRecord("1", "2", "1", "unfinished", 20, None)
    backwards = SpanRecord("1", "3", "2", "backwards", 60, 50)
    leaf = SpanRecord("1", "4", "3", "leaf", 30, 40)

    tree, repairs = repair(Trace("1", [root, unfinished, backwards, leaf]))

    assert [span.name for span in tree.spans] == ["root", "leaf"]
    assert tree.parents == [-1, 0]
    assert (repairs.n_spans, repairs.n_unfinished, repairs.n_invalid) == (4, 1, 1)


def test_what_an_unfinished_root_called_is_a_partial_trace():
    """Without its root's end the request has no duration: its parts are counted as parts."""
    root = SpanRecord("1", "1", None, "root", 10, None)
    part = SpanRecord("1", "2", "1", "part", 20, 30)

    tree, _ = repair(Trace("1", [root, part]))

    assert tree.roots == []
    assert [tree.spans[index].name for index in tree.partial_roots] == ["part"]


@pytest.mark.parametrize(
    ("above", "fault", "counts"),
    [
        pytest.param([("1", None, 10, None)], "never ended", (1, 0), id="unfinished"),
        pytest.param([("1", None, 10, 5)], "has an impossible time", (0, 1), id="ends-before-it-starts"),
        pytest.param([], "is missing", (0, 0), id="not-there"),
        pytest.param([("1", "0", 10, None)], "is missing", (0, 0), id="unfinished-below-one-not-there"),
        pytest.param([("0", None, 5, None), ("1", "0", 10, 5)], "never ended", (1, 0), id="two-of-them"),
    ],
)
def test_what_is_wrong_with_the_root_of_a_part_is_known(above, fault, counts):
    """One that is in the files is not called missing."""
    spans = [SpanRecord("1", span_id, parent, "above", start, end) for span_id, parent, start, end in above]
    parts = [SpanRecord("1", number, "1", "part", 20, 30) for number in "23"]

    tree, repairs = repair(Trace("1", [*spans, *parts, SpanRecord("1", "4", "3", "inner", 20, 30)]))

    assert list(tree.partial_roots.values()) == [fault, fault]
    assert (repairs.n_unfinished_roots, repairs.n_invalid_roots) == counts


def test_an_engine_span_is_evidence_and_no_child():
    """It never counts as late, and what lies below it is the engine's own."""
    generation = SpanRecord("1", "1", None, "chat", 10, 100, {semconv.STAGE: "generation"})
    engine = SpanRecord("1", "2", "1", "llm_request", 5000, 9000, {semconv.ENGINE_QUEUE_S: 0.1})
    inside = SpanRecord("1", "3", "2", "prefill", 5000, 6000)

    tree, repairs = repair(Trace("1", [inside, engine, generation]))

    assert [span.name for span in tree.spans] == ["chat"]
    assert [(found.span.name, found.anchor) for found in tree.engine_spans] == [("llm_request", 0)]
    assert (repairs.n_late, repairs.n_early, repairs.n_orphans) == (0, 0, 0)
