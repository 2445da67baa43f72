"""Ways out of functions and coroutines."""

# ruff: noqa: D103, PLW0108 - scenarios do what users' programs do, odd things too

import asyncio
import gc
import sys
import types
import warnings

import pytest
from scenarios.seeing import ERROR, OK, Boom, Hard, outcome, saw, seen_by_loop


def call(exc):
    def scenario(trace):
        @trace
        def fn(a, *, b=2):
            if exc is not None:
                raise exc
            return a + b

        return saw(lambda: fn(1, b=3)), saw(lambda: fn(1, 2, 3, 4)), saw(lambda: fn())

    return scenario


def await_(exc):
    def scenario(trace):
        @trace
        async def fn(a):
            await asyncio.sleep(0)
            if exc is not None:
                raise exc
            return a

        return seen_by_loop(lambda: fn(1))

    return scenario


def cancelled(trace):
    @trace
    async def fn():
        await asyncio.Event().wait()

    async def main():
        task = asyncio.create_task(fn())
        await asyncio.sleep(0)
        task.cancel("why")
        return await task

    return seen_by_loop(main)


def timed_out(trace):
    @trace
    async def fn():
        await asyncio.Event().wait()

    return seen_by_loop(lambda: asyncio.wait_for(fn(), 0.001))


def cancel_swallowed(trace):
    @trace
    async def fn():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "cleaned"

    async def main():
        task = asyncio.create_task(fn())
        await asyncio.sleep(0)
        task.cancel()
        return await task

    return seen_by_loop(main)


def task_group_fails(trace):
    @trace
    async def waits():
        await asyncio.Event().wait()

    async def main():
        async with asyncio.TaskGroup() as group:
            group.create_task(waits())
            await asyncio.sleep(0)
            raise Boom

    return seen_by_loop(main)


def closed_coroutine(trace):
    @types.coroutine
    def waits():
        yield

    @trace
    async def fn():
        await waits()

    coroutine = fn()
    coroutine.send(None)
    return saw(coroutine.close)


def never_awaited(trace):
    @trace
    async def fn():
        return 1

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fn()
        gc.collect()
    return [str(warning.message) for warning in caught]


def returns_coroutine(trace):
    async def inner():
        return await asyncio.sleep(0, 7)

    @trace
    def fn():
        return inner()

    return seen_by_loop(lambda: fn()), asyncio.iscoroutine(made := fn()), made.close()


def returned_coroutine_never_awaited(trace):
    async def inner():
        return 7

    @trace
    def fn():
        return inner()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fn()
        gc.collect()
    return [str(warning.message) for warning in caught]


def generator_based_coroutine(trace):
    @trace
    @types.coroutine
    def fn():
        got = yield from asyncio.sleep(0, 3).__await__()
        return got

    async def main():
        return await fn()

    return seen_by_loop(main)


def exit_code(code):
    def scenario(trace):
        @trace
        def fn():
            sys.exit(code)

        return saw(fn)

    return scenario


# name of the callable's scenario, and the status and outcome of each span that it gives
SCENARIOS = [
    pytest.param(call(None), [OK, ERROR, ERROR], id="function-returns"),
    pytest.param(call(Boom("x")), [ERROR, ERROR, ERROR], id="function-raises"),
    pytest.param(call(Hard("x")), [outcome("interrupted"), ERROR, ERROR], id="function-base-exception"),
    pytest.param(call(KeyboardInterrupt()), [outcome("interrupted"), ERROR, ERROR], id="function-ctrl-c"),
    pytest.param(call(StopIteration(1)), [ERROR, ERROR, ERROR], id="function-stop-iteration"),
    pytest.param(exit_code(0), [OK], id="exit-0"),
    pytest.param(exit_code(None), [OK], id="exit-none"),
    pytest.param(exit_code(1), [outcome("interrupted")], id="exit-1"),
    pytest.param(exit_code("bad"), [outcome("interrupted")], id="exit-message"),
    pytest.param(await_(None), [OK], id="coroutine-returns"),
    pytest.param(await_(Boom("x")), [ERROR], id="coroutine-raises"),
    pytest.param(await_(SystemExit(3)), [outcome("interrupted")], id="coroutine-exits"),
    pytest.param(cancelled, [outcome("cancelled")], id="coroutine-cancelled"),
    pytest.param(timed_out, [outcome("cancelled")], id="coroutine-timed-out"),
    pytest.param(cancel_swallowed, [OK], id="coroutine-swallows-cancel"),
    pytest.param(task_group_fails, [outcome("cancelled")], id="task-group"),
    pytest.param(closed_coroutine, [outcome("abandoned")], id="coroutine-closed"),
    pytest.param(never_awaited, [], id="coroutine-never-awaited"),
    pytest.param(returns_coroutine, [OK, outcome("abandoned")], id="function-returns-coroutine"),
    pytest.param(returned_coroutine_never_awaited, [outcome("abandoned")], id="returned-coroutine-dropped"),
    pytest.param(generator_based_coroutine, [OK], id="generator-based-coroutine"),
]
