"""Clocks of other processes set right, on request: never by itself, never within a process, and always said.

A span of another process that does not lie within its parent is moved, with all that its process wrote below
it, so that what is left of the parent's time is half before it and half after.  That is a guess about the
trip of the bytes; a span that really went on after its parent is moved too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from hotspan.analysis.classify import is_engine_span
from hotspan.analysis.readers import ReadEvidence
from hotspan.tracer import semconv
from hotspan.tracer.record import Resource, SpanRecord, Trace

if TYPE_CHECKING:
    from collections.abc import Iterable

_IDENTITY: Final = (
    semconv.SERVICE_NAME,
    semconv.SERVICE_INSTANCE_ID,
    semconv.HOST_NAME,
    semconv.PROCESS_PID,
)
_NS_PER_MS: Final = 1e6


class Adjusted(Iterator[Trace]):
    """The traces with spans of other processes moved to where they can have been; iterate it once.

    `evidence` is the reader's; when the traces are exhausted it says which process was moved and by how much.
    """

    def __init__(self, traces: Iterable[Trace]) -> None:
        found: Any = getattr(traces, "evidence", None)
        self.evidence = found if isinstance(found, ReadEvidence) else ReadEvidence()
        self._shifts: dict[str, list[int]] = {}  # of each process, of every group of spans
        self._traces = self._adjust(traces)

    def __next__(self) -> Trace:
        return next(self._traces)

    def _adjust(self, traces: Iterable[Trace]) -> Iterator[Trace]:
        for trace in traces:
            yield self._adjusted(trace)
        for process, shifts in self._shifts.items():
            least, most = min(shifts) / _NS_PER_MS, max(shifts) / _NS_PER_MS
            by = f"{most:+.3f} ms" if least == most else f"{least:+.3f} to {most:+.3f} ms"
            times = "once" if len(shifts) == 1 else f"{len(shifts)} times"
            self.evidence.warn(f"the clock of {process} was shifted by {by}, {times}, as asked")

    def _adjusted(self, trace: Trace) -> Trace:
        by_id = trace.by_id
        shift_of: dict[str, int] = {}
        for span in _parents_first(trace):
            parent = by_id.get(span.parent_id or "")
            if parent is None or span is parent:
                continue
            moved = shift_of.get(parent.span_id, 0)
            if _process(span.resource) == _process(parent.resource):
                shift_of[span.span_id] = moved
            elif not is_engine_span(span):
                shift_of[span.span_id] = shift = _needed(span, parent, moved)
                if shift:
                    self._shifts.setdefault(_name(span.resource), []).append(shift)
        if not any(shift_of.values()):
            return trace
        return Trace(trace.trace_id, [_moved(span, shift_of.get(span.span_id, 0)) for span in trace.spans])


def adjust_skew(traces: Iterable[Trace]) -> Adjusted:
    """Return the traces with spans of other processes moved into their parents, for `analyse`."""
    return Adjusted(traces)


def _parents_first(trace: Trace) -> Iterator[SpanRecord]:
    """Yield the spans that hang below a root, each after its parent; what is in a loop is left out."""
    waiting = list(trace.roots)
    while waiting:
        span = waiting.pop()
        yield span
        waiting.extend(trace.children_of(span))


def _needed(span: SpanRecord, parent: SpanRecord, moved: int) -> int:
    """Return by how much a span has to be moved to lie within its parent, which itself was moved."""
    if span.end_ns is None or parent.end_ns is None:
        return 0
    start, end = parent.start_ns + moved, parent.end_ns + moved
    if start <= span.start_ns and span.end_ns <= end:
        return 0
    room = max(end - start - span.duration_ns, 0)  # a longer one begins with its parent
    return start + room // 2 - span.start_ns


def _moved(span: SpanRecord, shift: int) -> SpanRecord:
    if not shift:
        return span
    end = None if span.end_ns is None else span.end_ns + shift
    return span._replace(start_ns=span.start_ns + shift, end_ns=end)


def _process(resource: Resource) -> tuple[object, ...]:
    return tuple(str(resource.attributes.get(key)) for key in _IDENTITY)


def _name(resource: Resource) -> str:
    found = (resource.attributes.get(key) for key in (semconv.SERVICE_NAME, semconv.HOST_NAME))
    return " on ".join(str(value) for value in found if value is not None) or "another process"
