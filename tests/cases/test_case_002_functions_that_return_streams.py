"""A plain function that returns a stream is traced until the stream's last item."""

import asyncio
import time

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


def test_span_ends_with_the_last_item():
    """The span of `def f(): return agen()` and of `async def f(): return gen()` covers the items."""

    @hotspan.step("sync function")
    def returns_async():
        return async_items()

    @hotspan.step("coroutine function")
    async def returns_sync():
        return items()

    async def main():
        return [i async for i in returns_async()], list(await returns_sync())

    with capture() as captured:
        assert asyncio.run(main()) == ([0, 1, 2], [0, 1, 2])

    for span in captured.spans:
        assert span.attributes["hotspan.stream.items"] == 3
        assert span.attributes["hotspan.stream.busy_ns"] >= 25_000_000
        assert span.duration_ns >= 25_000_000
        assert "generator object" not in str(span.attributes)
