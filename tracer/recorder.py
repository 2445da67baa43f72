"""From finished spans to exporters: bounded, counted, and never in the caller's way.

    end() ──► buffer ──► drain thread ──► SpanRecord ──┬─► channel ──► file
              (bounded)                                └─► channel ──► OTLP      one thread each

A caller appends to a deque and returns.  A channel is a bounded queue with a thread of its own, so that a
collector which is down delays neither the program nor the file.  Spans started = spans delivered + spans
counted as lost, per channel, always.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Protocol

from hotspan.tracer import span as spans
from hotspan.tracer import streaming

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hotspan.tracer.record import Resource, SpanRecord
    from hotspan.tracer.span import Span

_log = logging.getLogger("hotspan")

MAX_BUFFERED: Final = (
    100_000  # finished spans that wait for the drain thread, and spans that wait in a channel
)
WAKE_AT: Final = 512  # finished spans at which the drain thread is woken before its time
MAX_BATCH: Final = 2_048
INTERVAL_S: Final = 0.1


class Exporter(Protocol):
    """Where spans go.  Called from one thread only, its channel's."""

    def export(self, spans: Sequence[SpanRecord], /) -> None:
        """Deliver the spans, or raise: then they count as lost."""

    def shutdown(self) -> None:
        """Stop waiting for anything, and free what is held; may be called while `export` runs."""


@dataclass(frozen=True, slots=True)
class FlushResult:
    """What `flush` and `shutdown` found.

    Attributes:
        ok: Everything that had ended when the call began was delivered, in time, and nothing was lost so far.
        exported: Spans that every exporter has delivered since `configure`.
        lost: Spans that at least one exporter has not delivered and will not.
    """

    ok: bool
    exported: int
    lost: int


class Tally:
    """A counter that many threads may add to without a lock: `next` of a count is one atomic step."""

    __slots__ = ("_lock", "_n_reads", "_next")

    def __init__(self) -> None:
        self._next: Callable[[], int] = count().__next__
        self._n_reads = 0
        self._lock = threading.Lock()

    @property
    def add(self) -> Callable[[], int]:
        """The function that adds one."""
        return self._next

    def value(self) -> int:
        """Return how often `add` was called."""
        with self._lock:
            n = self._next() - self._n_reads
            self._n_reads += 1
            return n


class Channel:
    """One exporter behind a bounded queue and a thread of its own."""

    def __init__(self, exporter: Exporter, name: str) -> None:
        self.exporter, self.name = exporter, name
        self.n_exported = 0
        self.n_lost = 0
        self._n_unreported = 0  # lost, and not yet written down by the exporter
        self._queue: deque[Sequence[SpanRecord]] = deque()
        self._n_waiting = 0
        self._changed = threading.Condition()
        self._stopping = False
        self._warned = False
        self._thread = threading.Thread(target=self._run, name=f"hotspan-{name}", daemon=True)
        self._thread.start()

    def put(self, batch: Sequence[SpanRecord]) -> None:
        """Queue the batch, or count it as lost when the queue is full."""
        with self._changed:
            if self._stopping or self._n_waiting + len(batch) > MAX_BUFFERED:
                self._lose(len(batch))
            else:
                self._queue.append(batch)
                self._n_waiting += len(batch)
            self._changed.notify_all()

    def note_lost(self, n_spans: int) -> None:
        """Count spans that were lost before they came here."""
        with self._changed:
            self._lose(n_spans)
            self._changed.notify_all()

    def wait_idle(self, deadline: float) -> bool:
        """Wait until everything queued was delivered or lost; False when the deadline came first."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._n_waiting and not self._n_unreported, max(0.0, deadline - time.monotonic())
            )

    def stop(self, deadline: float) -> None:
        """Deliver what is queued until the deadline, count the rest as lost, and close the exporter."""
        self.wait_idle(deadline)
        with self._changed:
            self._stopping = True
            self._lose(sum(map(len, self._queue)))
            self._n_waiting -= sum(map(len, self._queue))
            self._queue.clear()
            self._changed.notify_all()
        self._call(self.exporter.shutdown)
        self._thread.join(max(0.2, deadline - time.monotonic()))
        if self._thread.is_alive():
            self._lose(self._n_waiting)

    def _lose(self, n_spans: int) -> None:
        if n_spans:
            self.n_lost += n_spans
            self._n_unreported += n_spans
            self._warn(
                f"{n_spans} spans were lost on the way to {self.name}: it is too slow or does not answer"
            )

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._stopping or self._n_unreported)
                if not self._queue and not self._n_unreported:
                    return
                batch: Sequence[SpanRecord] = self._queue.popleft() if self._queue else ()
                n_unreported = self._n_unreported
            self._deliver(batch, n_unreported)

    def _deliver(self, batch: Sequence[SpanRecord], n_unreported: int) -> None:
        failed = bool(batch) and not self._call(self.exporter.export, batch)
        report = getattr(self.exporter, "report_lost", None)
        if n_unreported and report is not None:
            self._call(report, n_unreported)
        with self._changed:
            self._n_unreported -= n_unreported
            self._n_waiting -= len(batch)
            if failed:
                self.n_lost += len(batch)
                self._n_unreported += len(batch) if report is not None else 0
            else:
                self.n_exported += len(batch)
            self._changed.notify_all()

    def _call(self, action: Callable[..., Any], *args: Any) -> bool:
        try:
            action(*args)
        except Exception as exc:  # noqa: BLE001 - a fault of an exporter must not end its thread
            self._warn(f"{self.name}: {type(exc).__name__}: {exc}")
            return False
        return True

    def _warn(self, message: str) -> None:
        # Once: a collector that is down would otherwise fill the user's log.
        if not self._warned:
            self._warned = True
            _log.warning("hotspan: %s (said once; the loss is counted)", message)


@dataclass(slots=True)
class Recorder:
    """Takes finished spans from any thread and hands them to the channels.

    Attributes:
        resource: The process that the spans belong to.
        channels: One per exporter.
        born_ns: In a forked child the moment it began: spans older than that are the parent's to write.
        started: Spans that were started.
        overflowed: Spans that found the buffer full.
    """

    resource: Resource
    channels: list[Channel] = field(default_factory=list)
    born_ns: int = 0
    started: Tally = field(default_factory=Tally)
    overflowed: Tally = field(default_factory=Tally)
    _buffer: deque[Span] = field(default_factory=deque)
    _foreign: deque[SpanRecord] = field(default_factory=deque)
    _wake: threading.Event = field(default_factory=threading.Event)
    _draining: threading.Lock = field(default_factory=threading.Lock)
    _n_overflow_seen: int = 0
    _thread: threading.Thread | None = None
    _stopped: bool = False

    def take(self, span: Span) -> None:
        """Take a finished span: the only part that the traced program waits for."""
        buffer = self._buffer
        if len(buffer) >= WAKE_AT:
            if len(buffer) >= MAX_BUFFERED:
                self.overflowed.add()
                return
            self._wake.set()
        if span.start_ns >= self.born_ns:
            buffer.append(span)
        if self._thread is None:
            self._start()

    def take_records(self, records: Iterable[SpanRecord]) -> None:
        """Take finished spans that another process wrote."""
        self._foreign.extend(records)
        self._wake.set()
        if self._thread is None:
            self._start()

    def _start(self) -> None:
        with self._draining:
            if self._thread is None and not self._stopped:
                self._thread = threading.Thread(target=self._run, name="hotspan-recorder", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while not self._stopped:
            self._wake.wait(INTERVAL_S)
            self._wake.clear()
            self.drain()

    def drain(self) -> None:
        """Hand everything that has ended to the channels."""
        with self._draining:
            self._drain_overflow()
            while self._buffer or self._foreign:
                batch = self._next_batch()
                for channel in self.channels:
                    channel.put(batch)

    def _next_batch(self) -> list[SpanRecord]:
        batch: list[SpanRecord] = []
        while self._buffer and len(batch) < MAX_BATCH:
            batch.append(self._buffer.popleft().record(self.resource))
        while self._foreign and len(batch) < MAX_BATCH:
            batch.append(self._foreign.popleft())
        return batch

    def _drain_overflow(self) -> None:
        n = self.overflowed.value()
        if n > self._n_overflow_seen:
            for channel in self.channels:
                channel.note_lost(n - self._n_overflow_seen)
            self._n_overflow_seen = n

    def flush(self, timeout_s: float) -> FlushResult:
        """Deliver everything that has ended so far, within the time."""
        deadline = time.monotonic() + timeout_s
        self.drain()
        idle = [channel.wait_idle(deadline) for channel in self.channels]
        return self._result(in_time=all(idle))

    def shutdown(self, timeout_s: float) -> FlushResult:
        """Deliver what can be delivered within the time, count the rest as lost, and stop."""
        deadline = time.monotonic() + timeout_s
        streaming.end_open_streams()
        self._stopped = True
        self._wake.set()
        self.drain()
        stoppers = [
            threading.Thread(target=channel.stop, args=(deadline,), name="hotspan-stop", daemon=True)
            for channel in self.channels
        ]
        for stopper in stoppers:
            stopper.start()
        for stopper in stoppers:
            stopper.join(max(0.0, deadline - time.monotonic()) + 0.5)
        return self._result(in_time=True)

    def _result(self, *, in_time: bool) -> FlushResult:
        exported = min((channel.n_exported for channel in self.channels), default=0)
        lost = max((channel.n_lost for channel in self.channels), default=0)
        return FlushResult(ok=in_time and lost == 0, exported=exported, lost=lost)


_recorder: Recorder | None = None


def install(recorder: Recorder | None) -> None:
    """Make `recorder` the one that finished spans go to; None: they go nowhere."""
    global _recorder  # noqa: PLW0603 - one recorder per process, like OpenTelemetry's provider
    _recorder = recorder
    spans.on_end = recorder.take if recorder is not None else _nowhere
    spans.on_start = recorder.started.add if recorder is not None else int


def _nowhere(_span: Span) -> None:
    """Take a finished span while nothing is configured."""


def installed() -> Recorder | None:
    """Return the process's recorder."""
    return _recorder


def submit(records: Iterable[SpanRecord]) -> None:
    """Hand finished spans that another process wrote to the exporters."""
    if _recorder is not None:
        _recorder.take_records(records)


def warn(message: str) -> None:
    """Say once, in the log, that Hotspan cannot do what it was asked to."""
    _log.warning("hotspan: %s", message)
