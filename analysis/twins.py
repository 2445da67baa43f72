"""Model calls that two instrumentations wrote, in two traces or side by side in one: counted once.

What makes two spans one call is in `sighting`.  It is a guess: the report counts it.

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

from hotspan.analysis.calls import NO_OWNER, Calls, calls_of
from hotspan.analysis.gains import Gains
from hotspan.analysis.sighting import STAGES, STEP_NS, Kin, Sighting, Tokens, paired, sighting_of
from hotspan.analysis.tree import NO_PARENT, Tree
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from hotspan.analysis.columns import Longs
    from hotspan.analysis.forms import Form
    from hotspan.analysis.repair import Repairs
    from hotspan.tracer.record import AttributeValue, SpanRecord

_OWN: Final = frozenset({semconv.SCOPE_NAME})
_ANY: Final = "any"  # in place of a number of tokens
_WINDOW: Final = 20_000  # calls that are remembered
_HELD: Final = 1_000  # traces of one call that wait for a twin with a parent


_Key = tuple[str, int | str | None, int | str | None, int]  # stage, tokens in and out, time in steps


class Laid(NamedTuple):
    """A trace that is repaired and read: what a collector takes in."""

    tree: Tree
    repairs: Repairs
    calls: Calls


@dataclass(slots=True)
class _Seen:
    """The calls that were seen last, to be found by what twins of them have in common.

    Those of the same writers are together: a service makes thousands in one moment, none of which may be
    compared with all the others.
    """

    _calls: dict[_Key, dict[frozenset[str], dict[int, Sighting]]] = field(default_factory=dict)
    _order: deque[Sighting] = field(default_factory=deque)

    def add(self, call: Sighting) -> None:
        """Remember a call, and forget one that is too far back."""
        self._put(call)
        self._order.append(call)
        if len(self._order) > _WINDOW:
            self._take(self._order.popleft())

    def twin_of(self, call: Sighting) -> Sighting | None:
        """Return the first call that is a twin of this one, of those with the same tokens first."""
        step = call.start_ns // STEP_NS
        for tokens in _asked(call.tokens):
            for nearby in (step - 1, step, step + 1):
                for scopes, calls in self._calls.get((call.stage, *tokens, nearby), {}).items():
                    if scopes.isdisjoint(call.scopes):
                        for seen in calls.values():
                            if seen.is_twin_of(call):
                                return seen
        return None

    def join(self, call: Sighting, twin: Sighting) -> None:
        """Note that others wrote the call as well."""
        self._take(call)
        call.join(twin)
        self._put(call)

    def _put(self, call: Sighting) -> None:
        for key in _keys(call):
            self._calls.setdefault(key, {}).setdefault(call.scopes, {})[id(call)] = call

    def _take(self, call: Sighting) -> None:
        for key in _keys(call):
            of_key = self._calls[key]
            del of_key[call.scopes][id(call)]
            if not of_key[call.scopes]:
                del of_key[call.scopes]
            if not of_key:
                del self._calls[key]


def _keys(call: Sighting) -> Iterator[_Key]:
    """Yield what a call is found by: its tokens, and either number of them where it tells both."""
    prompt, output = (n or None for n in call.tokens)
    step = call.start_ns // STEP_NS
    yield call.stage, prompt, output, step
    if prompt and output:
        yield call.stage, prompt, _ANY, step
        yield call.stage, _ANY, output, step


def _asked(tokens: Tokens) -> Iterator[tuple[int | str | None, int | str | None]]:
    """Yield the tokens that a twin in another trace may tell: the same, or one of the two numbers."""
    prompt, output = (n or None for n in tokens)
    yield prompt, output
    if prompt and output:
        yield from ((prompt, None), (None, output))
    elif prompt or output:
        yield prompt or _ANY, output or _ANY


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
        found = _calls(laid)
        self._note_others(found, before_others)
        is_alone = bool(found) and _is_alone(laid)
        twins = self._twins_beside(laid, found)  # outermost spans, with that of the call that is kept
        for call, top in found.items():
            if top in twins:
                continue
            twin = self._seen.twin_of(call)
            if twin is None:
                call.held = self._hold(laid) if is_alone else None
                self._seen.add(call)
                continue
            waiting = None
            if twin.held is not None and not is_alone:
                waiting, twin.held = self._held.pop(twin.held, None), None
            self._gain(twin, call, is_kept=waiting is not None)
            self._seen.join(twin, call)
            if waiting is None:
                twins[top] = found.get(twin, NO_OWNER)
            else:
                yield _without(waiting, dict.fromkeys(waiting.calls.tops, NO_OWNER))
        if not is_alone or twins:
            yield _without(laid, twins)
        while len(self._held) > _HELD:
            yield self._held.pop(next(iter(self._held)))

    def rest(self) -> Iterator[Laid]:
        """Yield what waited in vain; call it last."""
        while self._held:
            yield self._held.pop(next(iter(self._held)))

    def _note_others(self, found: Iterable[Sighting], before_others: Callable[[], None]) -> None:
        if self.has_others or all(call.scopes == _OWN for call in found):
            return
        before_others()
        self.has_others = True
        for stage, span in chain.from_iterable(map(_in_order, self._own)):
            self._seen.add(sighting_of(stage, [span], span))
        self._own.clear()

    def _twins_beside(self, laid: Laid, found: Mapping[Sighting, int]) -> dict[int, int]:
        twins = {}
        for kept, twin in _beside(laid, found):
            self._gain(kept, twin, is_kept=False)
            twins[found[twin]] = found[kept]
        return twins

    def _gain(self, twin: Sighting, call: Sighting, *, is_kept: bool) -> None:
        """Count two as one, and let the one that is kept have what the other one measured."""
        self.n_twins += 1
        kept, other = (call, twin) if is_kept else (twin, call)
        self.gains.note_tokens(kept.place, kept.tokens, other.tokens)
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


def _calls(laid: Laid) -> dict[Sighting, int]:
    """Return the model calls of a trace, the longest first, each with the index of its outermost span."""
    tree, calls = laid.tree, laid.calls
    members: dict[int, list[int]] = {}
    for index, top in enumerate(calls.tops):
        if calls.stages[index] in STAGES:
            members.setdefault(top, []).append(index)
    found = [
        (sighting_of(calls.stages[top] or "", [tree.spans[index] for index in inside], tree.spans[top]), top)
        for top, inside in members.items()
    ]
    return dict(sorted(found, key=lambda call: call[0].start_ns - call[0].end_ns))


def _right_above(tree: Tree, calls: Calls, index: int, stage: str) -> int:
    """Return the nearest span of a stage at or above a span with nothing but steps between; else `NO_OWNER`.

    A call below a tool or an agent is that one's.
    """
    while index != NO_PARENT and (owner := calls.owners[index]) != NO_OWNER:
        if calls.stages[owner] == stage:
            return owner
        if calls.stages[owner] != semconv.STEP:
            break
        index = tree.parents[owner]
    return NO_OWNER


def _beside(laid: Laid, found: Mapping[Sighting, int]) -> Iterator[tuple[Sighting, Sighting]]:
    """Yield the twins of one trace below one span, or one below the other: the one that is kept first."""
    tree, calls = laid.tree, laid.calls
    siblings: dict[tuple[str, int | str], list[Sighting]] = {}
    for call, top in found.items():
        parent = tree.parents[top]
        above = parent if parent != NO_PARENT else tree.spans[top].parent_id
        if above is not None:
            siblings.setdefault((call.stage, above), []).append(call)
    kept_for: dict[int, Sighting] = {top: call for call, top in found.items()}
    for together in siblings.values():
        for kept, twin in paired(together, Kin.SIBLINGS):
            kept_for[found[twin]] = kept
            yield kept, twin
    for call, top in found.items():
        parent = tree.parents[top]
        outer = _right_above(tree, calls, parent, call.stage)
        if outer != NO_OWNER and kept_for[top] is call:
            kept = kept_for[calls.tops[outer]]
            if kept is not call and kept.is_twin_of(call, Kin.ANCESTOR):
                kept_for[top] = kept
                yield kept, call
                kept.join(call)


def _is_alone(laid: Laid) -> bool:
    """Return whether the trace is one model call and nothing else."""
    roots = [index for index, parent in enumerate(laid.tree.parents) if parent == NO_PARENT]
    if len(roots) != 1 or laid.calls.stages[roots[0]] not in STAGES:
        return False
    return all(
        stage is None or laid.calls.tops[index] == roots[0] for index, stage in enumerate(laid.calls.stages)
    )


def _without(laid: Laid, twins: Mapping[int, int]) -> Laid:
    return laid._replace(calls=calls_of(laid.tree, twins)) if twins else laid
