"""`propagate`: one callable that takes the current stage along, into whatever thread calls it.

    function                      runs in the context of the place that wrapped it
    coroutine function            its coroutine is awaited in it
    (async) generator function    each step of what it returns is made in it, whoever pulls

Only OpenTelemetry's context is carried.  It is set and reset around each call or step, never entered, so that
one wrapped callable may run many times at once.
"""

from __future__ import annotations

import functools
import inspect
from types import AsyncGeneratorType, GeneratorType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from hotspan.tracer.context import attach, detach, get_context, is_collecting
from hotspan.tracer.decorate import with_flags_of
from hotspan.tracer.sources import Standing, closing_by, is_begun

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from opentelemetry.context import Context

P = ParamSpec("P")
R = TypeVar("R")


def propagate(fn: Callable[P, R]) -> Callable[P, R]:
    """Return `fn` such that it runs below the stage that is current now, in whatever thread it is called.

    OpenTelemetry's context is carried, nothing else; one wrapped callable may run many times at once.  A
    generator or async generator that `fn` returns is stepped in that context, in whatever thread or task it
    is iterated; what its consumer does between two items is not.

    Example:
        `pool.submit(hotspan.propagate(search), query)`
    """
    context = get_context()

    if inspect.iscoroutinefunction(fn):

        async def run_async(*args: Any, **kwargs: Any) -> Any:
            token = attach(context)
            try:
                result = await fn(*args, **kwargs)
            finally:
                detach(token)
            return _carry(result, context)

        return functools.update_wrapper(run_async, fn)  # type: ignore[return-value]  # the same callable kind

    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        token = attach(context)
        try:
            result = fn(*args, **kwargs)
        finally:
            detach(token)
        return _carry(result, context)  # type: ignore[no-any-return]  # of the type that it was

    return functools.update_wrapper(with_flags_of(fn, run), fn)


def _carry(result: Any, context: Context) -> Any:
    """Return a generator as a stand-in of its type that is stepped in `context`; all else as it is."""
    kind = type(result)
    if kind is not GeneratorType and kind is not AsyncGeneratorType:
        return result
    if kind is GeneratorType and result.gi_code.co_flags & inspect.CO_ITERABLE_COROUTINE:
        return result  # to be awaited, not iterated
    if is_begun(result):
        return result
    standing = Standing()
    stand_in: Any = (_step if kind is GeneratorType else _step_async)(result, context, standing)
    standing.stand_for(stand_in)
    stand_in.__name__, stand_in.__qualname__ = result.__name__, result.__qualname__
    return stand_in


def _step(source: Generator[Any, Any, Any], context: Context, standing: Standing) -> Generator[Any, Any, Any]:
    advance: Callable[[Any], Any] = source.send
    sent: Any = None
    closing = False
    while True:
        # A stream that the collector closes is left in the context that it finds: see `is_collecting`.
        token = None if closing and is_collecting() else attach(context)
        try:
            item = advance(sent)
        except StopIteration as stop:
            return stop.value
        finally:
            sent = None  # an exception that was thrown in holds this frame
            if token is not None:
                context = get_context()  # what the body left behind at its yield
                detach(token)
        advance = source.send
        try:
            sent = yield (item, item := None)[0]  # not kept here: it may be large
            closing = False
        except BaseException as thrown:
            if standing.leaves(advance, thrown):
                raise
            advance, sent, closing = source.throw, thrown, closing_by(thrown) is not None


async def _step_async(
    source: AsyncGenerator[Any, Any], context: Context, standing: Standing
) -> AsyncGenerator[Any, Any]:
    pull = standing.first_pull(source.asend)
    closing = False
    while True:
        token = None if closing and is_collecting() else attach(context)
        try:
            item = await pull
        except StopAsyncIteration:
            return
        finally:
            pull = None  # as `sent` above
            if token is not None:
                context = get_context()
                detach(token)
        try:
            pull = source.asend((yield (item, item := None)[0]))
            closing = False
        except BaseException as thrown:
            pull, closing = None, closing_by(thrown) is not None
            if standing.leaves(source.asend, thrown):
                raise
            pull = source.athrow(thrown)
