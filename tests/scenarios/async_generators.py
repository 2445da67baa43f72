"""Ways out of asynchronous generators."""

# ruff: noqa: D103, EM101, RET503 - scenarios do what users' programs do, odd things too

import asyncio
import gc

import pytest
from scenarios.seeing import ERROR, OK, Boom, outcome, seen_by_loop


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


# name of the callable's scenario, and the status and outcome of each span that it gives
SCENARIOS = [
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
