"""How long requests would have taken, had one thing been faster: a replay, and so an estimate.

A span starts when the siblings that had ended before it have ended, after the same pause as before: the
dependencies that the critical path reads from the timing.  A span ends, after the same pause, when its last
child has.  Source: docs/definitions.md#what-if.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from hotspan.analysis.calls import NO_OWNER, Calls
from hotspan.analysis.columns import floats, longs, view
from hotspan.analysis.model import WhatIf
from hotspan.analysis.percentiles import per_request
from hotspan.analysis.tree import NO_PARENT, Tree
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from array import array
    from collections.abc import Mapping, Sequence

HALF = 0.5


@dataclass(frozen=True, slots=True)
class Timeline:
    """One request, reduced to what a replay needs; node 0 is the root, parents come first.

    Times are nanoseconds from the request's start.
    """

    starts: Sequence[int]
    ends: Sequence[int]
    stages: Sequence[str | None]  # whose time a node's own time is
    children: Sequence[Sequence[int]]  # by start
    children_by_end: Sequence[Sequence[int]]

    @property
    def duration_ns(self) -> int:
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
    by_end = [
        sorted(siblings, key=lambda node: (ends[node], starts[node])) if len(siblings) > 1 else siblings
        for siblings in children
    ]
    return Timeline(starts, ends, stages, children, by_end)


def replay_ns(timeline: Timeline, factors: Mapping[str, float]) -> float:
    """Return how long the request takes when each stage's own time is multiplied by its factor.

    Args:
        timeline: The request as it was.
        factors: Stage -> factor, at least 0; stages that are not in it stay as they were.
    """
    durations = [0.0] * len(timeline.starts)
    for node in range(len(durations) - 1, -1, -1):  # children before parents
        stage = timeline.stages[node]
        factor = 1.0 if stage is None else factors.get(stage, 1.0)
        durations[node] = _replayed(timeline, node, factor, durations)
    return durations[0]


def _replayed(timeline: Timeline, node: int, factor: float, durations: Sequence[float]) -> float:
    starts, ends, siblings = timeline.starts, timeline.ends, timeline.children[node]
    if not siblings:
        return (ends[node] - starts[node]) * factor
    by_end = timeline.children_by_end[node]
    new_ends: dict[int, float] = {}
    was_ready, is_ready, n_ended = starts[node], 0.0, 0
    for child in siblings:
        while n_ended < len(by_end) and ends[by_end[n_ended]] <= starts[child]:
            ended = by_end[n_ended]
            if ended not in new_ends:
                break  # of length 0, and starts just now: not placed yet
            was_ready, is_ready = ends[ended], max(is_ready, new_ends[ended])
            n_ended += 1
        new_ends[child] = is_ready + (starts[child] - was_ready) * factor + durations[child]
    return max(new_ends.values()) + (ends[node] - ends[by_end[-1]]) * factor


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
        for stage in dict.fromkeys(timeline.stages):
            if stage is not None and stage not in semconv.ENVELOPES:
                self.columns(stage)[0].append(row)
                self.columns(stage)[1].append(replay_ns(timeline, {stage: HALF}))

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
