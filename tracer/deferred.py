"""What a traced callable may return while its work goes on: the span ends with that, not at the return.

    (async) generator    stepped, see `streaming.py`; one that was stepped before is the very object
    coroutine            awaited below the span; so is one that was stepped, or that somebody else holds too
    task, future         the very object; the span ends when it is done

What goes on is told by its type, and types that do not are remembered: a call pays one look into a set.
"""

from __future__ import annotations

import inspect
import io
import logging
import sys
from types import AsyncGeneratorType, CoroutineType, GeneratorType, NoneType
from typing import TYPE_CHECKING, Any, Final

from hotspan.tracer import semconv
from hotspan.tracer.context import attach, detach
from hotspan.tracer.faults import fault
from hotspan.tracer.sources import is_begun
from hotspan.tracer.streaming import Stream, follow, hold, release

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from hotspan.tracer.span import Span

_log = logging.getLogger("hotspan")

_STREAMS: Final = (GeneratorType, AsyncGeneratorType)
_MAX_KNOWN: Final = 4_096  # a program may make types without end
_NEXT: Final = frozenset({"__next__", "__anext__"})
_UNSEEN: Final = (
    "hotspan: %r returned an iterator of type %s, and ended: the time that its items take is not in it. "
    "Make it a generator (`yield from` the iterator) to have it timed (said once for each type)"
)
_said: Final[set[str]] = set()  # names of types that were warned of
# Types of which no value goes on after it was returned; a type is added when it comes for the first time.
COMPLETE: Final[set[type]] = {NoneType, str, int, float, bool, bytes, list, dict, tuple}


def _own_references() -> int:
    # Counted, not written down: how many there are is the interpreter's affair.
    def end_like(result: object, _span: None, *, generation: bool) -> int:
        return sys.getrefcount(result) + generation

    result = object()
    return end_like(result, None, generation=False)


_OWN_REFERENCES: Final = _own_references()  # to what only a wrapper and `end_with` hold


def end_with(result: Any, span: Span, *, generation: bool) -> Any:
    """Return what a callable returned, or a stand-in of its type, and end `span` when it is over."""
    kind = type(result)
    if kind is CoroutineType or (kind is GeneratorType and _is_awaitable(result)):
        if sys.getrefcount(result) > _OWN_REFERENCES or (kind is CoroutineType and is_begun(result)):
            # Whoever awaits it awaits it for all, and nobody may be told that a stand-in was never awaited.
            span.end()
            return result
        pending = _Unawaited(span, result)
        stand_in: Any = _await(pending, result, span, generation=generation)
        stand_in.__name__, stand_in.__qualname__ = result.__name__, result.__qualname__
        hold(pending, stand_in, pending.drop)
        return stand_in
    if kind in _STREAMS:
        if is_begun(result):
            span.end()
            return result
        return follow(result, Stream(span, generation=generation))
    if _is_future(kind):
        _Unresolved(span).follow(result)
        return result
    if len(COMPLETE) >= _MAX_KNOWN:
        COMPLETE.clear()
    COMPLETE.add(kind)
    is_iterator = not _NEXT.isdisjoint(dir(kind)) and not issubclass(kind, io.IOBase)
    if is_iterator and kind.__name__ not in _said:
        _said.add(kind.__name__)
        _log.warning(_UNSEEN, span.name, kind.__name__)
    span.end()
    return result


def _is_awaitable(generator: Any) -> bool:
    # What a function under `types.coroutine` returns.
    return bool(generator.gi_code.co_flags & inspect.CO_ITERABLE_COROUTINE)


def _is_future(kind: type) -> bool:
    # Looked up, not imported: of a module that is not loaded nothing can have come.
    asyncio, futures = sys.modules.get("asyncio"), sys.modules.get("concurrent.futures")
    return any(module is not None and issubclass(kind, module.Future) for module in (asyncio, futures))


class _Unawaited:
    """A coroutine that a traced plain function returned, until somebody awaits it."""

    __slots__ = ("_coroutine", "_span")

    def __init__(self, span: Span, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._span, self._coroutine = span, coroutine

    def drop(self) -> None:
        """End the span of a coroutine that was dropped without ever having been awaited."""
        self.end(semconv.ABANDONED)

    def end(self, outcome: str) -> None:
        """End the span; the interpreter warns of the stand-in alone, by the coroutine's name."""
        if release(self):
            self._coroutine.close()
            self._span.outcome(outcome)
            self._span.end()


async def _await(
    pending: _Unawaited, coroutine: Coroutine[Any, Any, Any], span: Span, *, generation: bool
) -> Any:
    release(pending)  # from here on its own ways out end the span
    token = attach(span)
    try:
        result = await coroutine
    except BaseException as exc:
        span.fail(exc)
        span.end()
        raise
    finally:
        detach(token)
    if type(result) not in COMPLETE:
        return end_with(result, span, generation=generation)
    span.end()
    return result


class _Unresolved:
    """A task or future, until it is done."""

    __slots__ = ("_span",)

    def __init__(self, span: Span) -> None:
        self._span = span

    def follow(self, future: Any) -> None:
        """End the span when the future is done: now, where it is."""
        hold(self, future, self.drop)
        try:
            if future.done():  # an event loop might not come to the callback any more
                self.resolve(future)
            else:
                future.add_done_callback(self.resolve)
        except Exception as own:  # noqa: BLE001 - a future of somebody's own may refuse; it is the user's all the same
            self.end("")
            fault(own)

    def resolve(self, future: Any) -> None:
        """End the span by the way that the future went."""
        if not release(self):
            return
        span = self._span
        if future.cancelled():
            span.outcome(semconv.CANCELLED)
        elif (error := _error_of(future)) is not None:
            span.fail(error)
        span.end()

    def drop(self) -> None:
        """End the span of a future that was dropped and will never be done."""
        self.end(semconv.ABANDONED)

    def end(self, outcome: str) -> None:
        """End the span by another way than the future's own."""
        if release(self):
            if outcome:
                self._span.outcome(outcome)
            self._span.end()


def _error_of(future: Any) -> BaseException | None:
    try:
        # `exception()` of asyncio's futures takes it for read: that nobody read it would then not be logged.
        error: BaseException | None = future._exception  # noqa: SLF001 - the public way is below
    except AttributeError:
        error = future.exception()
    return error
