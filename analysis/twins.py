"""Model calls that two instrumentations wrote, in two traces or side by side in one: counted once.

Parent and child do not help here, and no id is shared.  What tells is the same process, the same model, the
same tokens and nearly the same interval, from different writers.  That is a guess: the report counts it.

Source: docs/definitions.md#trace-request-stage.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from hotspan.analysis.calls import Calls, calls_of
from hotspan.analysis.classify import outcome_of
from hotspan.analysis.gains import READ, Gains, moments_of
from hotspan.analysis.tree import NO_PARENT, Tree
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from hotspan.analysis.columns import Longs
    from hotspan.analysis.forms import Form
    from hotspan.analysis.gains import Place
    from hotspan.analysis.repair import Repairs
    from hotspan.tracer.record import AttributeValue, Resource, SpanRecord

STAGES: Final = frozenset({semconv.GENERATION, semconv.EMBEDDING})
_STEP_NS: Final = 250_000_000  # two writers' starts of one call lie no further apart than this
_NEAR_NS: Final = 50_000_000  # nor do its borders, where neither span lies within the other
_NEAR_RATIO: Final = 0.1  # of the call's duration, where that is less
_AT_LEAST_NS: Final = 5_000_000
# Of the outer span, what an inner one takes that is the same call: where both tell the same tokens, and
# where neither tells any.  A call that failed may have failed at once, in a wrapper that took its time.
_MOST_OF_IT: Final = {True: 0.5, False: 0.8}
_OWN: Final = frozenset({semconv.SCOPE_NAME})
TELLING: Final = (
    semconv.INPUT_TOKENS,
    semconv.OUTPUT_TOKENS,
    semconv.REQUEST_MODEL,
    semconv.RESPONSE_MODEL,
    semconv.OUTCOME,
    *READ,
)
_WINDOW: Final = 20_000  # calls that are remembered
_HELD: Final = 1_000  # traces of one call that wait for a twin with a parent


_Key = tuple[str, int | None, int | None, int]  # stage, tokens in and out, time in steps


class Laid(NamedTuple):
    """A trace that is repaired and read: what a collector takes in."""

    tree: Tree
    repairs: Repairs
    calls: Calls


@dataclass(slots=True, eq=False)
class _Call:
    """A model call that was seen, and who wrote it."""

    key: _Key
    start_ns: int
    end_ns: int
    models: frozenset[str]
    resource: Resource
    scopes: frozenset[str]
    has_failed: bool
    has_tokens: bool
    moments: Mapping[str, int]  # what its stream did when, Unix time
    place: Place  # in the table, of the one that is kept
    held: int | None = None  # number of the trace of its own that waits

    def is_twin_of(self, other: _Call) -> bool:
        """Return whether the two are nearly at one time, of one process and model, by different writers."""
        return (
            self.scopes.isdisjoint(other.scopes)
            and self.has_failed == other.has_failed
            and self._is_near(other)
            and _is_one_model(self, other)
            and _is_one_process(self.resource, other.resource)
        )

    def _is_near(self, other: _Call) -> bool:
        """Return whether the borders are near, or one span lies within the other and takes most of it.

        framework |--------------------|
        client       |---------------|
        """
        starts, ends = self.start_ns - other.start_ns, self.end_ns - other.end_ns
        lengths = self.end_ns - self.start_ns, other.end_ns - other.start_ns
        at_least = 0.0 if self.has_failed else _MOST_OF_IT[self.has_tokens]
        if starts * ends <= 0 and min(lengths) >= max(lengths) * at_least:
            return abs(starts) <= _STEP_NS
        near = min(_NEAR_NS, max(_AT_LEAST_NS, max(lengths) * _NEAR_RATIO))
        return abs(starts) <= near and abs(ends) <= near


@dataclass(slots=True)
class _Seen:
    """The calls that were seen last, to be found by what twins of them have in common.

    Those of the same writers are together: a service makes thousands in one moment, none of which may be
    compared with all the others.
    """

    _calls: dict[_Key, dict[frozenset[str], dict[int, _Call]]] = field(default_factory=dict)
    _order: deque[_Call] = field(default_factory=deque)

    def add(self, call: _Call) -> None:
        """Remember a call, and forget one that is too far back."""
        self._put(call)
        self._order.append(call)
        if len(self._order) > _WINDOW:
            self._take(self._order.popleft())

    def twin_of(self, call: _Call) -> _Call | None:
        """Return the first call that is a twin of this one."""
        *rest, step = call.key
        for nearby in (step - 1, step, step + 1):
            for scopes, calls in self._calls.get((*rest, nearby), {}).items():  # type: ignore[arg-type]  # as it was
                if scopes.isdisjoint(call.scopes):
                    for seen in calls.values():
                        if seen.is_twin_of(call):
                            return seen
        return None

    def join(self, call: _Call, scopes: frozenset[str]) -> None:
        """Note that others wrote the call as well."""
        self._take(call)
        call.scopes |= scopes
        self._put(call)

    def _put(self, call: _Call) -> None:
        self._calls.setdefault(call.key, {}).setdefault(call.scopes, {})[id(call)] = call

    def _take(self, call: _Call) -> None:
        of_key = self._calls[call.key]
        del of_key[call.scopes][id(call)]
        if not of_key[call.scopes]:
            del of_key[call.scopes]
        if not of_key:
            del self._calls[call.key]


@dataclass(frozen=True, slots=True)
class OwnCalls:
    """Calls of Hotspan's own at one place of a form: what is kept of them, mostly for nothing.

    Attributes:
        place: In the form.
        numbers: Of their traces, in the order of reading.
        starts: ns, as many.
        ends: The same.
        said: By attribute that tells a twin, that of each.
    """

    place: int
    numbers: Sequence[int]
    starts: Longs
    ends: Longs
    said: Mapping[str, Sequence[AttributeValue]]

    def __len__(self) -> int:
        return len(self.numbers)


_OwnOfForms = Sequence[tuple["Form", OwnCalls]]


@dataclass(slots=True)
class TwinFilter:
    """Takes out of each trace the calls that another one has already, or still brings.

    A call that is a whole trace waits a while for one with a parent, and yields to it; of others the first
    one stays.  Bounded: what is too far back is forgotten, and counted twice.
    """

    n_twins: int = 0
    gains: Gains = field(default_factory=Gains)
    _seen: _Seen = field(default_factory=_Seen)
    _held: dict[int, Laid] = field(default_factory=dict)
    _n_held: int = 0
    _own: deque[_OwnOfForms] = field(default_factory=deque)
    _n_own: int = 0
    has_others: bool = False  # calls of other writers than Hotspan were seen

    def pass_by(self, calls: _OwnOfForms) -> None:
        """Take calls of Hotspan's own that were read together; only while `has_others` is not true.

        Two of one writer are never twins, so that such calls matter only once another writer's comes.
        """
        self._own.append(calls)
        self._n_own += _n_calls(calls)
        while self._n_own - _n_calls(self._own[0]) >= _WINDOW:
            self._n_own -= _n_calls(self._own.popleft())

    def put(self, laid: Laid, before_others: Callable[[], None]) -> Iterator[Laid]:
        """Take a trace; yield those that are now ready, which may be others.

        Args:
            laid: The trace.
            before_others: Called before the first call of another writer is looked at: calls that it has
                passed by have to be known by then.
        """
        found = list(_calls(laid))
        if found and not self.has_others and any(call.scopes != _OWN for _, call in found):
            before_others()
            self.has_others = True
            for stage, span in chain.from_iterable(map(_in_order, self._own)):
                self._seen.add(_call_of(stage, [span], span))
            self._own.clear()
        is_alone = bool(found) and _is_alone(laid)
        twins: set[int] = set()
        for top, call in found:
            twin = self._seen.twin_of(call)
            if twin is None:
                call.held = self._hold(laid) if is_alone else None
                self._seen.add(call)
                continue
            self.n_twins += 1
            waiting = None
            if twin.held is not None and not is_alone:
                waiting, twin.held = self._held.pop(twin.held, None), None
            self._gain(twin, call, is_kept=waiting is not None)
            self._seen.join(twin, call.scopes)
            if waiting is None:
                twins.add(top)
            else:
                yield _without(waiting, set(waiting.calls.tops))
        if not is_alone or twins:
            yield _without(laid, twins)
        while len(self._held) > _HELD:
            yield self._held.pop(next(iter(self._held)))

    def rest(self) -> Iterator[Laid]:
        """Yield what waited in vain; call it last."""
        while self._held:
            yield self._held.pop(next(iter(self._held)))

    def _gain(self, twin: _Call, call: _Call, *, is_kept: bool) -> None:
        """Let the one of two that is kept have what the other one measured."""
        kept, other = (call, twin) if is_kept else (twin, call)
        self.gains.note(kept.place, kept.moments, other.moments, other.scopes)
        twin.moments, twin.place = {**other.moments, **kept.moments}, kept.place

    def _hold(self, laid: Laid) -> int:
        self._n_held += 1
        self._held[self._n_held] = laid
        return self._n_held


def _n_calls(calls: _OwnOfForms) -> int:
    return sum(len(own) for _, own in calls)


def _in_order(calls: _OwnOfForms) -> Iterator[tuple[str, SpanRecord]]:
    """Yield the stage and the span of each call, in the order of the traces."""
    rows = (zip(own.numbers, repeat(form), repeat(own), range(len(own)), strict=False) for form, own in calls)
    for _, form, own, row in heapq.merge(*rows, key=itemgetter(0)):
        said = {key: column[row] for key, column in own.said.items() if column[row] is not None}
        times = int(own.starts[row]), int(own.ends[row])
        span = form.spans[own.place]._replace(start_ns=times[0], end_ns=times[1], attributes=said)
        yield str(form.calls.stages[own.place]), span


def _calls(laid: Laid) -> Iterator[tuple[int, _Call]]:
    """Yield the model calls of a trace, each with the index of its outermost span."""
    tree, calls = laid.tree, laid.calls
    members: dict[int, list[int]] = {}
    for index, top in enumerate(calls.tops):
        if calls.stages[index] in STAGES:
            members.setdefault(top, []).append(index)
    for top, inside in members.items():
        yield top, _call_of(calls.stages[top] or "", [tree.spans[index] for index in inside], tree.spans[top])


def _call_of(stage: str, inside: Sequence[SpanRecord], top: SpanRecord) -> _Call:
    """Return a model call of these spans."""
    tokens = [_last(inside, key) for key in (semconv.INPUT_TOKENS, semconv.OUTPUT_TOKENS)]
    return _Call(
        key=(stage, tokens[0], tokens[1], top.start_ns // _STEP_NS),
        start_ns=top.start_ns,
        end_ns=top.start_ns if top.end_ns is None else top.end_ns,
        models=_models(inside),
        resource=top.resource,
        scopes=frozenset(span.scope.name for span in inside),
        has_failed=any(outcome_of(span) == "error" for span in inside),
        has_tokens=tokens != [None, None],
        moments=moments_of(inside) if stage == semconv.GENERATION else {},
        place=(top.start_ns, top.duration_ns),
    )


def _last(inside: Sequence[SpanRecord], key: str) -> int | None:
    found = [value for span in inside if isinstance(value := span.attributes.get(key), int)]
    return found[-1] if found else None


def _models(inside: Sequence[SpanRecord]) -> frozenset[str]:
    keys = (semconv.REQUEST_MODEL, semconv.RESPONSE_MODEL)
    values = (span.attributes.get(key) for span in inside for key in keys)
    # LiteLLM's `openai/gpt-…` is the model that its client calls `gpt-…`.
    return frozenset(value.rpartition("/")[2] for value in values if isinstance(value, str) and value)


def _is_one_model(one: _Call, other: _Call) -> bool:
    """Return whether the names may mean one model; a response names the version too, a failure maybe none."""
    if not (one.models and other.models):
        return one.has_failed
    return any(a.startswith(b) or b.startswith(a) for a in one.models for b in other.models)


def _is_one_process(one: Resource, other: Resource) -> bool:
    pids = [resource.attributes.get(semconv.PROCESS_PID) for resource in (one, other)]
    key = semconv.SERVICE_NAME if None in pids else semconv.HOST_NAME
    mine, theirs = one.attributes.get(key), other.attributes.get(key)
    return (None in pids or pids[0] == pids[1]) and (mine is None or theirs is None or mine == theirs)


def _is_alone(laid: Laid) -> bool:
    """Return whether the trace is one model call and nothing else."""
    roots = [index for index, parent in enumerate(laid.tree.parents) if parent == NO_PARENT]
    if len(roots) != 1 or laid.calls.stages[roots[0]] not in STAGES:
        return False
    return all(
        stage is None or laid.calls.tops[index] == roots[0] for index, stage in enumerate(laid.calls.stages)
    )


def _without(laid: Laid, twins: set[int]) -> Laid:
    return laid._replace(calls=calls_of(laid.tree, twins)) if twins else laid
