"""A model call as its spans tell it, and whether two such are one call that two instrumentations wrote.

No id is shared.  What tells is the same process, the same model, nearly the same interval and tokens that do
not contradict each other, from different writers.  That is a guess.

Source: docs/definitions.md#trace-request-stage.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass
from enum import Enum
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from hotspan.analysis.classify import outcome_of
from hotspan.analysis.gains import READ, moments_of
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hotspan.analysis.gains import Place
    from hotspan.tracer.record import Resource, SpanRecord

STAGES: Final = frozenset({semconv.GENERATION, semconv.EMBEDDING})
COUNTS: Final = (semconv.INPUT_TOKENS, semconv.OUTPUT_TOKENS)
TELLING: Final = (*COUNTS, semconv.REQUEST_MODEL, semconv.RESPONSE_MODEL, semconv.OUTCOME, *READ)
STEP_NS: Final = 250_000_000  # two writers' starts of one call lie no further apart than this
_NEAR_NS: Final = 50_000_000  # nor do its borders, where neither span lies within the other
_NEAR_RATIO: Final = 0.1  # of the call's duration, where that is less
_AT_LEAST_NS: Final = 5_000_000
_FEW_TOKENS: Final = 2  # by which two writers' numbers of one call may differ
_FEW_RATIO: Final = 0.1
_MOST_BESIDE: Final = 500  # calls at one moment that one is compared with

Tokens = tuple[int | None, int | None]  # in and out; None: not told


class Kin(Enum):
    """Where two calls stand to each other."""

    NONE = "in two traces, or in two places of one"
    SIBLINGS = "below one span"
    ANCESTOR = "one below the other"


class _Needed(NamedTuple):
    """How alike in time two calls have to be, where one of the two spans lies within the other."""

    ratio: float  # of the outer span, what the inner one takes at least
    may_stick_out: bool  # whether it need not lie within, if the borders are near


_ALIKE: Final = _Needed(0.5, may_stick_out=True)
_NONE_TELLS: Final = _Needed(0.8, may_stick_out=True)
_DIFFERENT: Final = _Needed(0.9, may_stick_out=False)
_ONE_TELLS: Final = {Kin.NONE: None, Kin.SIBLINGS: _ALIKE, Kin.ANCESTOR: _DIFFERENT}


@dataclass(slots=True, eq=False)
class Sighting:
    """A model call that was seen, and who wrote it."""

    stage: str
    tokens: Tokens
    start_ns: int
    end_ns: int
    models: frozenset[str]
    resource: Resource
    scopes: frozenset[str]
    has_failed: bool
    moments: Mapping[str, int]  # what its stream did when, Unix time
    place: Place  # in the table, of the one that is kept
    held: int | None = None  # number of the trace of its own that waits

    def is_twin_of(self, other: Sighting, kin: Kin = Kin.NONE) -> bool:
        """Return whether the two are nearly at one time, of one process and model, by different writers."""
        return (
            self.scopes.isdisjoint(other.scopes)
            and self.has_failed == other.has_failed
            and self._is_near(other, kin)
            and _is_one_model(self, other)
            and _is_one_process(self.resource, other.resource)
        )

    def distance(self, other: Sighting) -> tuple[int, int]:
        """Return how unlike two twins are: numbers of tokens that differ, and ns between their borders."""
        differing = sum(mine != theirs for mine, theirs in zip(self.tokens, other.tokens, strict=True))
        return differing, abs(self.start_ns - other.start_ns) + abs(self.end_ns - other.end_ns)

    def join(self, twin: Sighting) -> None:
        """Take in who wrote the call as well, and what only they tell of its tokens."""
        self.scopes |= twin.scopes
        self.tokens = (self.tokens[0] or twin.tokens[0], self.tokens[1] or twin.tokens[1])

    def n_told(self) -> int:
        """Return of how many numbers of tokens and moments of the stream the call tells."""
        return sum(map(bool, self.tokens)) + len(self.moments)

    def _is_near(self, other: Sighting, kin: Kin) -> bool:
        """Return whether the borders are near, or one span lies within the other and takes most of it.

        framework |--------------------|
        client       |---------------|
        """
        needed = _needed(self.tokens, other.tokens, kin)
        if needed is None:
            return False
        starts, ends = self.start_ns - other.start_ns, self.end_ns - other.end_ns
        lengths = self.end_ns - self.start_ns, other.end_ns - other.start_ns
        # What failed may have failed at once, in a wrapper that took its time.
        at_least = 0.0 if self.has_failed and needed.may_stick_out else needed.ratio
        if starts * ends <= 0 and min(lengths) >= max(lengths) * at_least:
            return abs(starts) <= STEP_NS
        near = min(_NEAR_NS, max(_AT_LEAST_NS, max(lengths) * _NEAR_RATIO))
        return needed.may_stick_out and abs(starts) <= near and abs(ends) <= near


def _needed(mine: Tokens, theirs: Tokens, kin: Kin) -> _Needed | None:
    """Return how alike in time two calls are that may be one, by what they tell of their tokens."""
    told = [(a, b) for a, b in zip(mine, theirs, strict=True) if a and b]
    if any(a != b for a, b in told):
        # One counts what opens a message, or what was cached; hardly two calls agree in neither number.
        is_close = any(abs(a - b) <= max(_FEW_TOKENS, _FEW_RATIO * max(a, b)) for a, b in told)
        return _DIFFERENT if is_close and kin is not Kin.NONE else None
    if told:
        return _ALIKE
    return _ONE_TELLS[kin] if any(mine) or any(theirs) else _NONE_TELLS


def sighting_of(stage: str, inside: Sequence[SpanRecord], top: SpanRecord) -> Sighting:
    """Return a model call of these spans."""
    return Sighting(
        stage=stage,
        tokens=(_last(inside, semconv.INPUT_TOKENS), _last(inside, semconv.OUTPUT_TOKENS)),
        start_ns=top.start_ns,
        end_ns=top.start_ns if top.end_ns is None else top.end_ns,
        models=_models(inside),
        resource=top.resource,
        scopes=frozenset(span.scope.name for span in inside),
        has_failed=any(outcome_of(span) == "error" for span in inside),
        moments=moments_of(inside) if stage == semconv.GENERATION else {},
        place=(top.start_ns, top.duration_ns),
    )


def paired(calls: Sequence[Sighting], kin: Kin) -> Iterator[tuple[Sighting, Sighting]]:
    """Yield the twins among related calls: the one that is kept, which is the longer one, and the other.

    Each has at most one twin by each writer, the one that is most like it.  The one that is kept joins the
    other when the next pair is asked for.
    """
    if len({call.scopes for call in calls}) < 2:  # noqa: PLR2004 - one writer's are never twins
        return
    kept: list[tuple[int, int, Sighting]] = []
    start = itemgetter(0)
    for number, call in enumerate(sorted(calls, key=lambda call: call.start_ns - call.end_ns)):
        first = bisect_left(kept, call.start_ns - STEP_NS, key=start)
        behind = bisect_right(kept, call.start_ns + STEP_NS, key=start)
        near = kept[max(first, behind - _MOST_BESIDE) : behind]
        twins = [other for _, _, other in near if other.is_twin_of(call, kin)]
        if twins:
            twin = min(twins, key=call.distance)
            yield twin, call
            twin.join(call)
        else:
            insort(kept, (call.start_ns, number, call), key=itemgetter(0, 1))


def _last(inside: Sequence[SpanRecord], key: str) -> int | None:
    found = [value for span in inside if isinstance(value := span.attributes.get(key), int)]
    return found[-1] if found else None


def _models(inside: Sequence[SpanRecord]) -> frozenset[str]:
    keys = (semconv.REQUEST_MODEL, semconv.RESPONSE_MODEL)
    values = (span.attributes.get(key) for span in inside for key in keys)
    # LiteLLM's `openai/gpt-…` is the model that its client calls `gpt-…`.
    return frozenset(value.rpartition("/")[2] for value in values if isinstance(value, str) and value)


def _is_one_model(one: Sighting, other: Sighting) -> bool:
    """Return whether the names may mean one model; a response names the version too, a failure maybe none."""
    if not (one.models and other.models):
        return one.has_failed
    return any(a.startswith(b) or b.startswith(a) for a in one.models for b in other.models)


def _is_one_process(one: Resource, other: Resource) -> bool:
    pids = [resource.attributes.get(semconv.PROCESS_PID) for resource in (one, other)]
    key = semconv.SERVICE_NAME if None in pids else semconv.HOST_NAME
    mine, theirs = one.attributes.get(key), other.attributes.get(key)
    return (None in pids or pids[0] == pids[1]) and (mine is None or theirs is None or mine == theirs)
