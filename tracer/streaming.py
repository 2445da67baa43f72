"""Streams: a traced (async) generator is stepped, and its span is current only while its own code runs.

    consumer   ░░░░│        │░░░░░░│        │░░░░      its spans are not children of the stream
    producer       │████████│      │████████│          busy: inside `next`
    span       |---|--------|------|--------|---|      hold: everything else

All ways out end the span exactly once: exhausted, break, close, throw, an exception, a cancelled task, a
stream that is never started, one that is dropped, and the end of the interpreter.
"""

from __future__ import annotations

import sys
import weakref
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any, Final

from hotspan.tracer import clock, semconv
from hotspan.tracer import span as spans
from hotspan.tracer.generation import TokenClock

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Generator

    from opentelemetry.context import Context

    from hotspan.tracer.span import Span

DEFERRED: Final = frozenset({GeneratorType, AsyncGeneratorType, CoroutineType})

# Streams that have not ended, so that the end of the interpreter can end them.
_open: dict[Stream, Any] = {}


class Stream:
    """One traced stream: its span, the time it was busy, and what its items say of tokens."""

    __slots__ = ("__weakref__", "_inner", "_outer", "busy_ns", "feed", "n_items", "span", "started", "tokens")

    def __init__(self, span: Span, *, generation: bool) -> None:
        self.span = span
        self.busy_ns = 0
        self.n_items = 0
        self.started = False
        self.tokens: TokenClock | None = None
        self.feed: Callable[[int, object], None] | None = None
        self._inner: Context = span  # the context that the body left behind at its last yield
        self._outer: Context = span.base  # the consumer's context, as it was at that moment
        if generation:
            self.tokens = TokenClock(span.start_ns)
            self.feed = self.tokens.feed

    def resume(self) -> Any:
        """Make the producer's context current for one step and return the token for `suspend`.

        The consumer's context lies below it, so that what the consumer changed meanwhile (baggage) is seen
        by the body, as it would be without the decorator.
        """
        outer = spans.get_context()
        if outer is not self._outer:
            self._outer = self.span.base = outer
            self._inner = self.span
        return spans.attach(self._inner)

    def suspend(self, token: Any) -> None:
        """Give the consumer's context back."""
        self._inner = spans.get_context()
        spans.detach(token)

    def watch(self, stream: object) -> None:
        """End the span when `stream` is dropped without ever having been started."""
        _open[self] = weakref.ref(stream, lambda _: None if self.started else self.end(semconv.ABANDONED))

    def end(self, outcome: str | None = None, exc: BaseException | None = None) -> None:
        """End the span, once, with the way out and with what was counted."""
        if _open.pop(self, None) is None:
            return
        span = self.span
        if exc is not None:
            span.fail(exc)
        elif outcome is not None:
            span.outcome(outcome)
        if span.recording:
            self._account()
        span.end()

    def _account(self) -> None:
        span = self.span
        duration_ns = clock.now_ns() - span.start_ns
        span.set(semconv.STREAM_ITEMS, self.n_items)
        span.set(semconv.STREAM_BUSY_NS, self.busy_ns)
        span.set(semconv.STREAM_HOLD_NS, max(0, duration_ns - self.busy_ns))
        if self.tokens is not None:
            self.tokens.finish()
            span.set_many(self.tokens.attributes())


def end_open_streams() -> None:
    """End every stream that still runs as abandoned: the interpreter is about to exit."""
    for stream in list(_open):
        stream.end(semconv.ABANDONED)


def forget_open_streams() -> None:
    """Drop the parent process's streams, in a forked child."""
    _open.clear()


def adopt(result: Any, span: Span, *, generation: bool) -> Any:
    """Return a stand-in of the same type for a generator or coroutine, which ends `span` when it ends."""
    if type(result) is CoroutineType:
        return _await(result, span, generation=generation)
    stream = Stream(span, generation=generation)
    stepped = _step(result, stream) if type(result) is GeneratorType else _step_async(result, stream)
    stepped.__name__, stepped.__qualname__ = result.__name__, result.__qualname__
    stream.watch(stepped)
    return stepped


async def _await(coroutine: Coroutine[Any, Any, Any], span: Span, *, generation: bool) -> Any:
    token = spans.attach(span)
    try:
        result = await coroutine
    except BaseException as exc:
        span.fail(exc)
        span.end()
        raise
    finally:
        spans.detach(token)
    if type(result) in DEFERRED:
        return adopt(result, span, generation=generation)
    span.end()
    return result


def _step(source: Generator[Any, Any, Any], stream: Stream) -> Generator[Any, Any, Any]:
    # Hot: per item one context switch each way and two clock readings; everything else is at the end.
    # Tokens are stamped in the producer's own time, so that a slow consumer makes hold grow and no gap.
    now, resume, suspend, feed = clock.now_ns, stream.resume, stream.suspend, stream.feed
    start_ns = stream.span.start_ns
    stream.started = True
    advance: Callable[[Any], Any] = source.send
    sent: Any = None
    try:
        while True:
            token = resume()
            begun = now()
            try:
                item = advance(sent)
            finally:
                stream.busy_ns += now() - begun
                suspend(token)
            stream.n_items += 1
            if feed is not None:
                feed(start_ns + stream.busy_ns, item)
            try:
                sent = yield item
                advance = source.send
            except GeneratorExit:
                _close(source, stream)
                raise
            except BaseException as thrown:  # noqa: BLE001 - handed to the producer, as `throw` does
                advance, sent = source.throw, thrown
    except StopIteration as stop:
        stream.end()
        return stop.value
    except BaseException as exc:
        stream.end(exc=exc)
        raise
    finally:
        stream.end(semconv.ABANDONED)


def _close(source: Generator[Any, Any, Any], stream: Stream) -> None:
    token = stream.resume()
    try:
        source.close()
    finally:
        stream.suspend(token)


async def _step_async(source: AsyncGenerator[Any, Any], stream: Stream) -> AsyncGenerator[Any, Any]:
    # Hot, as `_step`.  The context is set in the task that pulls, which may be another one at each step.
    now, resume, suspend, feed = clock.now_ns, stream.resume, stream.suspend, stream.feed
    start_ns = stream.span.start_ns
    stream.started = True
    advance: Callable[[Any], Any] = source.asend
    sent: Any = None
    try:
        while True:
            token = resume()
            begun = now()
            try:
                item = await advance(sent)
            finally:
                stream.busy_ns += now() - begun
                suspend(token)
            stream.n_items += 1
            if feed is not None:
                feed(start_ns + stream.busy_ns, item)
            try:
                sent = yield item
                advance = source.asend
            except GeneratorExit:
                await _close_async(source, stream)
                raise
            except BaseException as thrown:  # noqa: BLE001 - handed to the producer, as `athrow` does
                advance, sent = source.athrow, thrown
    except StopAsyncIteration:
        stream.end()
    except BaseException as exc:
        stream.end(exc=exc)
        raise
    finally:
        if not sys.is_finalizing():
            stream.end(semconv.ABANDONED)


async def _close_async(source: AsyncGenerator[Any, Any], stream: Stream) -> None:
    token = stream.resume()
    try:
        await source.aclose()
    finally:
        stream.suspend(token)
