"""A plain function that returns a stream is traced until the stream's last item."""

import asyncio
import inspect
import time

import pytest

import hotspan
from hotspan.testing import capture


async def async_items():
    """Take a while, asynchronously."""
    for i in range(3):
        await asyncio.sleep(0.01)
        yield i


def items():
    """Take a while."""
    for i in range(3):
        time.sleep(0.01)
        yield i


async def awaited(make):
    """Return what a coroutine function returns."""
    return make()


def unawaited(make):
    """Return a coroutine that returns a stream."""
    return awaited(make)


async def drain(made):
    """Return all items of either kind of stream."""
    return [i async for i in made] if hasattr(made, "__anext__") else list(made)


class Owner:
    """Has methods that return streams."""

    def plain(self, make):
        """Return a stream."""
        return make()

    @classmethod
    async def awaited(cls, make):
        """Return a stream, when awaited."""
        return make()


@pytest.mark.parametrize("make", [items, async_items])
@pytest.mark.parametrize(
    "fn",
    [
        pytest.param(lambda make: make(), id="function"),
        pytest.param(awaited, id="coroutine-function"),
        pytest.param(unawaited, id="function-of-a-coroutine"),
        pytest.param(Owner().plain, id="method"),
        pytest.param(Owner.awaited, id="class-method"),
    ],
)
def test_span_ends_with_the_last_item(fn, make):
    """Whatever kind of function returns whatever kind of stream, the span covers the items."""
    traced = hotspan.step("s")(fn)

    async def main():
        made = traced(make)
        made = await made if inspect.isawaitable(made) else made
        assert type(made) is type(make())
        return await drain(made)

    with capture() as captured:
        assert asyncio.run(main()) == [0, 1, 2]

    (span,) = captured.spans
    assert span.attributes["hotspan.stream.items"] == 3
    assert span.attributes["hotspan.stream.busy_ns"] >= 25_000_000
    assert span.duration_ns >= 25_000_000
    assert "generator object" not in str(span.attributes)
