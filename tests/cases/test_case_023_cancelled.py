"""A cancelled stage is ended, is neither error nor success, and its exception passes unchanged."""

import asyncio

import pytest

import hotspan
from hotspan.testing import capture


@hotspan.step
async def waits():
    """Wait for ever."""
    await asyncio.Event().wait()


@hotspan.generation
async def stream():
    """Yield once and wait for ever."""
    yield 1
    await asyncio.Event().wait()


async def consume():
    """Pull the stream."""
    async for _ in stream():
        pass


async def in_block():
    """Wait inside a `with` statement."""
    async with hotspan.step("block"):
        await asyncio.Event().wait()


@pytest.mark.parametrize("work", [waits, consume, in_block])
def test_cancelled_in_the_middle(work):
    """The span says cancelled, its status is unset, and no exception event is written."""
    passed = []

    async def guarded():
        try:
            await work()
        except asyncio.CancelledError as exc:
            passed.append(exc)
            raise

    async def main():
        task = asyncio.create_task(guarded())
        await asyncio.sleep(0.01)
        task.cancel("reason")
        try:
            await task
        except asyncio.CancelledError as exc:
            return exc.args

    with capture() as captured:
        assert asyncio.run(main()) == ("reason",)

    (span,) = captured.spans
    assert span.attributes["hotspan.outcome"] == "cancelled"
    assert (span.status, span.events) == ("unset", ())
    assert passed[0].args == ("reason",)
