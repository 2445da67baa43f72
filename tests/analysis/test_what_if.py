"""A replay is checked against programs whose true duration with the change is known."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotspan.analysis.calls import calls_of
from hotspan.analysis.repair import repair
from hotspan.analysis.what_if import Replays, replay_ns, timeline_of
from hotspan.tracer.testing import build_trace

# A program is a stage that works alone, or parts one after the other, or parts at once; each part is a span.
leaves = st.tuples(
    st.sampled_from(["retrieval", "rerank", "generation"]), st.integers(1, 20).map(lambda n: 2 * n)
)
programs = st.recursive(
    leaves,
    lambda parts: st.tuples(
        st.sampled_from(["sequence", "parallel"]), st.lists(parts, min_size=1, max_size=4)
    ),
    max_leaves=12,
)


class _Run:
    """The spans that a program leaves when it runs from 0, with some stages slower or faster."""

    def __init__(self, program, factors):
        self.spans, self.stages, self.factors = [], {}, factors
        self.end = self._lay_out(program, 0, None)

    def _lay_out(self, program, start, parent):
        name, place = f"s{len(self.spans)}", len(self.spans)
        self.spans.append(None)
        kind, rest = program
        if isinstance(rest, int):
            self.stages[name] = kind
            end = start + round(rest * self.factors.get(kind, 1))
        else:
            cursor, ends = start, []
            for part in rest:
                ends.append(self._lay_out(part, cursor, name))
                cursor = ends[-1] if kind == "sequence" else start
            end = max(ends)
        self.spans[place] = (name, start, end, *([parent] if parent else []))
        return end

    @property
    def trace(self):
        return build_trace(*self.spans, stages=self.stages)


def _halved(timelines, stages):
    replays = Replays()
    for timeline in timelines:
        replays.add(timeline)
    return replays.result(stages)


def _timeline(trace):
    tree, _ = repair(trace)
    (root,) = tree.roots
    return timeline_of(tree, calls_of(tree), root)


@given(programs, st.sampled_from(["retrieval", "rerank", "generation"]), st.sampled_from([0, 0.5]))
def test_the_replay_of_a_program_is_what_the_program_really_takes(program, stage, factor):
    """For parts in sequence and in parallel the estimate is exact."""
    before, really = _Run(program, {}), _Run(program, {stage: factor})

    assert replay_ns(_timeline(before.trace), {stage: factor}) == really.end


def _took(program, stage):
    """How long a program takes in which a stage's parts, where they follow each other, run at once."""
    kind, rest = program
    if isinstance(rest, int):
        return rest
    if kind == "parallel":
        return max(_took(part, stage) for part in rest)
    rows = itertools.groupby(rest, lambda part: part[0] == stage)
    return sum((max if is_row else sum)(_took(part, stage) for part in row) for is_row, row in rows)


@given(programs, st.sampled_from(["retrieval", "rerank", "generation"]))
def test_the_replay_of_calls_at_once_is_what_the_program_really_takes(program, stage):
    """Also beside other parts, and where what follows waited for the last of them."""
    timeline = _timeline(_Run(program, {}).trace)

    assert replay_ns(timeline, {}, at_once=stage) == _took(program, stage)


def test_parts_of_one_call_stay_in_their_order():
    """A tool's own spans are one call: only calls run at once; the pauses between them are gone, too."""
    #  request  |-----------------------------------|
    #  tool a    |--------|      b |-------|
    #  inside     |--||--|
    trace = build_trace(
        ("request", 0, 100),
        ("a", 5, 35, "request"),
        ("connect", 6, 10, "a"),
        ("read", 10, 30, "a"),
        ("b", 45, 65, "request"),
        stages={"request": "request", "a": "tool", "b": "tool"},
    )

    assert replay_ns(_timeline(trace), {}, at_once="tool") == 5 + 30 + 35
    assert replay_ns(_timeline(trace), {}, at_once="retrieval") == 100


def test_a_stage_beside_a_longer_one_gains_nothing():
    """Half of what nobody waited for changes no request; the wording is the contract's."""
    #  request   |------------------------|
    #  retrieval |--------|                    100
    #  embedding |-----|                        60
    #  answer             |---------------|    200
    trace = build_trace(
        ("request", 0, 300),
        ("retrieval", 0, 100, "request"),
        ("embedding", 0, 60, "request"),
        ("answer", 100, 300, "request"),
        stages={
            "request": "request",
            "retrieval": "retrieval",
            "embedding": "embedding",
            "answer": "generation",
        },
    )

    found = _halved([_timeline(trace)], ["embedding", "retrieval", "generation"])

    changes = [(item.change, item.request_p50_change_ratio) for item in found]
    # Retrieval at 50, or gone, leaves embedding, 60, to wait for.
    assert changes == [
        ("generation x0.5", pytest.approx(-1 / 3)),
        ("retrieval x0.5", pytest.approx(-40 / 300)),
        ("embedding x0.5", 0),
        ("generation removed", pytest.approx(-2 / 3)),
        ("retrieval removed", pytest.approx(-40 / 300)),
        ("embedding removed", 0),
    ]


def test_pauses_stay():
    """The parent's own work before, between and after its children is not what the change is about."""
    trace = build_trace(
        ("request", 0, 100),
        ("first", 10, 30, "request"),
        ("second", 50, 90, "request"),
        stages={"request": "request", "first": "tool", "second": "generation"},
    )

    assert replay_ns(_timeline(trace), {"tool": 0.5}) == 90
    assert replay_ns(_timeline(trace), {"generation": 0}) == 60


def test_a_stages_own_time_shrinks_and_what_it_calls_does_not():
    """Half the agent's own time leaves its model calls as long as they were."""
    trace = build_trace(
        ("tool", 0, 100), ("call", 20, 60, "tool"), stages={"tool": "tool", "call": "generation"}
    )

    assert replay_ns(_timeline(trace), {"tool": 0.5}) == 70


def test_without_requests_there_is_no_estimate():
    """Nothing to replay: nothing said."""
    assert _halved([], ["generation"]) == ()
