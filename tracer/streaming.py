"""Streams: a traced (async) generator is stepped, and its span is current only while its own code runs.

    consumer   ░░░░│        │░░░░░░│        │░░░░      its spans are not children of the stream
    producer       │████████│      │████████│          busy: inside `next`
    span       |---|--------|------|--------|---|      hold: everything else

All ways out end the span exactly once: exhausted, break, close, throw, an exception, a cancelled task, a
stream that is never started, one that is dropped, and the end of the interpreter.
"""

from __future__ import annotations

import weakref
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Final, Protocol

from hotspan.tracer import clock, semconv
from hotspan.tracer.context import NOT_HERE, ContextOverlay, attach, get_context, is_collecting, reset
from hotspan.tracer.faults import fault
from hotspan.tracer.generation import TokenClock
from hotspan.tracer.holds import MIN_HOLD_NS, n_at_once
from hotspan.tracer.sources import Standing, closing_by

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Mapping

    from opentelemetry.context import Context

    from hotspan.tracer.holds import Holds
    from hotspan.tracer.span import Span


class Unfinished(Protocol):
    """What has a span that is to end with it."""

    def end(self, outcome: str) -> None:
        """End the span by this way out."""


_NEVER: Final = -(1 << 62)
# What has not ended, so that its span ends all the same, with the reference that tells when it is dropped.
_open: dict[Unfinished, weakref.ref[Any]] = {}


class Stream(Standing):
    """One traced stream: its span, the time it was busy, and what its items say of tokens."""

    __slots__ = ("__weakref__", "counts", "holds", "span", "started", "texts", "tokens")

    def __init__(self, span: Span, *, generation: bool) -> None:
        self.span = span
        self.started = False
        self.counts: Callable[[], tuple[int, int]] = _nothing  # see `progress`
        self.tokens = TokenClock(span.start_ns) if generation else None
        self.texts: list[int] = []  # stamps of pieces of text that `tokens` does not have yet
        self.holds: Holds = []

    def stamper(self) -> Callable[[int], None] | None:
        """Return what takes the stamp of a piece of text, in C; None for a stream that bears no tokens."""
        return None if self.tokens is None else self.texts.append

    def feed(self, stamp_ns: int, item: object) -> int:
        """Take an item that is no text of a generation; return how many items that accounts for."""
        if self.tokens is None:
            return 1
        n_texts = self._hand_over_texts(self.tokens)
        self.tokens.feed(stamp_ns, item)
        return n_texts + 1

    def _hand_over_texts(self, tokens: TokenClock) -> int:
        n_texts = len(self.texts)
        tokens.text_stamps.extend(self.texts)
        self.texts.clear()
        return n_texts

    def progress(self, n_others: int, producer_ns: int) -> tuple[int, int]:
        """Return the number of items and the nanoseconds busy at this moment, from what the steps keep."""
        if producer_ns <= 0:  # in the middle of a step
            producer_ns += clock.now_ns()
        return n_others + len(self.texts), max(0, producer_ns - self.span.start_ns)

    def note_hold(self, less_ns: int) -> int:
        """Note that the consumer held the stream for long; return below what `less_ns` it did so again.

        Args:
            less_ns: All holds so far, negative.
        """
        if self.tokens is None:
            return _NEVER
        self.holds.append((self.tokens.n_chunks + len(self.texts), -less_ns))
        return less_ns - MIN_HOLD_NS

    def rebase(self, outer: Context) -> None:
        """Lay the consumer's context below the producer's, where it is another one than at the last step.

        What the consumer changed meanwhile (baggage) is then seen by the body, as it would be without the
        decorator.
        """
        if not self._is_above(outer):
            self.span.base = outer

    def _is_above(self, context: Context) -> bool:
        # A consumer that runs inside the stream's own context: laid below it, look-ups would go in circles.
        while isinstance(context, ContextOverlay):
            if context is self.span:
                return True
            context = context.base
        return False

    def watch(self, stream: object) -> None:
        """End the span when `stream` is dropped without ever having been started."""
        self.stand_for(stream)
        hold(self, stream, lambda: None if self.started else self.end(semconv.ABANDONED))

    def end(self, outcome: str | None = None, exc: BaseException | None = None) -> None:
        """End the span, once, with the way out and with what was counted."""
        if _open.pop(self, None) is None:
            return
        end_ns = clock.now_ns()
        try:
            self._tell(end_ns, outcome, exc)
        except RecursionError:
            pass  # at the end of the stack not all of it can be said; the span must end all the same
        except Exception as own:  # noqa: BLE001 - the user's stream has ended well, whatever we made of it
            fault(own)
        self.span.end(clock.to_wall_ns(end_ns))

    def _tell(self, end_ns: int, outcome: str | None, exc: BaseException | None) -> None:
        span = self.span
        if exc is not None and (outcome is None or isinstance(exc, Exception)):
            span.fail(exc)
        elif outcome is not None:
            span.outcome(outcome)
        if span.recording:
            self._account(end_ns - span.start_ns)

    def _account(self, duration_ns: int) -> None:
        span = self.span
        n_items, busy_ns = self.counts()
        span.set(semconv.STREAM_ITEMS, n_items)
        span.set(semconv.STREAM_BUSY_NS, busy_ns)
        span.set(semconv.STREAM_HOLD_NS, max(0, duration_ns - busy_ns))
        if self.tokens is not None:
            span.set_later(self._token_attributes)

    def _token_attributes(self) -> Mapping[str, Any]:
        if self.tokens is None:
            return {}
        self._hand_over_texts(self.tokens)
        found = self.tokens.attributes()
        if self.holds and (n_held := n_at_once(self.tokens.stamps(), self.holds)):
            found[semconv.HELD_STAMPS] = n_held
        return found


def _nothing() -> tuple[int, int]:
    return 0, 0


def hold(unfinished: Unfinished, source: object, when_dropped: Callable[[], None]) -> None:
    """See to it that `unfinished` ends, at the latest with the program; `source` may be dropped before."""
    _open[unfinished] = weakref.ref(source, lambda _: when_dropped())


def release(unfinished: Unfinished) -> bool:
    """Forget what ends now by itself; False where it has ended already."""
    return _open.pop(unfinished, None) is not None


def end_open_streams() -> None:
    """End every stream that still runs as abandoned: the interpreter is about to exit."""
    for unfinished in list(_open):
        unfinished.end(semconv.ABANDONED)


def forget_open_streams() -> None:
    """Drop the parent process's streams, in a forked child."""
    _open.clear()


def follow(source: Any, stream: Stream) -> Any:
    """Return a stand-in of the same type for an (async) generator, of whose steps `stream` takes note."""
    stand_in: Any = _step(source, stream) if type(source) is GeneratorType else _step_async(source, stream)
    stand_in.__name__, stand_in.__qualname__ = source.__name__, source.__qualname__
    stream.watch(stand_in)
    return stand_in


def _step(source: Generator[Any, Any, Any], stream: Stream) -> Generator[Any, Any, Any]:
    # Hot: per item one context switch each way and two clock readings, all else is at the end; so what counts
    # is local (a closure reads it for whoever ends the stream from outside), every step written out.
    # Of the 0.4 us that is left, 0.16 are setting the variable and setting it back.  A context of its own
    # (`Context.run`) would save that, and hide from the consumer what the body sets in other variables.
    # `producer_ns` is the producer's own clock, which stands still while the consumer holds the stream: a
    # reading is taken off when a step begins and one is added when it ends.  Tokens are stamped with it, so
    # that a slow consumer makes hold grow and no gap.
    # `close` is not told apart from `throw(GeneratorExit)`: handed on as it came, it does what it would do.
    now, stamp, send, switch, restore, look = (
        clock.now_ns, stream.stamper(), source.send, attach, reset, get_context,
    )  # fmt: skip
    below = stream.span.base
    inner: Context = stream.span  # what the body left behind at its last yield
    n_others, producer_ns, long_ns = 0, stream.span.start_ns, -MIN_HOLD_NS
    stream.counts, stream.started = lambda: stream.progress(n_others, producer_ns), True
    advance: Callable[[Any], Any] = send
    sent: Any = None
    closing: str | None = None
    try:
        while True:
            outer = look()
            if outer is not below:
                below = outer
                stream.rebase(outer)
            token = switch(inner)
            producer_ns -= now()  # all holds so far, negative
            long_ns = stream.note_hold(producer_ns) if producer_ns < long_ns else long_ns
            try:
                item = advance(sent)
            finally:
                producer_ns += now()
                inner = look()
                try:  # noqa: SIM105 - a `with` statement costs as much as all the rest of the step
                    restore(token)
                except NOT_HERE:
                    pass
            is_text = type(item) is str
            if is_text and item and stamp is not None:
                stamp(producer_ns)
            else:
                n_others += stream.feed(producer_ns, item)
            advance, closing = send, None
            try:
                # What is no text is not kept here: it may be large.
                sent = yield item if is_text else (item, item := None)[0]
            except BaseException as thrown:
                closing = closing_by(thrown)
                if stream.leaves(send, thrown):
                    raise
                switch, restore = _switches(closing)
                advance, sent = source.throw, thrown  # handed to the producer, as `throw` does
    except StopIteration as stop:
        stream.end(closing)
        return stop.value
    except BaseException as exc:
        stream.end(closing, exc)
        raise
    finally:
        sent = None  # an exception that was thrown in holds this frame


async def _step_async(source: AsyncGenerator[Any, Any], stream: Stream) -> AsyncGenerator[Any, Any]:
    # Hot, as `_step`.  The context is set in the task that pulls, which may be another one at each step.
    now, stamp, send, switch, restore, look = (
        clock.now_ns, stream.stamper(), source.asend, attach, reset, get_context,
    )  # fmt: skip
    below = stream.span.base
    inner: Context = stream.span  # what the body left behind at its last yield
    n_others, producer_ns, long_ns = 0, stream.span.start_ns, -MIN_HOLD_NS
    stream.counts, stream.started = lambda: stream.progress(n_others, producer_ns), True
    pull = stream.first_pull(send)
    closing: str | None = None
    try:
        while True:
            outer = look()
            if outer is not below:
                below = outer
                stream.rebase(outer)
            token = switch(inner)
            producer_ns -= now()  # all holds so far, negative
            long_ns = stream.note_hold(producer_ns) if producer_ns < long_ns else long_ns
            try:
                item = await pull
            finally:
                producer_ns += now()
                inner = look()
                try:  # noqa: SIM105 - a `with` statement costs as much as all the rest of the step
                    restore(token)
                except NOT_HERE:
                    pass
            is_text = type(item) is str
            if is_text and item and stamp is not None:
                stamp(producer_ns)
            else:
                n_others += stream.feed(producer_ns, item)
            try:
                pull = send((yield item if is_text else (item, item := None)[0]))  # not kept, as in `_step`
                closing = None
            except BaseException as thrown:
                pull, closing = None, closing_by(thrown)
                if stream.leaves(send, thrown):
                    raise
                switch, restore = _switches(closing)
                pull = source.athrow(thrown)
    except StopAsyncIteration:
        stream.end(closing)
    except BaseException as exc:
        stream.end(closing, exc)
        raise
    finally:
        pull = None  # as `sent` in `_step`


def _switches(closing: str | None) -> tuple[Callable[[Any], Any], Callable[[Any], None]]:
    """Return how a step enters and leaves the stream's context.

    One that the garbage collector closes stays in the context that it finds: see `is_collecting`.
    """
    return (_stay, _stay) if closing is not None and is_collecting() else (attach, reset)


def _stay(_context: object) -> None:
    """Leave the context as it is."""
