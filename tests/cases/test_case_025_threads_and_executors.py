"""Work in threads and executors stays below the stage that gave it out."""

import asyncio
import functools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import hotspan
from hotspan.testing import capture

TOGETHER = 3


def work(together):
    """Run a tool, when all of them are there."""
    together.wait(10)
    with hotspan.tool("t"):
        pass


def in_pool(fn):
    """Three calls of one wrapped callable at the same moment."""
    with ThreadPoolExecutor(TOGETHER) as pool:
        wrapped = hotspan.propagate(fn)
        for future in [pool.submit(wrapped) for _ in range(TOGETHER)]:
            future.result()


def in_threads(fn):
    """Plain threads."""
    threads = [threading.Thread(target=hotspan.propagate(fn)) for _ in range(TOGETHER)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def by_map(fn):
    """`Executor.map`."""
    with ThreadPoolExecutor(TOGETHER) as pool:
        list(pool.map(hotspan.propagate(lambda _: fn()), range(TOGETHER)))


def in_executor_of_a_loop(fn):
    """`run_in_executor`, which copies no context, and `asyncio.to_thread`, which does."""

    async def main():
        loop = asyncio.get_running_loop()
        await asyncio.gather(
            loop.run_in_executor(None, hotspan.propagate(fn)),
            loop.run_in_executor(None, hotspan.propagate(fn)),
            asyncio.to_thread(fn),
        )

    asyncio.run(main())


@pytest.mark.parametrize("run", [in_pool, in_threads, by_map, in_executor_of_a_loop])
def test_children_of_the_step(run):
    """Three tools are three children of the step, and no "cannot enter context" is raised."""
    with capture() as captured:
        with hotspan.step("s"):
            run(functools.partial(work, threading.Barrier(TOGETHER)))

    assert captured.tree() == [["step s", *[["execute_tool t"]] * TOGETHER]]
