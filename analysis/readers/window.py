"""Spans of one trace together, wherever they lie, in bounded memory.

    spans as they are read ──► open traces ──► complete ones, handed on
                                   │   ▲
                                   ▼   │
                              a temporary file, when more than a bound of spans wait

A trace is complete when as many spans came as a `census` counted beforehand; what nothing was counted of is
complete at the end.
"""

from __future__ import annotations

import marshal
import tempfile
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, Final

from hotspan.analysis.drafts import DraftTrace, spans_of
from hotspan.analysis.readers import temporary
from hotspan.analysis.readers.items import Drafts
from hotspan.tracer.record import Event, Link, Resource, Scope, SpanRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from hotspan.analysis.drafts import Draft
    from hotspan.tracer.record import Trace

MAX_OPEN_SPANS: Final = 100_000  # that wait in memory; of a RAG service's, some 150 megabytes
_Where = list[tuple[int, int]]  # offset and length of each piece in the file


class Window:
    """The traces that are not complete yet.

    Args:
        expected: Trace id -> how many spans there are of it, as far as that is known.
        max_open: Spans that may wait in memory.

    Attributes:
        n_spilled: Spans that had to wait in the temporary file.
    """

    def __init__(self, expected: Mapping[str, int], max_open: int = MAX_OPEN_SPANS) -> None:
        self.n_spilled = 0
        self._expected = expected
        self._max_open = max_open
        self._open: dict[str, list[SpanRecord | Draft]] = {}
        self._n_open = 0
        self._is_mixed = False  # spans came that are no drafts
        self._counts: dict[str, int] = {}  # of the traces that are in the file
        self._spilled: dict[str, _Where] = {}
        self._file: IO[bytes] | None = None
        self._owners = _Owners()

    def complete(self, batches: Iterable[Sequence[SpanRecord | Draft]]) -> Iterator[Trace]:
        """Take all spans; yield each trace when it is complete, and at the end those that never were."""
        try:
            for batch in batches:
                yield from self.put(batch)
            yield from self.rest()
        finally:
            self.close()

    def close(self) -> None:
        """Let go of what is in the temporary file."""
        if self._file is not None:
            with suppress(OSError):  # what it could not write is wanted no more
                self._file.close()

    def rest(self) -> Iterator[Trace]:
        """Yield the traces that never were complete; call it last."""
        for trace_id in (*self._spilled, *self._open):
            if trace_id in self._open or trace_id in self._spilled:
                yield self._close(trace_id)

    def put(self, batch: Sequence[SpanRecord | Draft]) -> Iterator[Trace]:
        """Take some spans; yield each trace that is complete now."""
        # Hot: a few steps for each span of a file.
        self._is_mixed |= not isinstance(batch, Drafts)
        opened, counts, expected = self._open, self._counts, self._expected
        for span in batch:
            trace_id = span[0]
            waiting = opened.get(trace_id)
            if waiting is None:
                waiting = opened[trace_id] = []
            waiting.append(span)
            n_come = len(waiting)
            if counts:
                n_come += counts.get(trace_id, 0)
            self._n_open += 1
            if n_come == expected.get(trace_id):
                yield self._close(trace_id)
            elif self._n_open > self._max_open:
                with temporary.used():
                    self._spill()

    def _close(self, trace_id: str) -> Trace:
        spans = self._open.pop(trace_id, [])
        self._n_open -= len(spans)
        self._counts.pop(trace_id, None)
        pieces = self._spilled.pop(trace_id, None)
        if pieces:
            return DraftTrace(trace_id, [*self._read(pieces), *spans])
        return DraftTrace(trace_id, spans, is_mixed=self._is_mixed)

    def _spill(self) -> None:
        """Write the traces that have waited longest to the file, half of what waits."""
        if self._file is None:
            # Without a name: gone when the program ends, however that happens.
            self._file = tempfile.TemporaryFile(prefix="hotspan-")  # noqa: SIM115 - `close` does
        self._file.seek(0, 2)
        for trace_id in list(self._open):
            if self._n_open <= self._max_open // 2:
                break
            spans = self._open.pop(trace_id)
            packed = marshal.dumps([self._owners.packed(span) for span in spans_of(spans)])
            self._spilled.setdefault(trace_id, []).append((self._file.tell(), len(packed)))
            self._file.write(packed)
            self._n_open -= len(spans)
            self._counts[trace_id] = self._counts.get(trace_id, 0) + len(spans)
            self.n_spilled += len(spans)

    def _read(self, pieces: _Where) -> Iterator[SpanRecord]:
        file = self._file
        for offset, length in pieces:
            if file is None:
                return
            with temporary.used():
                file.seek(offset)
                packed = file.read(length)
            # Our own bytes, from a file that no one else can open.
            rows = marshal.loads(packed)  # noqa: S302 - no one else can have written it
            yield from map(self._owners.unpacked, rows)


class _Owners:
    """Turns spans into plain values and back; resources and scopes, which many share, stay in memory."""

    def __init__(self) -> None:
        self._resources: dict[int, tuple[int, Resource]] = {}
        self._scopes: dict[int, tuple[int, Scope]] = {}
        self._all: list[Any] = []

    def packed(self, span: SpanRecord) -> tuple[Any, ...]:
        """Return a span as plain values."""
        events = [(*event[:2], dict(event.attributes), *event[3:]) for event in span.events]
        links = [(*link[:2], dict(link.attributes), *link[3:]) for link in span.links]
        return (
            *span[:6],
            dict(span.attributes),
            *span[7:10],
            events,
            links,
            self._number(span.resource),
            self._number(span.scope),
            *span[14:],
        )

    def unpacked(self, row: tuple[Any, ...]) -> SpanRecord:
        """Return the span that was packed."""
        events, links, resource, scope = row[10:14]
        return SpanRecord._make((
            *row[:10],
            tuple(Event(*event) for event in events),
            tuple(Link(*link) for link in links),
            self._all[resource],
            self._all[scope],
            *row[14:],
        ))  # fmt: skip

    def _number(self, owner: Resource | Scope) -> int:
        numbers: dict[int, tuple[int, Any]] = self._resources if isinstance(owner, Resource) else self._scopes
        found = numbers.get(id(owner))
        if found is None:
            found = numbers[id(owner)] = (len(self._all), owner)
            self._all.append(owner)
        return found[0]
