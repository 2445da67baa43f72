"""A decorated callable behaves as the bare one: every kind, every way out, side by side.

Each scenario is written once, is run with the bare callable and with the decorated one, and says what it saw.
"""

# ruff: noqa: D103, EM101, TRY003, PLR1708, RET503, PLW0108 - scenarios do what users' programs do, odd things too

import asyncio
import gc
import itertools
import sys
import types
import warnings
import weakref

import pytest

import hotspan
from hotspan.testing import capture

OK, ERROR = ("unset", None), ("error", None)


def outcome(name):
    return ("unset", name)


class Boom(Exception):  # noqa: N818 - the scenarios read better so
    """The program's own error."""


class Hard(BaseException):
    """An exit that is no error."""


def saw(action):
    """Return what a call returned, or which exception left it."""
    try:
        return "returned", action()
    except BaseException as exc:  # noqa: BLE001 - whatever it is, it is compared
        return "raised", type(exc), str(exc), type(exc.__cause__), type(exc.__context__)


def seen_by_loop(coroutine_function):
    """Run a coroutine function in a loop of its own; what the loop complains of counts as seen."""
    complaints = []

    async def main():
        asyncio.get_running_loop().set_exception_handler(
            lambda _loop, about: complaints.append(about["message"])
        )
        return await coroutine_function()

    result = saw(lambda: asyncio.run(main()))
    gc.collect()
    return result, complaints


# --- Functions and coroutines ------------------------------------------------------------------------------


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


# --- Generators --------------------------------------------------------------------------------------------


def generator(trace):
    """A generator that answers to everything that can be done to one."""

    @trace
    def fn(n=3):
        log = []
        for i in range(n):
            try:
                log.append((yield i))
            except KeyError:
                log.append((yield "caught"))
        return log

    return fn


def exhausted(trace):
    return list(generator(trace)())


def taken_two(trace):
    return list(itertools.islice(generator(trace)(), 2))


def value_of_yield_from(trace):
    def outer():
        yield ("value", (yield from generator(trace)()))

    return list(outer())


def sent(trace):
    made = generator(trace)()
    return saw(lambda: made.send(5)), next(made), made.send("a"), made.send("b"), saw(lambda: made.send("c"))


def thrown_caught(trace):
    made = generator(trace)()
    return next(made), made.throw(KeyError()), made.send(1), list(made)


def thrown_uncaught(trace):
    made, exc = generator(trace)(), Boom("x")
    next(made)
    return saw(lambda: made.throw(exc)), saw(lambda: next(made)), exc.__context__


def thrown_before_start(trace):
    made = generator(trace)()
    return saw(lambda: made.throw(Boom("x"))), saw(lambda: next(made))


def thrown_stop_iteration(trace):
    made = generator(trace)()
    next(made)
    return saw(lambda: made.throw(StopIteration(3)))


def closed(trace):
    made = generator(trace)()
    next(made)
    return saw(made.close), saw(made.close), saw(lambda: next(made))


def close_gives_value(trace):
    @trace
    def fn():
        try:
            yield 1
        except GeneratorExit:
            return 9

    made = fn()
    next(made)
    return saw(made.close)  # a value since Python 3.13


def close_ignored(trace):
    @trace
    def fn():
        while True:
            try:
                yield 1
            except GeneratorExit:
                if stop:
                    return

    stop = []
    made = fn()
    next(made)
    return saw(made.close), stop.append(1), saw(made.close)


def thrown_exit_answered(trace):
    @trace
    def fn():
        try:
            yield 1
        except GeneratorExit:
            yield 2

    made = fn()
    return next(made), made.throw(GeneratorExit()), saw(lambda: next(made))


def raises_in_cleanup(trace):
    @trace
    def fn():
        try:
            yield 1
        finally:
            raise Boom("in cleanup")

    made = fn()
    next(made)
    return saw(made.close)


def raises_midway(trace):
    @trace
    def fn():
        yield 1
        raise Boom("midway")

    made = fn()
    return next(made), saw(lambda: next(made)), saw(lambda: next(made))


def raises_stop_iteration(trace):
    @trace
    def fn():
        yield 1
        raise StopIteration(2)

    made = fn()
    return next(made), saw(lambda: next(made))


def never_iterated(trace):
    made = generator(trace)()
    return made.gi_running, saw(made.close) and None


def dropped(trace):
    log = []

    @trace
    def fn():
        try:
            yield 1
            yield 2
        finally:
            log.append("cleaned")

    made = fn()
    next(made)
    del made
    gc.collect()
    return log


def wrong_arguments(trace):
    return saw(lambda: generator(trace)(1, 2, 3))


def consumer_raises(trace):
    def consume():
        for item in generator(trace)():
            raise Boom(item)

    return saw(consume)


def two_at_once(trace):
    fn = generator(trace)
    return list(zip(fn(), fn(), strict=True))


def items_are_not_held(trace):
    class Item:
        pass

    @trace
    def fn():
        for _ in range(2):
            yield Item()

    made = fn()
    item = weakref.ref(next(made))
    return item() is None, len(list(made))


def returns_generator(trace):
    @trace
    def fn():
        return (i * i for i in range(3))

    return list(fn()), type(made := fn()), made.__name__, made.close()


def re_entered(trace):
    def body():
        yield saw(lambda: next(made))

    made = trace(body)()
    return list(made)


# --- Asynchronous generators -------------------------------------------------------------------------------


def async_generator(trace):
    @trace
    async def fn(n=3):
        for i in range(n):
            await asyncio.sleep(0)
            try:
                got = yield i
                if got is not None:
                    yield ("got", got)
            except KeyError:
                yield "caught"

    return fn


def async_exhausted(trace):
    async def main():
        return [item async for item in async_generator(trace)()]

    return seen_by_loop(main)


def async_broken_off(trace):
    async def main():
        async for item in async_generator(trace)():
            return item

    return seen_by_loop(main)


def async_closed(trace):
    async def main():
        made = async_generator(trace)()
        return await anext(made), await made.aclose(), await made.aclose(), await anext(made, "end")

    return seen_by_loop(main)


def async_closed_by_another_task(trace):
    async def main():
        made = async_generator(trace)()
        first = await asyncio.create_task(anext(made))
        return first, await asyncio.create_task(made.aclose())

    return seen_by_loop(main)


def async_sent_and_thrown(trace):
    async def main():
        made = async_generator(trace)()
        log = [await anext(made), await made.asend("x"), await made.athrow(KeyError()), await anext(made)]
        try:
            await made.athrow(Boom("out"))
        except Boom as exc:
            log.append((str(exc), exc.__context__))
        return [*log, await anext(made, "end")]

    return seen_by_loop(main)


def async_awaits_in_cleanup(trace):
    log = []

    @trace
    async def fn():
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            log.append("cleaned")

    async def main():
        async for _ in fn():
            break
        gc.collect()
        await asyncio.sleep(0.01)

    return seen_by_loop(main), log


def async_left_for_the_loop(trace):
    log = []

    @trace
    async def fn():
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            log.append("cleaned")

    kept = []

    async def main():
        kept.append(fn())
        await anext(kept[0])

    return seen_by_loop(main), log


def async_cancelled(trace):
    @trace
    async def fn():
        yield 1
        await asyncio.Event().wait()

    async def main():
        async def consume():
            async for _ in fn():
                pass

        task = asyncio.create_task(consume())
        await asyncio.sleep(0.001)
        task.cancel()
        return await task

    return seen_by_loop(main)


def async_raises(trace):
    @trace
    async def fn():
        yield 1
        raise Boom("midway")

    async def main():
        return [item async for item in fn()]

    return seen_by_loop(main)


def async_never_iterated(trace):
    async def main():
        async_generator(trace)()

    return seen_by_loop(main)


def async_pulled_twice_at_once(trace):
    async def main():
        made = async_generator(trace)()
        results = await asyncio.gather(anext(made), anext(made), return_exceptions=True)
        await made.aclose()
        return [item if isinstance(item, int) else type(item) for item in results]

    return seen_by_loop(main)


def returns_async_generator(trace):
    async def items():
        yield 1
        yield 2

    @trace
    def fn():
        return items()

    @trace
    async def late():
        return items()

    async def main():
        return [item async for item in fn()], [item async for item in await late()]

    return seen_by_loop(main)


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
    pytest.param(exhausted, [OK], id="generator-exhausted"),
    pytest.param(taken_two, [outcome("abandoned")], id="generator-islice"),
    pytest.param(value_of_yield_from, [OK], id="generator-value"),
    pytest.param(sent, [OK], id="generator-send"),
    pytest.param(thrown_caught, [OK], id="generator-throw-caught"),
    pytest.param(thrown_uncaught, [ERROR], id="generator-throw-uncaught"),
    pytest.param(thrown_before_start, [outcome("abandoned")], id="generator-throw-before-start"),
    pytest.param(thrown_stop_iteration, [ERROR], id="generator-throw-stop-iteration"),
    pytest.param(closed, [outcome("abandoned")], id="generator-close"),
    pytest.param(close_gives_value, [outcome("abandoned")], id="generator-close-value"),
    pytest.param(close_ignored, [outcome("abandoned")], id="generator-close-ignored"),
    pytest.param(thrown_exit_answered, [OK], id="generator-exit-answered"),
    pytest.param(raises_in_cleanup, [ERROR], id="generator-cleanup-raises"),
    pytest.param(raises_midway, [ERROR], id="generator-raises"),
    pytest.param(raises_stop_iteration, [ERROR], id="generator-raises-stop-iteration"),
    pytest.param(never_iterated, [outcome("abandoned")], id="generator-never-iterated"),
    pytest.param(dropped, [outcome("abandoned")], id="generator-dropped"),
    pytest.param(wrong_arguments, [ERROR], id="generator-wrong-arguments"),
    pytest.param(consumer_raises, [outcome("abandoned")], id="generator-consumer-raises"),
    pytest.param(two_at_once, [OK, OK], id="generator-twice-at-once"),
    pytest.param(items_are_not_held, [OK], id="generator-items-not-held"),
    pytest.param(returns_generator, [OK, outcome("abandoned")], id="function-returns-generator"),
    pytest.param(re_entered, [OK], id="generator-re-entered"),
    pytest.param(async_exhausted, [OK], id="async-generator-exhausted"),
    pytest.param(async_broken_off, [outcome("abandoned")], id="async-generator-break"),
    pytest.param(async_closed, [outcome("abandoned")], id="async-generator-close"),
    pytest.param(async_closed_by_another_task, [outcome("abandoned")], id="async-generator-other-task"),
    pytest.param(async_sent_and_thrown, [ERROR], id="async-generator-send-throw"),
    pytest.param(async_awaits_in_cleanup, [outcome("abandoned")], id="async-generator-cleanup"),
    pytest.param(async_left_for_the_loop, [outcome("abandoned")], id="async-generator-left-to-loop"),
    pytest.param(async_cancelled, [outcome("cancelled")], id="async-generator-cancelled"),
    pytest.param(async_raises, [ERROR], id="async-generator-raises"),
    pytest.param(async_never_iterated, [outcome("abandoned")], id="async-generator-never-iterated"),
    pytest.param(async_pulled_twice_at_once, None, id="async-generator-pulled-twice"),
    pytest.param(returns_async_generator, [OK, OK], id="function-returns-async-generator"),
]


@pytest.mark.parametrize("stage", [hotspan.step, hotspan.generation(model="m")], ids=["step", "generation"])
@pytest.mark.parametrize(("scenario", "ways_out"), SCENARIOS)
def test_decorated_is_as_bare(scenario, ways_out, stage):
    """The same values, exceptions, warnings and complaints of the event loop, and one span a call."""
    bare = scenario(lambda fn: fn)
    with capture() as captured:
        decorated = scenario(stage)
        gc.collect()

    assert decorated == bare
    if ways_out is not None:
        found = [(span.status, span.attributes.get("hotspan.outcome")) for span in captured.spans]
        assert sorted(found, key=str) == sorted(ways_out, key=str)


@pytest.mark.parametrize(("scenario", "_ways_out"), SCENARIOS)
def test_decorated_and_switched_off_is_as_bare(scenario, _ways_out):
    """Where nothing is recorded the callable is only passed through."""
    assert scenario(hotspan.step) == scenario(lambda fn: fn)


@pytest.mark.parametrize(("scenario", "_ways_out"), SCENARIOS)
def test_decorated_and_not_sampled_is_as_bare(scenario, _ways_out):
    """A request that is not sampled behaves the same and writes nothing."""
    with capture(sample_ratio=0.0) as captured:
        assert scenario(hotspan.step) == scenario(lambda fn: fn)
        gc.collect()

    assert captured.spans == []
