"""A stage above `contextlib.contextmanager` or `asynccontextmanager`: it lasts as long as the `with` block.

What such a decorator returns is a function that makes a manager out of a generator.  The stage goes inside,
where a user would write it by hand: it is entered before the generator's first line, and left after its last.
So the type of the manager, and its use as a decorator, stay what they are.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

from hotspan.tracer.sources import first_pull

if TYPE_CHECKING:
    import types
    from collections.abc import AsyncGenerator, Callable, Generator

    from hotspan.tracer.stage import Stage


def _nothing() -> Any:
    """Stand for a generator function."""


# All functions that one of the two decorators has made share its code.
_CODE = contextlib.contextmanager(_nothing).__code__
_ASYNC_CODE = contextlib.asynccontextmanager(_nothing).__code__


def makes_managers(fn: types.FunctionType) -> bool:
    """Return whether `fn` was made by `contextmanager` or `asynccontextmanager`."""
    return fn.__code__ is _CODE or fn.__code__ is _ASYNC_CODE


def decorate_manager(spec: Stage, fn: Any) -> Any:
    """Return `fn`, of which `makes_managers` holds, such that the stage lasts as long as the `with` block."""
    is_async = fn.__code__ is _ASYNC_CODE
    within: Callable[..., Any] = _within_async if is_async else _within
    make = fn.__wrapped__

    def make_within(*args: Any, **kwargs: Any) -> Any:
        return within(spec, make(*args, **kwargs))

    decorator: Any = contextlib.asynccontextmanager if is_async else contextlib.contextmanager
    return functools.update_wrapper(decorator(functools.update_wrapper(make_within, make)), fn)


def _within(spec: Stage, body: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    with spec:
        return (yield from body)


async def _within_async(spec: Stage, body: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any, Any]:
    # `yield from`, which async generators do not have.
    async with spec:
        pull = first_pull(body.asend)
        while True:
            try:
                item = await pull
            except StopAsyncIteration:
                return
            try:
                pull = body.asend((yield item))
            except BaseException as thrown:  # noqa: BLE001 - handed to the body, as `athrow` does
                pull = body.athrow(thrown)
