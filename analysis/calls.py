"""Stages and calls of a tree: whose time a span's time is, and what counts as one call.

Rules: docs/definitions.md#trace-request-stage.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from hotspan.analysis.sighting import Kin, Sighting, paired, sighting_of
from hotspan.analysis.stages import stages_of
from hotspan.analysis.tree import NO_PARENT, Tree
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hotspan.tracer.record import SpanRecord

NO_OWNER = -1
NOT_SELECTED: Final = "not selected"  # the stage of calls that `--where` left out
# Stages of roots that are no requests, and what may lie below them.
_ASIDE: Final = {
    semconv.EMBEDDING: frozenset({semconv.EMBEDDING}),
    semconv.TOOL: frozenset({semconv.TOOL, semconv.EMBEDDING, semconv.RETRIEVAL, semconv.RERANK}),
}
_AROUND_AGENT: Final = re.compile(r"^(?:invoke_agent|agent_run) ")
_AGENT_NAMES: Final = (semconv.AGENT_NAME, semconv.OPENINFERENCE_AGENT, semconv.LOGFIRE_MESSAGE)


@dataclass(frozen=True, slots=True)
class Calls:
    """What the spans of a tree are; index i is span i of the tree."""

    stages: Sequence[str | None]  # a root that says none is a `request`
    owners: Sequence[int]  # nearest span at or above i that has a stage; NO_OWNER where there is none
    tops: Sequence[int]  # outermost span of i's call; NO_OWNER for a span without a stage, or of a twin
    staged_children: Sequence[Sequence[int]]  # nearest descendants that have a stage
    has_stages: Sequence[bool]  # for a root: whether any span at or below it says a stage
    guessed: Sequence[int] = ()  # spans whose stage was read from their name or address alone

    aside: frozenset[int] = frozenset()  # roots that are work of their own, and no request
    # Spans of calls that other spans tell too, and outermost span of that call; NO_OWNER: in another trace.
    twins: Mapping[int, int] = field(default_factory=dict)

    def call_of(self, index: int) -> int:
        """Return the outermost span of the call whose time a span with a stage is, twins' spans included."""
        return self.twins.get(index, self.tops[index])

    def is_call(self, index: int) -> bool:
        """Return whether a call begins with this span."""
        return self.tops[index] == index

    def has_any_stage(self, tree: Tree) -> bool:
        """Return whether any span of the tree says a stage."""
        return any(self.has_stages[root] for root in (*tree.roots, *tree.partial_roots))

    def is_request(self, root: int) -> bool:
        """Return whether a root of the tree is a user's request."""
        return self.has_stages[root] and root not in self.aside


def calls_of(tree: Tree, twins: Mapping[int, int] | None = None) -> Calls:
    """Return the stages and calls of a tree.

    Args:
        tree: One repaired trace.
        twins: Outermost spans of calls that are written elsewhere too, and count there: the outermost span
            of that call, or `NO_OWNER` where it is in another trace.  Their time is their stage's, unless
            they are all that a root holds.
    """
    stages, guessed = stages_of(tree)
    calls = _laid_out(tree, list(stages), guessed)
    if not twins:
        return calls
    members = {index: twins[top] for index, top in enumerate(calls.tops) if top in twins and top != NO_OWNER}
    others = _roots_with_stages(tree, [None if i in members else stage for i, stage in enumerate(stages)])
    root_of = _roots_of(tree)
    kept = [
        None if index in members and not others[root_of[index]] else stage
        for index, stage in enumerate(stages)
    ]
    calls = _laid_out(tree, kept, guessed)
    tops = [NO_OWNER if index in members else top for index, top in enumerate(calls.tops)]
    return replace(calls, tops=tops, twins=members)


def as_selected(tree: Tree, calls: Calls) -> Calls:
    """Return the calls with those that are marked as not selected under a stage of their own.

    Nothing is read anew: what is whose call, and whose time, stays as it was.  A request, agent or step that
    was not selected keeps its stage, its own time being `unattributed`, and is no call.
    """
    marked = [index for index, span in enumerate(tree.spans) if semconv.NOT_SELECTED in span.attributes]
    if not marked:
        return calls
    stages, tops = list(calls.stages), list(calls.tops)
    for index in marked:
        if stages[index] in semconv.ENVELOPES:
            tops[index] = NO_OWNER
        elif stages[index] is not None:
            stages[index] = NOT_SELECTED
    return replace(calls, stages=stages, tops=tops)


def _laid_out(tree: Tree, stages: list[str | None], guessed: Sequence[int]) -> Calls:
    n = len(tree.spans)
    has_stages = _roots_with_stages(tree, stages)
    for root in tree.roots:
        if stages[root] is None:
            stages[root] = semconv.REQUEST
    owners, tops = [NO_OWNER] * n, [NO_OWNER] * n
    staged_children: list[list[int]] = [[] for _ in range(n)]
    for index in range(n):  # parents come first
        parent = tree.parents[index]
        above = owners[parent] if parent != NO_PARENT else NO_OWNER
        if stages[index] is None:
            owners[index] = above
            continue
        owners[index] = tops[index] = index
        if above != NO_OWNER:
            staged_children[above].append(index)
            if _is_same_call(tree, stages, above, index):
                tops[index] = tops[above]
    aside = frozenset(root for root in tree.roots if _is_aside(tree, stages, staged_children, root))
    return Calls(stages, owners, tops, staged_children, has_stages, guessed, aside)


def _is_aside(tree: Tree, stages: Sequence[str | None], below: Sequence[Sequence[int]], root: int) -> bool:
    """Return whether a root is an embedding, or a tool that lost its parent, and nothing else.

    Nobody waits for its answer: an index is being built, or a pool of threads ran an agent's tool.  What is
    named so by Hotspan's own stage was named on purpose, and what a server answered was asked for.
    """
    allowed = _ASIDE.get(stages[root] or "")
    span = tree.spans[root]
    if allowed is None or semconv.STAGE in span.attributes or span.kind == "server":
        return False
    inside = list(below[root])
    for index in inside:
        inside.extend(below[index])
    return all(stages[index] in allowed for index in inside)


def _roots_with_stages(tree: Tree, stages: Sequence[str | None]) -> list[bool]:
    found = [stage is not None for stage in stages]
    for index in range(len(found) - 1, -1, -1):  # children come last
        if found[index] and tree.parents[index] != NO_PARENT:
            found[tree.parents[index]] = True
    return found


def _roots_of(tree: Tree) -> list[int]:
    roots = list(range(len(tree.spans)))
    for index, parent in enumerate(tree.parents):  # parents come first
        if parent != NO_PARENT:
            roots[index] = roots[parent]
    return roots


def _is_same_call(tree: Tree, stages: Sequence[str | None], above: int, index: int) -> bool:
    if stages[above] != stages[index]:
        return False
    # An agent below an agent of another name is a call of its own.
    return stages[index] != semconv.AGENT or _agent(tree.spans[above]) == _agent(tree.spans[index])


def _agent(span: SpanRecord) -> str:
    """Return the name of an agent: what the span calls it, else what the span's own name begins with.

    `invoke_agent writer`, `agent_run [writer]` and `writer.on_messages` are one run, by two writers.
    """
    names = (span.attributes.get(key) for key in _AGENT_NAMES)
    said = next((name for name in names if isinstance(name, str) and name), span.name)
    bare = _AROUND_AGENT.sub("", said).strip("[]").partition(".")[0]
    return bare.lower() or said


def attempts_of(tree: Tree, calls: Calls) -> dict[int, list[int]]:
    """Return the innermost spans of every generation call, by its outermost span, in order of start.

    Of two that are twins, the one that tells more.
    """
    has_inner = set()
    members: dict[int, list[int]] = {}
    for index, stage in enumerate(calls.stages):
        top = calls.tops[index]
        if stage != semconv.GENERATION or top == NO_OWNER:
            continue
        members.setdefault(top, []).append(index)
        if top != index:
            has_inner.add(_nearest_staged_above(tree, calls, index))
    return {
        top: sorted(
            _told_once(tree, [i for i in inside if i not in has_inner]), key=lambda i: tree.spans[i].start_ns
        )
        for top, inside in members.items()
    }


def _told_once(tree: Tree, inner: list[int]) -> list[int]:
    """Return the innermost spans of one call without those that two instrumentations wrote side by side."""
    if len({tree.spans[index].scope.name for index in inner}) < 2:  # noqa: PLR2004 - one writer has no twins
        return inner
    sightings = {sighting_of(semconv.GENERATION, [span], span): i for i in inner for span in (tree.spans[i],)}
    kept = {sighting: sighting for sighting in sightings}
    for one, other in paired(list(sightings), Kin.SIBLINGS):
        kept[one] = max(kept[one], other, key=Sighting.n_told)
        del kept[other]
    return [sightings[sighting] for sighting in kept.values()]


def nearest(tree: Tree, calls: Calls, index: int, stage: str) -> int:
    """Return the nearest span of a stage at or above a span; NO_OWNER where there is none."""
    while index != NO_PARENT:
        owner = calls.owners[index]
        if owner == NO_OWNER or calls.stages[owner] == stage:
            return owner
        index = tree.parents[owner]
    return NO_OWNER


def _nearest_staged_above(tree: Tree, calls: Calls, index: int) -> int:
    return calls.owners[tree.parents[index]]
