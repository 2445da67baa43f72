"""A generator whose steps run in threads or tasks of their own, as web frameworks run a streamed response."""

import asyncio
import contextlib
import threading

import hotspan
from hotspan.testing import capture

EXPECTED = [
    ["request answer", ["chat m"], ["postprocess"], ["step a"], ["step b"], ["step c"], ["execute_tool save"]]
]


@hotspan.tool
def save():
    """Be a stage at the end."""


@hotspan.step("a")
@contextlib.contextmanager
def around():
    """Be a stage around a with block."""
    yield


@hotspan.request
def answer():
    """Yield inside of stages, which are then entered in one step and left in another."""
    with hotspan.generation(model="m"):
        yield "t"
        yield "t"
    with hotspan.stage("postprocess"):
        pass
    with around():
        yield "a"
    for name in "bc":
        with hotspan.step(name):
            yield name
    save()


def in_threads(generator):
    """Make each step in a thread of its own."""
    items = []

    def step():
        items.append(next(generator, None))

    while not items or items[-1] is not None:
        thread = threading.Thread(target=step)
        thread.start()
        thread.join()
    return items[:-1]


async def in_tasks(generator):
    """Make each step in a task of its own."""
    items = []
    with contextlib.suppress(StopAsyncIteration):
        while True:
            items.append(await asyncio.create_task(anext(generator)))
    return items


def test_a_stage_that_is_left_in_another_thread_is_not_current_there_any_more():
    """What comes after it is its sibling, as if all steps ran in one thread."""
    with capture() as captured:
        assert in_threads(answer()) == ["t", "t", "a", "b", "c"]
        assert not hotspan.current().is_recording()
    assert captured.tree() == EXPECTED


def test_a_stage_that_is_left_in_another_task_is_not_current_there_any_more():
    """The same of an asynchronous generator."""

    @hotspan.request("answer")
    async def answer_async():
        generator = answer.__wrapped__()
        for item in generator:
            yield item

    with capture() as captured:
        assert asyncio.run(in_tasks(answer_async())) == ["t", "t", "a", "b", "c"]
    assert captured.tree() == EXPECTED
