"""A decorator over a coroutine or a generator measures the work, not the call that only makes it."""

import asyncio
import inspect
import time

import pytest

import hotspan
from hotspan.testing import capture

WORK_S = 0.05


@hotspan.step
def function():
    """Work at once."""
    time.sleep(WORK_S)


@hotspan.step
async def coroutine():
    """Work while awaited."""
    await asyncio.sleep(WORK_S)


@hotspan.step
def generator():
    """Work while iterated."""
    for _ in range(2):
        time.sleep(WORK_S / 2)
        yield


@hotspan.step
async def async_generator():
    """Work while iterated asynchronously."""
    for _ in range(2):
        await asyncio.sleep(WORK_S / 2)
        yield


async def iterate():
    """Exhaust the asynchronous generator."""
    async for _ in async_generator():
        pass


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(function, id="function"),
        pytest.param(lambda: asyncio.run(coroutine()), id="coroutine"),
        pytest.param(lambda: list(generator()), id="generator"),
        pytest.param(lambda: asyncio.run(iterate()), id="async-generator"),
    ],
)
def test_the_span_covers_the_work(run):
    """The span is as long as the body took."""
    with capture() as captured:
        run()

    assert captured.spans[0].duration_ns >= WORK_S * 1e9 * 0.99  # a sleep may end a little early


def test_the_kinds_are_told_apart_as_before():
    """Each is still what `inspect` says it is, and nothing else."""
    kinds = [inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction]

    assert [[kind(fn) for kind in kinds] for fn in (function, coroutine, generator, async_generator)] == [
        [False, False, False],
        [True, False, False],
        [False, True, False],
        [False, False, True],
    ]
