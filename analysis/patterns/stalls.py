"""Stages during which nothing else in their process moved, though other requests had work in flight.

In a program that serves several requests at once, spans of the others start and end while a call runs.  When
they never do, the call held the event loop (or the interpreter's lock) of its process.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hotspan.analysis.columns import repeat, view
from hotspan.analysis.patterns import Stall
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hotspan.analysis.calls import Calls
    from hotspan.analysis.columns import Longs
    from hotspan.analysis.forms import Form
    from hotspan.analysis.tree import Tree
    from hotspan.tracer.record import Resource

_MIN_NS: Final = 5_000_000  # a shorter call keeps nobody waiting
_NOT_COMPUTED: Final = semconv.ENVELOPES | {semconv.GENERATION}  # they wait for others
_MAX_SPANS: Final = 250_000  # that are kept; more than enough to tell

Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(slots=True)
class _Process:
    """The spans of one process, in the order of reading."""

    starts: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q"))
    kinds: array[int] = field(default_factory=lambda: array("i"))  # of innermost spans; -1 for others
    request_ns: int = 0  # durations of all requests


@dataclass(slots=True)
class StallCollector:
    """Keeps the intervals of every process's spans."""

    _processes: dict[object, _Process] = field(default_factory=dict)
    _process_of: dict[int, _Process] = field(default_factory=dict)  # by the id of a resource
    _resources: list[Resource] = field(default_factory=list)  # keeps them alive: their ids are keys
    _kinds: dict[tuple[str, str], int] = field(default_factory=dict)
    _n_spans: int = 0

    def add(self, tree: Tree, calls: Calls, below: Sequence[int]) -> None:
        """Take in one request."""
        self._n_spans += len(below)
        if self._n_spans > _MAX_SPANS:
            return
        spans, starts, ends, children = tree.spans, tree.starts, tree.ends, tree.children
        resource = spans[below[0]].resource
        process = self._process(resource)
        process.request_ns += tree.duration_ns(below[0])
        for index in below:
            span = spans[index]
            if span.resource is not resource:
                resource = span.resource
                process = self._process(resource)
            process.starts.append(starts[index])
            process.ends.append(ends[index])
            process.kinds.append(-1 if children[index] else self._kind(calls, index, span.name))

    def add_form(self, form: Form, starts: Longs, ends: Longs) -> None:
        """Take in the requests of one form; a row of starts and of ends each."""
        n, n_spans = starts.shape
        n_left = max(0, min(n, (_MAX_SPANS - self._n_spans) // n_spans))
        self._n_spans += n * n_spans
        requests_ns = (ends[:n_left, 0] - starts[:n_left, 0]).sum()
        self._process(form.spans[0].resource).request_ns += int(requests_ns)
        for index, span in enumerate(form.spans):
            process = self._process(span.resource)
            process.starts.frombytes(starts[:n_left, index].tobytes())
            process.ends.frombytes(ends[:n_left, index].tobytes())
            kind = -1 if form.children[index] else self._kind(form.calls, index, span.name)
            repeat(process.kinds, kind, n_left)

    def result(self) -> tuple[Stall, ...]:
        """Return what each stage's calls saw of the others; empty where no two requests overlapped."""
        names = list(self._kinds)
        found: dict[str, list[tuple[str, Stall]]] = {}
        for process in self._processes.values():
            for stall in _stalls(process, names):
                found.setdefault(stall.stage, []).append((stall.name, stall))
        return tuple(_sum([stall for _, stall in stalls]) for stalls in found.values())

    def _process(self, resource: Resource) -> _Process:
        known = self._process_of.get(id(resource))
        if known is None:
            identity = _identity(resource.attributes)
            known = self._processes.get(identity) or _Process()
            self._processes[identity] = self._process_of[id(resource)] = known
            self._resources.append(resource)
        return known

    def _kind(self, calls: Calls, index: int, name: str) -> int:
        owner = calls.owners[index]
        stage = calls.stages[owner] if owner >= 0 else None
        return self._kinds.setdefault((stage or "", name), len(self._kinds))


def _identity(attributes: Mapping[str, Any]) -> object:
    keys = (semconv.SERVICE_NAME, semconv.SERVICE_INSTANCE_ID, semconv.HOST_NAME, semconv.PROCESS_PID)
    return tuple(str(attributes.get(key)) for key in keys)


def _stalls(process: _Process, names: Sequence[tuple[str, str]]) -> Iterator[Stall]:
    order = np.argsort(view(process.starts), kind="stable")
    starts, ends, kinds = (view(values)[order] for values in _columns(process))
    by_start, by_end = starts, _ordered(ends)
    rate = 2 * len(starts) / max(process.request_ns, 1)  # of events, for each request in flight
    leaves = np.flatnonzero(kinds >= 0)
    starts, ends, kinds = starts[leaves], ends[leaves], kinds[leaves]
    ends_of_leaves = _ordered(ends)
    stage_of = np.array([stage for stage, _ in names], dtype=object)
    for stage in dict.fromkeys(stage_of):
        if stage and stage not in _NOT_COMPUTED:
            own = (stage_of == stage)[kinds]
            asked = own & (ends - starts >= _MIN_NS)
            if not asked.any():
                continue
            at = starts[asked]
            n_open = _open_at(starts, ends_of_leaves, at) - _open_at(starts[own], _ordered(ends[own]), at)
            if n_open.any():
                name = names[int(np.bincount(kinds[asked]).argmax())][1]
                beside = n_open > 0
                first, last = at[beside], ends[asked][beside]
                seen = _inside(by_start, first, last) + _inside(by_end, first, last)
                expected = float((rate * (last - first) * n_open[beside]).sum())
                busy, span = int((last - first).sum()), int(by_end[-1] - by_start[0])
                yield Stall(stage, name, len(first), int(seen.sum()), expected, busy, span)


def _ordered(times: Ints) -> Ints:
    return np.sort(times, kind="stable")  # the quicker one here: traces were read in order of time, nearly


def _columns(process: _Process) -> tuple[array[int], array[int], array[int]]:
    return process.starts, process.ends, process.kinds


def _open_at(starts: Ints, ends: Ints, at: Ints) -> Ints:
    return np.searchsorted(starts, at, side="left") - np.searchsorted(ends, at, side="right")


def _inside(ordered: Ints, first: Ints, last: Ints) -> Ints:
    return np.searchsorted(ordered, last, side="left") - np.searchsorted(ordered, first, side="right")


def _sum(stalls: Sequence[Stall]) -> Stall:
    largest = max(stalls, key=lambda stall: stall.busy_ns)
    return Stall(
        stage=largest.stage,
        name=largest.name,
        n_calls=sum(stall.n_calls for stall in stalls),
        n_seen=sum(stall.n_seen for stall in stalls),
        n_expected=sum(stall.n_expected for stall in stalls),
        busy_ns=sum(stall.busy_ns for stall in stalls),
        process_ns=sum(stall.process_ns for stall in stalls),
    )
