"""Random programs of nested stages give the tree that their nesting says, however they run.

A program is a tree of nodes; each node is a stage of some kind and runs its children in order inside itself.
The model of the expected tree is the program itself.
"""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given, settings
from hypothesis import strategies as st

import hotspan
from hotspan.testing import capture

KINDS = (
    "with",
    "function",
    "coroutine",
    "generator",
    "async_generator",
    "thread",
    "to_thread",
    "task",
    "abandoned",
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
        await getattr(self, f"_{kind}")(hotspan.step(name), body)

    def _body(self, children, name, mine):
        async def body():
            for i, child in enumerate(children):
                await self.run(child, f"{name}.{i}", mine)

        return body

    async def _with(self, stage, body):
        async with stage:
            await body()

    async def _function(self, stage, body):
        # A plain function that returns what is to be awaited.
        await stage(lambda: body())()  # noqa: PLW0108 - a plain function that returns a coroutine

    async def _coroutine(self, stage, body):
        await stage(body)()

    async def _generator(self, stage, body):
        # The steps of a synchronous generator cannot await: what it yields is awaited under its own context.
        @stage
        def items():
            yield hotspan.propagate(body)
            yield hotspan.propagate(nothing)

        for item in items():
            with hotspan.stage("consumer") as span:
                await item()
                span.update_name("consumer")

    async def _async_generator(self, stage, body):
        @stage
        async def items():
            yield 1
            await body()
            yield 2

        async for _ in items():
            with hotspan.stage("consumer"):
                await asyncio.sleep(0)

    async def _abandoned(self, stage, body):
        @stage
        async def items():
            await body()
            yield 1
            yield 2

        made = items()
        await anext(made)
        await made.aclose()

    async def _thread(self, stage, body):
        def work():
            with stage:
                hotspan.propagate(lambda: asyncio.run(body()))()

        thread = threading.Thread(target=hotspan.propagate(work))
        thread.start()
        await asyncio.to_thread(thread.join)

    async def _to_thread(self, stage, body):
        await asyncio.to_thread(stage(lambda: asyncio.run(body())))

    async def _task(self, stage, body):
        await asyncio.create_task(stage(body)())


async def nothing():
    """Do nothing."""


def without_consumers(tree):
    """Drop the consumers' own spans, which stand beside the streams they pull."""
    return sorted([name, *without_consumers(below)] for name, *below in tree if name != "consumer")


def ordered(tree):
    """Return the expected tree in the same order."""
    return sorted([name, *ordered(below)] for name, *below in tree)


@settings(max_examples=60)
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

    assert without_consumers(tree) == ordered([["request root", *expected]])
    consumers = [span for span in captured.spans if span.name == "consumer"]
    streams = {span.span_id for span in captured.spans if "hotspan.stream.items" in span.attributes}
    assert not [span for span in consumers if span.parent_id in streams and span.parent_id == span.span_id]


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

    assert without_consumers(tree) == ordered([["request root", *expected]])


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
