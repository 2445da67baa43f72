"""Traces whose stamps come in one order are walked once, and give what each of them gives by itself."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hotspan.analysis import alike as module
from hotspan.analysis.critical_path import critical_path
from hotspan.analysis.form_batch import FormBatch
from hotspan.analysis.forms import form_of
from hotspan.analysis.patterns.overlaps import overlapped_by_all, overlapped_ns
from hotspan.analysis.what_if import Replays, timeline_of
from hotspan.tracer import semconv
from hotspan.tracer.record import SpanRecord

STAGES = ("request", "agent", "step", "embedding", "retrieval", "generation", "tool")


@st.composite
def batches(draw):
    """Draw traces of one form, several a drawn order: the same places with other times between them."""
    n = draw(st.integers(2, 7))
    parents = [None, *(draw(st.integers(0, i - 1)) for i in range(1, n))]
    stages = ["request", *(draw(st.sampled_from(STAGES)) for _ in range(1, n))]
    starts, ends = [], []
    for _ in range(draw(st.integers(1, 3))):
        places = [(0, 12)]
        for parent in parents[1:]:
            low, high = places[parent]
            places.append(tuple(sorted((draw(st.integers(low, high)), draw(st.integers(low, high))))))
        steps = st.lists(st.integers(1, 9), min_size=12, max_size=12)
        for gaps in draw(st.lists(steps, min_size=1, max_size=7)):
            at = [0, *itertools.accumulate(gaps)]
            starts.append([at[start] for start, _ in places])
            ends.append([at[end] for _, end in places])
    spans = [
        SpanRecord(
            "1", str(i), None if parent is None else str(parent), stage, starts[0][i], ends[0][i],
            {semconv.STAGE: stage},
        )
        for i, (parent, stage) in enumerate(zip(parents, stages, strict=True))
    ]  # fmt: skip
    return FormBatch(
        form=form_of(spans), starts=np.array(starts), ends=np.array(ends), overlapping=range(len(starts)),
        n_chunks=0, weighed=[], calls=None, own_calls=[], holds={},
    )  # fmt: skip


def trees_of(traces, batch):
    """Return the same traces one by one."""
    return [batch.form.tree(batch.starts[row].tolist(), batch.ends[row].tolist()) for row in traces.rows]


@given(batches())
def test_one_walk_finds_every_critical_path(batch):
    """The segments of the one, looked up in the stamps of each, are what its own walk finds."""
    for traces in module.alike(batch, batch.overlapping):
        for number, tree in enumerate(trees_of(traces, batch)):
            at = traces.stamps[:, number].tolist()
            found = [(span, at[start], at[end]) for span, start, end in traces.segments]
            path_ns = [0] * len(tree.spans)
            for span, start, end in found:
                path_ns[span] += end - start

            assert found == critical_path(tree, 0)
            assert traces.path_ns()[number].tolist() == path_ns


@given(batches())
def test_one_replay_halves_every_stage(batch):
    """To the last bit: the same operations, on columns."""
    for traces in module.alike(batch, batch.overlapping):
        together, one_by_one = Replays(), Replays()
        together.add_all(traces.timeline())
        for tree in trees_of(traces, batch):
            one_by_one.add(timeline_of(tree, batch.form.calls, 0))

        assert together == one_by_one


@given(batches())
def test_one_look_finds_what_calls_overlap(batch):
    """Unattributed time in which calls ran, summed over all."""
    for traces in module.alike(batch, batch.overlapping):
        below, calls = range(len(batch.form.spans)), batch.form.calls
        expected = [
            overlapped_ns(tree, calls, below, critical_path(tree, 0)) for tree in trees_of(traces, batch)
        ]

        assert overlapped_by_all(traces) == sum(expected)


@given(batches())
def test_every_order_that_enough_traces_share_is_found(batch):
    """Two traces are alike where every comparison of two stamps comes out the same; no trace is in twice."""
    stamps = np.concatenate((batch.starts, batch.ends), axis=1)
    orders = [tuple(np.sign(row[:, None] - row[None, :]).ravel().tolist()) for row in stamps]
    expected = {
        tuple(row for row, other in enumerate(orders) if other == order)
        for order in orders
        if orders.count(order) >= module.MIN_ALIKE
    }

    assert {tuple(traces.rows.tolist()) for traces in module.alike(batch, batch.overlapping)} == expected
