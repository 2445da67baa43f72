"""Starts workers, and adds up what they send: see `messages`."""

from __future__ import annotations

import itertools
import logging
import os
import pickle
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from hotspan.analysis.collect import Collector
from hotspan.analysis.parallel.messages import End, Left, Order, Read, receive, send
from hotspan.analysis.parallel.processes import can_be_copied, can_be_started, copies, interpreters
from hotspan.analysis.parallel.ranges import Range, UnfitError, ranges_of
from hotspan.analysis.readers.window import Window
from hotspan.tracer.record import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hotspan.analysis.forms import Form
    from hotspan.analysis.parallel.processes import Process
    from hotspan.analysis.readers import TraceReader
    from hotspan.tracer.record import SpanRecord

MIN_BYTES: Final = 64 << 20  # less is read before new interpreters are of use
MIN_COPY_BYTES: Final = 6 << 20  # or copies
NEAR_BYTES: Final = 16 << 20
_MAX_WORKERS: Final = 4  # one process adds up what so many read
_MAX_RAW_BYTES: Final = 32 << 20
_ID_BYTES: Final = 16

_logger = logging.getLogger(__name__)


def collect(reader: TraceReader) -> Collector | None:
    """Return what all traces of a reader come to; `None` where one process has to read them.

    The reader's evidence is complete afterwards, or as if nothing had been read.
    """
    n_workers = min(_n_cores(), _MAX_WORKERS)
    is_copied = can_be_copied()
    if n_workers < 2 or not (is_copied or can_be_started()):  # noqa: PLR2004 - several
        return None
    file = reader.file_of_lines(MIN_COPY_BYTES if is_copied else MIN_BYTES)
    if file is None:
        return None
    with ExitStack() as stack:
        try:
            processes = (copies if is_copied else interpreters)(n_workers, stack)
            workers = list(map(_Worker, processes, ranges_of(file, n_workers)))
            collector = _Pool(reader, workers).run()
        except (UnfitError, EOFError, OSError, pickle.UnpicklingError) as exc:
            _logger.debug("read by one process: %r", exc, exc_info=True)
            reader.forget()
            return None
    reader.exhaust()
    return collector


def _n_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Worker:
    """One worker, from this side."""

    def __init__(self, process: Process, lines: Range) -> None:
        self.forms: list[Form] = []
        self.end: End | None = None
        self.is_done = False
        self._process = process
        self.send(Order(lines, NEAR_BYTES))

    def receive(self) -> Any:
        """Return the worker's next message."""
        return receive(self._process.answers)

    def send(self, message: object) -> None:
        """Tell the worker something."""
        send(self._process.orders, message)


class _Pool:
    def __init__(self, reader: TraceReader, workers: Sequence[_Worker]) -> None:
        self._reader = reader
        self._workers = workers
        self._collector = Collector()
        self._lines: list[list[tuple[int, bytes]]] = [[] for _ in workers]
        self._n_raw = 0  # bytes of them
        self._left: list[Sequence[SpanRecord]] = []
        self._done: set[bytes] = set()

    def run(self) -> Collector:
        self._take_turns(lambda worker: worker.end is not None)
        shared = {trace_id for end in self._ends() for trace_id in end.foreign_ids}
        for worker in self._workers:
            worker.send(shared)
        self._take_turns(lambda worker: worker.is_done)
        self._add_rest()
        return self._collector

    def _ends(self) -> list[End]:
        return [worker.end for worker in self._workers if worker.end is not None]

    def _take_turns(self, is_through: Callable[[_Worker], bool]) -> None:
        # In turns, so that whatever depends on the order is the same the next time.
        running = list(enumerate(self._workers))
        while running:
            for number, worker in running:
                self._take(number, worker, worker.receive())
            running = [item for item in running if not is_through(item[1])]

    def _take(self, number: int, worker: _Worker, message: Read | End | Left) -> None:
        if isinstance(message, End):
            worker.end = message
        elif isinstance(message, Left):
            self._left += message.traces
            worker.is_done = True
        else:
            self._finish(message.done)
            worker.forms += message.forms
            self._lines[number] += message.lines
            self._n_raw += sum(len(text) for _, text in message.lines)
            if self._n_raw > _MAX_RAW_BYTES:
                raise UnfitError
            for spans in message.traces:
                self._add(Trace(spans[0].trace_id, spans))
            self._collector.add_batches([
                replace(batch, form=worker.forms[form]) for form, batch in message.batches
            ])  # fmt: skip

    def _add(self, trace: Trace) -> None:
        self._collector.add(trace)
        if self._collector.twins.has_others:  # they may have their twins in what came as columns
            raise UnfitError

    def _finish(self, ids: bytes) -> None:
        """Take the ids of complete traces: none may be another worker's, too."""
        done = {ids[at : at + _ID_BYTES] for at in range(0, len(ids), _ID_BYTES)}
        if not done.isdisjoint(self._done):
            raise UnfitError
        self._done |= done

    def _add_rest(self) -> None:
        """Add what several have spans of, and the lines that are read here."""
        window = Window({})
        for trace in window.complete(itertools.chain(self._left, self._spans_of_lines())):
            if bytes.fromhex(trace.trace_id) in self._done:
                raise UnfitError
            self._add(trace)
        self._reader.evidence.n_spilled_spans += window.n_spilled

    def _spans_of_lines(self) -> Iterator[Sequence[Any]]:
        n_before, lines = 0, []
        for end, of_worker in zip(self._ends(), self._lines, strict=True):
            lines += [(n_before + number, text) for number, text in of_worker]
            n_before += end.n_lines
        if lines and lines[-1][0] < n_before:
            lines.append((n_before, b""))
        return self._reader.spans_of_lines(lines, has_others=bool(self._done or self._left))
