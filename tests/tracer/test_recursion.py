"""Recursion up to the interpreter's limit: whatever the stack has no room for, every span ends."""

import asyncio

import pytest

import hotspan
from hotspan.testing import capture
from hotspan.tracer import recorder

ENDLESS = 1_000_000


@hotspan.step
def function(n):
    """Call itself."""
    return n and function(n - 1)


@hotspan.step
async def coroutine(n):
    """Await itself."""
    return n and await coroutine(n - 1)


@hotspan.step
def generator(n):
    """Yield from itself."""
    if n:
        yield from generator(n - 1)
    yield n


@hotspan.step
async def async_generator(n):
    """Yield what it yields itself."""
    if n:
        async for item in async_generator(n - 1):
            yield item
    yield n


def block(n):
    """Enter a stage by hand and call itself."""
    with hotspan.step("block"):
        return n and block(n - 1)


async def _drain(n):
    return [item async for item in async_generator(n)]


def below(n_frames, run):
    """Run so many frames further down, where the limit strikes at another place of our own code."""
    if n_frames:
        return below(n_frames - 1, run)
    with pytest.raises(RecursionError):
        return run(ENDLESS)


@pytest.mark.parametrize(
    ("run", "n_may_be_open"),
    [
        pytest.param(function, 0, id="function"),
        pytest.param(lambda n: asyncio.run(coroutine(n)), 0, id="coroutine"),
        pytest.param(block, 0, id="with"),
        # The end of a stream is more than one call: there may be no room even for that.
        pytest.param(lambda n: list(generator(n)), 1, id="generator"),
        pytest.param(lambda n: asyncio.run(_drain(n)), 1, id="async-generator"),
    ],
)
@pytest.mark.parametrize("n_frames", range(6))
def test_every_span_ends(run, n_may_be_open, n_frames):
    """The exception reaches the program, nothing stays current, and no stage that was entered stays open."""
    with capture() as captured:
        below(n_frames, run)

        assert not hotspan.current().is_recording()
        assert len(captured.spans) > 100
        assert recorder.installed().n_open() <= n_may_be_open
        failed = [span for span in captured.spans if span.status == "error"]
        assert len(failed) > len(captured.spans) - 10
