"""Traces of a part come out whole, once, or it is said that they cannot."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hotspan.analysis.drafts import draft_of
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


def test_a_trace_is_let_go_when_enough_came_behind_its_root():
    """And not before: more of it may come."""
    nearby = Nearby(25, set())

    assert not list(nearby.put([_draft(1, 1, "child"), _draft(1, 2, "root")], LINE_BYTES))
    assert not list(nearby.put([_draft(2, 3, "child")], LINE_BYTES))
    assert not list(nearby.put([_draft(2, 4, "child")], LINE_BYTES))
    (complete,) = nearby.put([_draft(2, 5, "child")], LINE_BYTES)
    assert [draft[1] for draft in complete] == [f"{1:016x}", f"{2:016x}"]
