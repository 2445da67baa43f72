"""Random programs of nested stages give the tree that their nesting says, however they run.

A program is a tree of nodes; each node is a stage of some kind and runs its children inside itself.  The
model of the expected tree is the program itself; who pulls a stream opens a stage for each item, beside it.
"""

import asyncio
import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hotspan
from hotspan.testing import capture

KINDS = (
    "with",
    "function",
    "coroutine",
    "generator",
    "generator_in_thread",
    "async_generator",
    "async_generator_in_tasks",
    "thread",
    "executor",
    "to_thread",
    "task",
    "started_task",
    "group",
    "manager",
    "abandoned",
    "thrown_into",
)
TREES = st.recursive(
    st.tuples(st.sampled_from(KINDS), st.just(())),
    lambda children: st.tuples(st.sampled_from(KINDS), st.lists(children, max_size=3).map(tuple)),
    max_leaves=8,
)


class Program:
    """Runs a tree of nodes, naming each stage by its place in the tree."""

    def __init__(self):
        self.expected = []

    async def run(self, node, name, into):
        """Run one node below whatever is current, and note what is expected of it in `into`."""
        kind, children = node
        mine = [f"step {name}"]
        into.append(mine)
        body = self._body(children, name, mine)
        consume = self._consumer(name, into)
        await getattr(self, f"_{kind}")(hotspan.step(name), body, consume)

    def _consumer(self, name, into):
        @contextlib.contextmanager
        def consume():
            into.append([f"step consumer of {name}"])
            with hotspan.step(f"consumer of {name}"):
                yield

        return consume

    def _body(self, children, name, mine):
        async def body():
            for i, child in enumerate(children):
                await self.run(child, f"{name}.{i}", mine)

        return body

    async def _with(self, stage, body, _consume):
        async with stage:
            await body()

    async def _function(self, stage, body, _consume):
        # A plain function that returns what is to be awaited.
        await stage(lambda: body())()  # noqa: PLW0108 - a plain function that returns a coroutine

    async def _coroutine(self, stage, body, _consume):
        await stage(body)()

    async def _generator(self, stage, body, consume):
        # The steps of a synchronous generator cannot await: what it yields is awaited under its own context.
        @stage
        def items():
            yield hotspan.propagate(body)
            yield hotspan.propagate(nothing)

        for item in items():
            with consume():
                await item()

    async def _generator_in_thread(self, stage, body, consume):
        # Stepped by a thread that knows nothing of the stage in which it was made.
        def items():
            yield 1
            with stage:
                yield 2
                asyncio.run(body())

        made = hotspan.propagate(items)()
        for _ in range(2):
            assert await in_thread(lambda: next(made)) in (1, 2)
            with consume():
                pass
        assert await in_thread(lambda: list(made)) == []

    async def _async_generator(self, stage, body, consume):
        @stage
        async def items():
            yield 1
            await body()
            yield 2

        async for _ in items():
            with consume():
                await asyncio.sleep(0)

    async def _async_generator_in_tasks(self, stage, body, consume):
        # Each item is pulled by a task of its own.
        @stage
        async def items():
            yield 1
            await body()
            yield 2

        made = items()
        for expected in (1, 2, None):
            pull = asyncio.ensure_future(anext(made, None))
            with consume():
                assert await pull == expected

    async def _abandoned(self, stage, body, _consume):
        @stage
        async def items():
            await body()
            yield 1
            yield 2

        made = items()
        await anext(made)
        await made.aclose()

    async def _thrown_into(self, stage, body, consume):
        @stage
        async def items():
            try:
                yield 1
            except KeyError:
                await body()
                yield 2

        made = items()
        assert await anext(made) == 1
        with consume():
            assert await made.athrow(KeyError()) == 2
        assert await anext(made, None) is None

    async def _thread(self, stage, body, _consume):
        def work():
            with stage:
                hotspan.propagate(lambda: asyncio.run(body()))()

        await in_thread(hotspan.propagate(work))

    async def _executor(self, stage, body, _consume):
        with hotspan.ThreadPoolExecutor(1) as pool:
            future = pool.submit(stage(lambda: asyncio.run(body())))
            await asyncio.wrap_future(future)

    async def _to_thread(self, stage, body, _consume):
        await asyncio.to_thread(stage(lambda: asyncio.run(body())))

    async def _task(self, stage, body, _consume):
        await asyncio.create_task(stage(body)())

    async def _started_task(self, stage, body, _consume):
        # A plain function that returns a task.
        await stage(lambda: asyncio.create_task(body()))()

    async def _group(self, stage, body, _consume):
        async with stage, asyncio.TaskGroup() as group:
            group.create_task(body())
            group.create_task(nothing())

    async def _manager(self, stage, body, _consume):
        @stage
        @contextlib.asynccontextmanager
        async def managed():
            await asyncio.sleep(0)
            yield

        async with managed():
            await body()


async def nothing():
    """Do nothing."""


async def in_thread(action):
    """Run `action` in a new thread, which is given no context, while other tasks go on; return its result."""
    found = []
    thread = threading.Thread(target=lambda: found.append(action()))
    thread.start()
    await asyncio.to_thread(thread.join)
    return found[0]


def ordered(tree):
    """Return a tree with its siblings by name."""
    return sorted([name, *ordered(below)] for name, *below in tree)


@pytest.mark.parametrize("outer", KINDS)
def test_every_kind_inside_every_kind(outer):
    """One stage of each kind, one after the other, inside a stage of each kind."""
    program, expected = Program(), []

    async def main():
        with hotspan.request("root"):
            await program.run((outer, tuple((kind, ()) for kind in KINDS)), "outer", expected)

    with capture() as captured:
        asyncio.run(main())
        tree = captured.tree()

    assert ordered(tree) == ordered([["request root", *expected]])


@settings(max_examples=150)
@given(st.lists(TREES, min_size=1, max_size=3))
def test_the_tree_is_the_nesting(nodes):
    """Each stage is the child of the stage whose code it ran in, for every mix of kinds."""
    program, expected = Program(), []

    async def main():
        with hotspan.request("root"):
            for i, node in enumerate(nodes):
                await program.run(node, str(i), expected)

    with capture() as captured:
        asyncio.run(main())
        tree = captured.tree()

    assert ordered(tree) == ordered([["request root", *expected]])


@settings(max_examples=30)
@given(st.lists(TREES, min_size=2, max_size=4))
def test_concurrent_branches_do_not_mix(nodes):
    """Branches that run as tasks of one group keep their own trees, however they interleave."""
    program, expected = Program(), []

    async def main():
        with hotspan.request("root"):
            async with asyncio.TaskGroup() as group:
                for i, node in enumerate(nodes):
                    group.create_task(program.run(node, str(i), expected))

    with capture() as captured:
        asyncio.run(main())
        tree = captured.tree()

    assert ordered(tree) == ordered([["request root", *expected]])


def test_one_propagated_callable_runs_many_times_at_once():
    """One wrapped callable may run in many threads at the same moment, each below the same stage."""
    together = threading.Barrier(4)

    def work():
        with hotspan.tool("t"):
            together.wait(10)

    with capture() as captured:
        with hotspan.step() as step:
            wrapped = hotspan.propagate(work)
            with ThreadPoolExecutor(4) as pool:
                for future in [pool.submit(wrapped) for _ in range(4)]:
                    future.result()
        tools = [span for span in captured.spans if span.name == "execute_tool t"]

    assert [span.parent_id for span in tools] == [f"{step.span_id:016x}"] * 4
