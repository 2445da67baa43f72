"""Traces of a part come out whole, once, or it is said that they cannot."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotspan.analysis.drafts import draft_of
from hotspan.analysis.parallel import nearby as parallel_nearby
from hotspan.analysis.parallel.nearby import Nearby
from hotspan.analysis.parallel.ranges import UnfitError
from hotspan.tracer import semconv
from hotspan.tracer.record import SpanRecord

LINE_BYTES = 10


def _draft(trace, number, kind):
    entry = {semconv.STAGE: "request", semconv.ENTRY: True}
    span = SpanRecord(
        f"{trace:032x}", f"{number:016x}", None if kind == "root" else f"{99:016x}", kind, 1, 2,
        entry if kind == "entry" else {},
    )  # fmt: skip
    return draft_of(span)


spans = st.lists(
    st.tuples(st.integers(1, 5), st.sampled_from(("child", "child", "root", "entry"))), max_size=30
)


@given(
    spans, st.integers(1, 100), st.sets(st.integers(1, 5), max_size=2), st.sets(st.integers(1, 5), max_size=2)
)
def test_every_span_comes_out_once_with_all_of_its_trace(found, near, before, shared):
    """Whatever the order: a trace is complete, left to others, or comes too late and is refused."""
    nearby = Nearby(near, {f"{trace:032x}" for trace in before})
    drafts = [_draft(trace, number, kind) for number, (trace, kind) in enumerate(found, 1)]
    complete = []
    try:
        for draft in drafts:
            complete += nearby.put([draft], LINE_BYTES)
    except UnfitError:
        late = {draft[0] for draft in drafts} & {trace[0][0] for trace in complete}
        assert late  # a span of a trace that was complete
        return
    complete += nearby.rest({f"{trace:032x}" for trace in shared})
    left = nearby.left()

    out = {trace[0][0]: [draft[1] for draft in trace] for trace in complete}
    out_left = {trace[0].trace_id: [span.span_id for span in trace] for trace in left}
    assert len(out) + len(out_left) == len(complete) + len(left)
    assert not out.keys() & out_left.keys()
    assert out | out_left == {
        trace_id: [draft[1] for draft in drafts if draft[0] == trace_id]
        for trace_id in {d[0] for d in drafts}
    }
    assert nearby.done == out.keys()
    assert {f"{trace:032x}" for trace in before} & out.keys() == set()


@given(spans, st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5)), max_size=4))
def test_a_trace_that_is_split_is_left(found, splits):
    """Whoever reads another part of it gets its spans, those before as those behind."""
    nearby = Nearby(1_000_000, set())
    drafts = [_draft(trace, number, kind) for number, (trace, kind) in enumerate(found, 1)]
    for number, draft in enumerate(drafts):
        for _, trace in (split for split in splits if split[0] == number):
            nearby.split({f"{trace:032x}"})
        list(nearby.put([draft], LINE_BYTES))
    split_ids = {f"{trace:032x}" for number, trace in splits if number < len(drafts)}

    assert not {trace[0][0] for trace in nearby.rest(set())} & split_ids
    assert {trace[0].trace_id: [span.span_id for span in trace] for trace in nearby.left()} == {
        trace_id: [draft[1] for draft in drafts if draft[0] == trace_id]
        for trace_id in {draft[0] for draft in drafts} & split_ids
    }


@pytest.mark.parametrize(
    ("limit", "most"),
    [pytest.param("_MAX_SPLIT", 4, id="traces"), pytest.param("_MAX_SPLIT_LINES", 3, id="lines")],
)
def test_too_many_split_traces_and_such_as_were_complete_are_refused(monkeypatch, limit, most):
    """They would all be sent as they are, or too late."""
    monkeypatch.setattr(parallel_nearby, limit, most)
    nearby = Nearby(5, set())
    list(nearby.put([_draft(9, 1, "root")], LINE_BYTES))
    list(nearby.put([_draft(8, 2, "child")], LINE_BYTES))
    nearby.split({f"{1:032x}", f"{2:032x}"})
    nearby.split({f"{1:032x}"})

    with pytest.raises(UnfitError):
        nearby.split({f"{9:032x}"})
    nearby.split({f"{2:032x}", f"{3:032x}"})
    with pytest.raises(UnfitError):
        nearby.split({f"{4:032x}"})


def test_a_trace_is_let_go_when_enough_came_behind_its_root():
    """And not before: more of it may come."""
    nearby = Nearby(25, set())

    assert not list(nearby.put([_draft(1, 1, "child"), _draft(1, 2, "root")], LINE_BYTES))
    assert not list(nearby.put([_draft(2, 3, "child")], LINE_BYTES))
    assert not list(nearby.put([_draft(2, 4, "child")], LINE_BYTES))
    (complete,) = nearby.put([_draft(2, 5, "child")], LINE_BYTES)
    assert [draft[1] for draft in complete] == [f"{1:016x}", f"{2:016x}"]
