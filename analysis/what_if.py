"""How long requests would have taken, had one thing been faster: a replay, and so an estimate.

A span starts when the siblings that had ended before it have ended, after the same pause as before: the
dependencies that the critical path reads from the timing.  A span ends, after the same pause, when its last
child has.  Source: docs/definitions.md#what-if.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from hotspan.analysis.calls import NO_OWNER, Calls
from hotspan.analysis.columns import floats, longs, view
from hotspan.analysis.model import WhatIf
from hotspan.analysis.percentiles import per_request
from hotspan.analysis.tree import NO_PARENT, Tree
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Mapping, Sequence

HALF = 0.5


@dataclass(frozen=True, slots=True)
class Timeline:
    """One request, reduced to what a replay needs; node 0 is the root, parents come first.

    Times are nanoseconds from the request's start: a number each, or a column of the times of many requests
    that are alike in all else.
    """

    starts: Sequence[Any]
    ends: Sequence[Any]
    stages: Sequence[str | None]  # whose time a node's own time is
    children: Sequence[Sequence[int]]  # by start
    # Siblings that had ended when a node started, without those before which the sibling before it did.
    awaited: Sequence[Sequence[int]]
    last: Sequence[int]  # each node's child that ended last

    @property
    def duration_ns(self) -> Any:
        """The request's duration as it was."""
        return self.ends[0]


def timeline_of(tree: Tree, calls: Calls, root: int) -> Timeline:
    """Return the timeline of one request."""
    order = tree.below(root)
    zero = tree.starts[root]
    starts = [tree.starts[index] - zero for index in order]
    ends = [tree.ends[index] - zero for index in order]
    owners = [calls.owners[index] for index in order]
    number = {index: position for position, index in enumerate(order)}
    children: list[list[int]] = [[] for _ in order]
    for position, index in enumerate(order[1:], start=1):
        parent = tree.parents[index]
        if parent != NO_PARENT:
            children[number[parent]].append(position)
    for siblings in children:
        siblings.sort(key=lambda node: (starts[node], ends[node]))
    stages = [calls.stages[owner] if owner != NO_OWNER else None for owner in owners]
    awaited: list[Sequence[int]] = [()] * len(order)
    last = list(range(len(order)))
    for node, siblings in enumerate(children):
        if siblings:
            last[node] = _await(siblings, starts, ends, awaited)
    return Timeline(starts, ends, stages, children, awaited, last)


def _await(
    siblings: Sequence[int], starts: Sequence[int], ends: Sequence[int], awaited: list[Sequence[int]]
) -> int:
    """Note for which siblings each one waited; return the last to end."""
    if len(siblings) == 1:
        return siblings[0]
    by_end = sorted(siblings, key=lambda node: (ends[node], starts[node]))
    placed: set[int] = set()
    n_ended = 0
    for child in siblings:
        first = n_ended
        # Of length 0, and starts just now: not placed yet.
        while ends[by_end[n_ended]] <= starts[child] and by_end[n_ended] in placed:
            n_ended += 1
        awaited[child] = by_end[first:n_ended]
        placed.add(child)
    return by_end[-1]


def replay_ns(timeline: Timeline, factors: Mapping[str, float], later: Callable[..., Any] = max) -> Any:
    """Return how long the request takes when each stage's own time is multiplied by its factor.

    Args:
        timeline: The request as it was.
        factors: Stage -> factor, at least 0; stages that are not in it stay as they were.
        later: Returns the later of two times: of columns, `np.maximum`.

    Returns:
        A float, or a column of them.
    """
    durations: list[Any] = [0.0] * len(timeline.starts)
    for node in range(len(durations) - 1, -1, -1):  # children before parents
        stage = timeline.stages[node]
        factor = 1.0 if stage is None else factors.get(stage, 1.0)
        durations[node] = _replayed(timeline, node, factor, durations, later)
    return durations[0]


def _replayed(
    timeline: Timeline, node: int, factor: float, durations: Sequence[Any], later: Callable[..., Any]
) -> Any:
    starts, ends = timeline.starts, timeline.ends
    new_ends: dict[int, Any] = {}
    was_ready, is_ready = starts[node], 0.0
    for child in timeline.children[node]:
        for ended in timeline.awaited[child]:
            was_ready, is_ready = ends[ended], later(is_ready, new_ends[ended])
        new_ends[child] = is_ready + (starts[child] - was_ready) * factor + durations[child]
    if not new_ends:
        return (ends[node] - starts[node]) * factor
    return reduce(later, new_ends.values()) + (ends[node] - ends[timeline.last[node]]) * factor


@dataclass(slots=True)
class Halvings:
    """How long each successful request would have taken with each of its stages at half its time."""

    durations_ns: array[int] = field(default_factory=longs)  # as they were
    rows: dict[str, array[int]] = field(default_factory=dict)  # stage -> requests that have it
    halved_ns: dict[str, array[float]] = field(default_factory=dict)  # stage -> their durations then

    def add(self, timeline: Timeline) -> None:
        """Take in one request."""
        row = len(self.durations_ns)
        self.durations_ns.append(timeline.duration_ns)
        for stage in _work(timeline):
            where, halved = self.columns(stage)
            where.append(row)
            halved.append(replay_ns(timeline, {stage: HALF}))

    def add_all(self, timeline: Timeline) -> None:
        """Take in many requests that are alike, as `add` does one by one."""
        durations = timeline.duration_ns
        rows = np.arange(len(self.durations_ns), len(self.durations_ns) + len(durations))
        self.durations_ns.frombytes(durations.tobytes())
        for stage in _work(timeline):
            where, halved = self.columns(stage)
            where.frombytes(rows.tobytes())
            halved.frombytes(replay_ns(timeline, {stage: HALF}, np.maximum).tobytes())

    def columns(self, stage: str) -> tuple[array[int], array[float]]:
        """Return a stage's two columns."""
        if stage not in self.rows:
            self.rows[stage], self.halved_ns[stage] = longs(), floats()
        return self.rows[stage], self.halved_ns[stage]

    def result(self, stages: Sequence[str]) -> tuple[WhatIf, ...]:
        """Return what each of these stages at half its time would do, the largest gain first."""
        durations = view(self.durations_ns)
        before = per_request(durations)
        if before is None or not before.p50 or not before.p95:
            return ()
        found = []
        for stage in stages:
            halved = durations.astype(np.float64)
            if stage in self.rows:
                halved[view(self.rows[stage])] = view(self.halved_ns[stage])
            after = per_request(halved)
            if after is not None:
                p50, p95 = after.p50 / before.p50 - 1, after.p95 / before.p95 - 1
                found.append(WhatIf(f"{stage} x{HALF}", p50, p95))
        return tuple(sorted(found, key=lambda item: item.request_p50_change_ratio))


def _work(timeline: Timeline) -> list[str]:
    """Return the stages whose time is not a request's, an agent's or a step's own."""
    return [stage for stage in dict.fromkeys(timeline.stages) if stage and stage not in semconv.ENVELOPES]
