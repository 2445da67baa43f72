"""One exporter behind a bounded queue and a thread of its own.

A collector that is down, or slow, delays neither the program nor the other exporters.  What does not fit,
what the exporter refuses and what is left when time is up is counted, and noted where the exporter can.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hotspan.tracer.record import SpanRecord

_log = logging.getLogger("hotspan")

MAX_WAITING: Final = 100_000  # spans that wait in one channel
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.000_05, 0.005  # between two looks at whether all was delivered
GRACE_S: Final = 0.2  # beyond the deadline, for a thread to see that it is to stop


class Exporter(Protocol):
    """Where spans go.  Called from one thread only, its channel's.

    It may also have `started(span)`, called on the thread that starts a stage, which must not raise;
    `report_lost(n_spans)`, which writes a loss down where the spans would have been, and
    `pack(spans)`, called from the recorder's thread: it returns what `export` is given instead of the spans,
    smaller while it waits; its `len` is the number of spans.
    """

    def export(self, spans: Sequence[SpanRecord], /) -> None:
        """Deliver the spans, or raise: then they count as lost (all, or `n_lost` of the exception)."""

    def shutdown(self) -> None:
        """Stop waiting for anything, and free what is held; may be called while `export` runs."""


class Channel:
    """Queue, thread and counts of one exporter.

    Attributes:
        exporter: Where the spans go.
        name: What the user calls it, e.g. "otlp".
        n_exported: Spans that were delivered.
        n_lost: Spans that were not delivered and will not be.
    """

    def __init__(self, exporter: Exporter, name: str) -> None:
        self.exporter, self.name = exporter, name
        self.n_exported = 0
        self.n_lost = 0
        self._n_unwritten = 0  # lost, and not yet written down by the exporter
        self._report: Callable[[int], None] | None = getattr(exporter, "report_lost", None)
        self._report_due = False
        self._pack: Callable[[Sequence[SpanRecord]], Any] | None = getattr(exporter, "pack", None)
        self._queue: deque[Sequence[SpanRecord]] = deque()
        self._n_waiting = 0  # queued, or being delivered
        self._changed = threading.Condition()
        self._stopping = False
        self._given_up = False
        self._warned = False
        self._thread = threading.Thread(target=self._run, name=f"hotspan-{name}", daemon=True)
        self._thread.start()

    def put(self, batch: Sequence[SpanRecord]) -> None:
        """Queue the batch, or count it as lost when the queue is full."""
        # As records or as what the exporter packs, so that nothing of the program is held while they wait.
        batch = list(batch) if self._pack is None else self._attempt_to_pack(self._pack, batch)
        with self._changed:
            fits = not self._stopping and self._n_waiting + len(batch) <= MAX_WAITING
            if fits:
                self._queue.append(batch)
                self._n_waiting += len(batch)
            else:
                self._lose(len(batch))
            self._changed.notify_all()
        if not fits:
            self._warn_of_loss(len(batch))

    def note_lost(self, n_spans: int, why: str = "found the buffer full") -> None:
        """Count spans that were lost before they came here."""
        if n_spans > 0:
            with self._changed:
                self._lose(n_spans)
                self._changed.notify_all()
            self._warn(f"{_counted(n_spans)} {why}")

    def wait_idle(self, deadline: float) -> bool:
        """Wait until everything queued was delivered or lost; False when the deadline came first."""
        # Looks again and again: a Ctrl-C within the condition's own code would leave its lock taken.
        # `_n_waiting` is the last that a delivery changes.
        pause_s = SHORTEST_PAUSE_S
        while self._n_waiting or self._report_due:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            time.sleep(min(pause_s, left_s))
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        return True

    def stop(self, deadline: float) -> None:
        """Deliver what is queued until the deadline, count the rest as lost, and close the exporter."""
        self.wait_idle(deadline)
        with self._changed:
            n_left = sum(map(len, self._queue))
            self._queue.clear()
            self._n_waiting -= n_left
            self._lose(n_left)
            self._stopping = True
            self._changed.notify_all()
        if n_left:
            self._warn_of_loss(n_left)
        self._attempt(self.exporter.shutdown)
        self._thread.join(max(GRACE_S, deadline - time.monotonic()))
        with self._changed:
            self._given_up = True  # a batch that is still under way is lost, whatever becomes of it
            n_under_way = self._n_waiting
            self.n_lost += n_under_way
            self._n_waiting = 0
        if n_under_way:
            self._warn_of_loss(n_under_way)

    def _lose(self, n_spans: int) -> None:
        self.n_lost += n_spans
        if self._report is not None:
            self._n_unwritten += n_spans
            self._report_due = self._n_unwritten > 0

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._stopping or self._report_due)
                if not self._queue and not self._report_due:
                    return
                batch: Sequence[SpanRecord] = self._queue.popleft() if self._queue else ()
            self._deliver(batch)

    def _deliver(self, batch: Sequence[SpanRecord]) -> None:
        failure = self._attempt(self.exporter.export, batch) if batch else None
        n_lost = 0 if failure is None else min(len(batch), getattr(failure, "n_lost", len(batch)))
        with self._changed:
            if self._given_up:
                return
            self.n_exported += len(batch) - n_lost
            self._lose(n_lost)
            n_unwritten = self._n_unwritten
        written = self._report is None or not n_unwritten or self._attempt(self._report, n_unwritten) is None
        with self._changed:
            # What could not be written down is tried again with the next batch, not in a loop of its own.
            self._n_unwritten -= n_unwritten if written else 0
            self._report_due = written and self._n_unwritten > 0
            self._n_waiting = max(0, self._n_waiting - len(batch))  # 0 already, when `stop` gave up waiting
            self._changed.notify_all()

    def _attempt_to_pack(self, pack: Callable[..., Any], batch: Sequence[SpanRecord]) -> Any:
        # What cannot be packed is given to the exporter as it is: that it is refused there is counted.
        packed: list[Any] = []
        return packed[0] if self._attempt(lambda: packed.append(pack(batch))) is None else list(batch)

    def _attempt(self, action: Callable[..., Any], *args: Any) -> Exception | None:
        """Return what the exporter raised, which is said once."""
        try:
            action(*args)
        except Exception as exc:  # noqa: BLE001 - a fault of an exporter must not end its thread
            self._warn(f"{self.name}: {type(exc).__name__}: {exc}")
            return exc
        return None

    def _warn_of_loss(self, n_spans: int) -> None:
        self._warn(f"{_counted(n_spans)} lost on the way to {self.name}: it is too slow or does not answer")

    def _warn(self, message: str) -> None:
        # Once, a collector that is down would otherwise fill the user's log; and never under the lock, since
        # a log handler is the user's code.
        if not self._warned:
            self._warned = True
            _log.warning("hotspan: %s (said once; the loss is counted)", message)


def _counted(n_spans: int) -> str:
    return "1 span" if n_spans == 1 else f"{n_spans} spans"
