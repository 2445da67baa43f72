"""What the spans of a tree are where one span alone does not tell: guesses held against what is around them.

Rules: docs/definitions.md#trace-request-stage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from hotspan.analysis.dialects import Reading, makes_no_call, read
from hotspan.analysis.tree import NO_PARENT, Tree
from hotspan.tracer import semconv
from hotspan.tracer.semconv import AGENT, CONTEXT_ASSEMBLY, EMBEDDING, GENERATION, STEP, TOOL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_NONE: Final = Reading(None)
_BITS: Final = {stage: 1 << number for number, stage in enumerate(semconv.STAGES)}
_MANY_CALLS: Final = 2  # model calls that make a loop
# What a retrieval or the like may hold and still be one; with anything else below it a root is a request.
_INSIDE_ONE: Final = frozenset({EMBEDDING, CONTEXT_ASSEMBLY})


class Stages(NamedTuple):
    """Stage of each span of a tree, `None` for none, and whether it was guessed from a name or an address."""

    stages: list[str | None]
    guessed: Sequence[int]  # indices


def stages_of(tree: Tree) -> Stages:
    """Return the stage of each span of a repaired trace.

    What a span says stands, but for a model span that made no call.  A guess yields to a span below it that
    says the same stage; an agent needs a loop or a tool below it, and below another agent a loop that is not
    the whole of it; a step needs an agent above it; what an agent's own code does between two of its model
    calls is a tool.
    """
    readings = [read(span) for span in tree.spans]
    doubtful = [
        i for i, said in enumerate(readings) if said.stage == GENERATION and makes_no_call(tree.spans[i])
    ]
    if not doubtful and not any(reading.is_guess for reading in readings):
        return Stages([reading.stage for reading in readings], ())
    below = _Below(tree, readings)
    for index in doubtful:
        if not below.n_calls[index]:
            readings[index] = _NONE
    _drop_guesses(tree, readings, below)
    for index, reading in enumerate(readings):
        if reading.is_guess and reading.stage == AGENT and not below.has(index, TOOL):
            _find_tools(tree, readings, index)
    guessed = [index for index, reading in enumerate(readings) if reading.is_guess]
    return Stages([reading.stage for reading in readings], guessed)


class _Below:
    """What lies below each span: stages that are said, stages that are guessed, and how many model calls."""

    def __init__(self, tree: Tree, readings: Sequence[Reading]) -> None:
        n = len(readings)
        self._said, self._guessed = [0] * n, [0] * n  # a bit for each of Hotspan's stages
        self.n_calls = [0] * n
        for index in range(n - 1, -1, -1):  # children come last
            reading, parent = readings[index], tree.parents[index]
            if parent == NO_PARENT:
                continue
            bit = _BITS.get(reading.stage or "", 0)
            self._said[parent] |= self._said[index] | (0 if reading.is_guess else bit)
            self._guessed[parent] |= self._guessed[index] | (bit if reading.is_guess else 0)
            self.n_calls[parent] += max(self.n_calls[index], reading.stage == GENERATION)

    def says(self, index: int, stage: str | None) -> bool:
        """Return whether a span below says the stage."""
        return bool(self._said[index] & _BITS.get(stage or "", 0))

    def has(self, index: int, stage: str) -> bool:
        """Return whether a span below says the stage, or may be guessed to have it."""
        return bool((self._said[index] | self._guessed[index]) & _BITS[stage])

    def has_other(self, index: int, stages: Iterable[str]) -> bool:
        """Return whether any other stage lies below."""
        return bool(
            (self._said[index] | self._guessed[index]) & ~sum(_BITS.get(stage, 0) for stage in stages)
        )


def _drop_guesses(tree: Tree, readings: list[Reading], below: _Below) -> None:
    above: list[int] = []  # nearest span with a stage above each one
    for index in range(len(readings)):  # parents come first
        parent = tree.parents[index]
        nearest = parent if parent == NO_PARENT or readings[parent].stage is not None else above[parent]
        above.append(nearest)
        if readings[index].is_guess and not _fits(tree, readings, index, nearest, below):
            readings[index] = _NONE


def _fits(tree: Tree, readings: Sequence[Reading], index: int, nearest: int, below: _Below) -> bool:
    """Return whether a guessed stage fits to what lies below it, and to the nearest stage above."""
    stage = readings[index].stage or ""
    outer = None if nearest == NO_PARENT else readings[nearest].stage
    if below.says(index, stage):
        return False
    if stage == STEP:
        return outer in {AGENT, STEP}
    if stage == AGENT and outer == AGENT:  # below a run that asks the model itself, too: an agent of its own
        return _MANY_CALLS <= below.n_calls[index] < below.n_calls[nearest]
    if stage == AGENT:
        return below.n_calls[index] >= _MANY_CALLS or below.has(index, TOOL)
    if stage == outer:  # an address below a client's call is the client's own request; likewise helpers
        return False
    return (
        stage == GENERATION
        or tree.parents[index] != NO_PARENT
        or not below.has_other(index, {stage, *_INSIDE_ONE})
    )


def _find_tools(tree: Tree, readings: list[Reading], agent: int) -> None:
    """Take what an agent's own code did between two of its model calls for its tools."""
    children = tree.children[agent]
    calls = [child for child in children if readings[child].stage == GENERATION]
    if len(calls) < _MANY_CALLS:
        return
    first_end = min(tree.ends[call] for call in calls)
    last_start = max(tree.starts[call] for call in calls)
    for child in children:
        is_plain = readings[child].stage is None and not tree.children[child]
        if is_plain and first_end <= tree.starts[child] and tree.ends[child] <= last_start:
            readings[child] = Reading(TOOL, is_guess=True)
