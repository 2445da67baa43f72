"""From finished spans to exporters: bounded, counted, and never in the caller's way.

    end() ──► buffer ──► drain thread ──► SpanRecord ──┬─► channel ──► file
              (bounded)                                └─► channel ──► OTLP      one thread each

A caller appends to a deque, in C, and returns.  Every `span.CHECK_EVERY`th start of a span wakes the drain
thread and sees to it that the buffer stays within its bound, so that no other call pays for the question.
A channel is a bounded queue with a thread of its own, so that a collector which is down delays neither the
program nor the file.  Spans started = spans delivered + spans counted as lost, per channel, always.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Final

from hotspan.tracer import faults, process
from hotspan.tracer import span as spans
from hotspan.tracer.finished import batch_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hotspan.tracer.channel import Channel
    from hotspan.tracer.record import Resource, SpanBatch, SpanRecord
    from hotspan.tracer.span import Span

_log = logging.getLogger("hotspan")

MAX_BUFFERED: Final = 200_000  # finished spans that wait for the drain thread, some 700 bytes each
MAX_FOREIGN: Final = 50_000  # the same for spans that other processes wrote, a few kilobytes each
MAX_BATCH: Final = 2_048
INTERVAL_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class FlushResult:
    """What `flush` and `shutdown` found.

    Attributes:
        ok: Everything that had ended when the call began was delivered, in time, and nothing was lost so far.
        exported: Spans that every exporter has delivered since `configure`.
        lost: Spans that at least one exporter has not delivered and will not.
        faults: Faults of Hotspan itself in this process so far, of which the first was logged.
    """

    ok: bool
    exported: int
    lost: int
    faults: int = field(default_factory=faults.count)


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


@dataclass(slots=True)
class Recorder:
    """Takes finished spans from any thread and hands them to the channels.

    Attributes:
        resource: The process that the spans belong to.
        channels: One per exporter.
        born_ns: In a forked child the moment it began: spans older than that are the parent's to write.
        started: Spans that were started.
        overflowed: Spans that found the buffer full.
        n_carried: Spans that were open when the recorder before this one was replaced; they end here.
    """

    resource: Resource
    channels: list[Channel] = field(default_factory=list)
    born_ns: int = 0
    started: Tally = field(default_factory=Tally)
    overflowed: Tally = field(default_factory=Tally)
    n_carried: int = 0
    _n_drained: int = 0
    _buffer: deque[Span] = field(default_factory=deque)
    _foreign: deque[SpanRecord] = field(default_factory=deque)
    # A lock as a flag, "there is work" when it is free: an Event has a lock inside that is held for a moment,
    # and a garbage collection in that moment may end a span, which would wait for that lock for ever.
    _wake: threading.Lock = field(default_factory=threading.Lock)
    _starting: threading.Lock = field(default_factory=threading.Lock)
    _draining: threading.Lock = field(default_factory=threading.Lock)
    # Reentrant: a signal handler may shut down while its own thread does.
    _arriving: threading.RLock = field(default_factory=threading.RLock)
    _asking: deque[threading.Lock] = field(default_factory=deque)  # released when a drain is over
    _n_overflow_seen: int = 0
    _thread: threading.Thread | None = None
    _runs: bool = False  # the thread drains
    _stopped: bool = False  # no thread drains any more
    _ended: bool = False  # `shutdown` was called
    _given_up: bool = False  # what waits in the buffers is counted as lost

    @property
    def take(self) -> Callable[[Span], None]:
        """The function that takes a finished span: the only part that the traced program waits for."""
        return self._buffer.append

    @property
    def listeners(self) -> list[Callable[[Span], None]]:
        """The functions of exporters that are told of each start."""
        found = (getattr(channel.exporter, "started", None) for channel in self.channels)
        return [listener for listener in found if listener is not None]

    def check(self, _started: object = None) -> None:
        """Wake the drain thread, and drop the newest spans where it does not keep up."""
        buffer = self._buffer
        while len(buffer) > MAX_BUFFERED:
            try:
                span = buffer.pop()
            except IndexError:  # another thread was faster
                break
            if self._is_new(span):
                self.overflowed.add()
        self.start()
        self._nudge()

    def _is_new(self, span: Span) -> bool:
        """Return whether the span is this process's, and comes for the first time.

        Two threads that end one span at the same moment hand it over twice.
        """
        is_new = span.recording and span.start_ns >= self.born_ns
        span.recording = False
        return is_new

    def take_records(self, records: Sequence[SpanRecord]) -> None:
        """Take finished spans that another process wrote; what goes beyond the bound is lost, and counted."""
        with self._arriving:  # two that arrive at once would find the same room
            room = 0 if self._ended else max(0, MAX_FOREIGN - len(self._foreign))
            self._foreign.extend(records[:room])
        for channel in self.channels:
            channel.note_lost(len(records) - room)
        self._nudge()
        self.start()

    def _nudge(self) -> None:
        if self._wake.locked():
            try:
                self._wake.release()
            except RuntimeError:  # another thread was faster
                return

    def start(self) -> None:
        """Start the drain thread, once; never waits: whoever holds the lock is starting it."""
        if self._thread is not None or self._stopped or not self._starting.acquire(blocking=False):
            return
        try:
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="hotspan-recorder", daemon=True)
                thread.start()
                self._thread = thread
        except RuntimeError:  # the interpreter is about to exit and starts none; `shutdown` drains
            self._stopped = True
        finally:
            self._starting.release()

    def _run(self) -> None:
        self._runs = True
        while not self._stopped:
            self._wake.acquire(timeout=INTERVAL_S)  # taken, or not: there may be work, in either case
            n_asking = len(self._asking)
            self.drain()
            for _ in range(n_asking):
                self._asking.popleft().release()
        self._runs = False
        while self._asking:
            self._asking.popleft().release()

    def _have_drained(self, timeout_s: float) -> bool:
        """Let the drain thread hand over everything that has ended; False when it took all of the time.

        Not done here, where there is such a thread: a Ctrl-C comes to the main thread, in the middle of
        whatever it is at, and a batch that was half handed over would be lost in no count.  For the same
        reason it waits on a lock of its own, which nobody needs when the wait is cut short.
        """
        if not self._runs:  # asked of `is_alive`, a Ctrl-C within would declare a thread dead that lives
            return self.drain(timeout_s)
        drained = threading.Lock()
        drained.acquire()
        self._asking.append(drained)
        self._nudge()
        return drained.acquire(timeout=timeout_s)

    def drain(self, timeout_s: float = -1) -> bool:
        """Hand everything that has ended to the channels; False when another drain took all of the time."""
        if not self._draining.acquire(timeout=timeout_s):
            return False
        try:
            self._drain_overflow()
            while (self._buffer or self._foreign) and not self._given_up:
                batch = self._next_batch()
                for channel in self.channels:
                    channel.put(batch)
        finally:
            self._draining.release()
        return True

    def _next_batch(self) -> SpanBatch:
        # Hot: the rest of the work is done by the exporters, of whole batches.
        spans_: list[Span] = []
        buffer, born_ns = self._buffer, self.born_ns
        while buffer and len(spans_) < MAX_BATCH:
            span = buffer.popleft()
            if span.recording and span.start_ns >= born_ns:  # as `_is_new`
                spans_.append(span)
            span.recording = False
        self._n_drained += len(spans_)
        batch = batch_of(spans_, self.resource)
        while self._foreign and len(batch) < MAX_BATCH:
            batch.items.append(self._foreign.popleft())
        return batch

    def _drain_overflow(self) -> None:
        n = self.overflowed.value()
        if n > self._n_overflow_seen:
            for channel in self.channels:
                channel.note_lost(n - self._n_overflow_seen)
            self._n_overflow_seen = n

    def n_open(self) -> int:
        """Return how many spans were started and have not come here."""
        return max(0, self.n_carried + self.started.value() - self._n_drained - self._n_overflow_seen)

    def flush(self, timeout_s: float) -> FlushResult:
        """Deliver everything that has ended so far, within the time."""
        deadline = time.monotonic() + timeout_s
        drained = self._have_drained(max(0.0, timeout_s))
        idle = [channel.wait_idle(deadline) for channel in self.channels]
        return self._result(in_time=drained and all(idle))

    def shutdown(self, timeout_s: float, *, carry_on: bool = False) -> FlushResult:
        """Deliver what can be delivered within the time, count the rest as lost, and stop.

        Args:
            timeout_s: The time, in seconds.
            carry_on: Another recorder takes the spans that are open; otherwise they are lost.
        """
        if self._ended:
            return self._result(in_time=True)
        deadline = time.monotonic() + timeout_s
        self._have_drained(max(0.0, timeout_s))
        with self._arriving:  # what other processes sent is taken before this, or lost
            self._ended = self._stopped = True
        self._nudge()
        if not self.drain(max(0.0, deadline - time.monotonic())):
            # The drain that has taken the time hands over its batch and no more: the rest is counted here.
            self._given_up = True
        n_unfinished = 0 if carry_on else self.n_open()
        faults.unended(n_unfinished)
        for channel in self.channels:
            channel.note_lost(n_unfinished, "had not ended")
            channel.note_lost(len(self._foreign), "of other processes were left when time was up")
        stoppers = [_in_thread(channel.stop, deadline) for channel in self.channels]
        for stopper in stoppers:
            if stopper is not None:
                stopper.join(max(0.0, deadline - time.monotonic()) + 0.5)
        return self._result(in_time=True)

    def _result(self, *, in_time: bool) -> FlushResult:
        exported = min((channel.n_exported for channel in self.channels), default=0)
        lost = max((channel.n_lost for channel in self.channels), default=0)
        return FlushResult(ok=in_time and lost == 0, exported=exported, lost=lost)


def _in_thread(action: Callable[[float], None], deadline: float) -> threading.Thread | None:
    """Run `action` in a thread of its own; here, where the exiting interpreter starts no thread any more."""
    thread = threading.Thread(target=action, args=(deadline,), name="hotspan-stop", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        action(deadline)
        return None
    return thread


_recorder: Recorder | None = None


def install(recorder: Recorder | None) -> None:
    """Make `recorder` the one that finished spans go to; None: they go nowhere."""
    global _recorder  # noqa: PLW0603 - one recorder per process, like OpenTelemetry's provider
    with process.lock:
        _recorder = recorder
        spans.on_end = recorder.take if recorder is not None else spans.discard
        spans.on_check = _on_check_of(recorder) if recorder is not None else spans.discard
        spans.on_start = _begin if recorder is not None else spans.uncounted
    if recorder is not None and recorder.n_carried:
        recorder.start()


def _on_check_of(recorder: Recorder) -> Callable[[Span], None]:
    """Return what looks after the buffer; where somebody listens, it is called and counts at every start."""
    listeners, count_one = recorder.listeners, recorder.started.add
    if not listeners:
        return recorder.check

    def tell(span: Span) -> None:
        if count_one() % spans.CHECK_EVERY == 0:
            recorder.check()
        for listener in listeners:
            listener(span)

    return tell


def _begin() -> int:
    """Count the first span that is started, and start the thread which drains it."""
    with process.lock:
        recorder = _recorder
        if recorder is None:  # another thread has just shut down
            return spans.uncounted()
        # 0, what `int` returns, is what calls `on_check`, which then counts.
        spans.on_start = count_one = int if recorder.listeners else recorder.started.add
    recorder.start()
    return count_one()


def installed() -> Recorder | None:
    """Return the process's recorder."""
    return _recorder


def submit(records: Sequence[SpanRecord]) -> None:
    """Hand finished spans that another process wrote to the exporters."""
    if _recorder is not None:
        _recorder.take_records(records)


def warn(message: str) -> None:
    """Say once, in the log, that Hotspan cannot do what it was asked to."""
    _log.warning("hotspan: %s", message)
