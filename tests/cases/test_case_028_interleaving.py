"""Interleaved agents and tools that end in another order than they began are told apart by id alone."""

import asyncio

import hotspan
from hotspan.testing import capture


async def tool_call(name, ended, waits_for):
    """Run a tool that ends after another one."""
    with hotspan.tool(name):
        if waits_for is not None:
            await waits_for.wait()
    ended.set()


@hotspan.agent
async def run(name):
    """Start three tools; they end in reverse order."""
    hotspan.current().set("name", name)
    ended = [asyncio.Event() for _ in range(3)]
    calls = [tool_call(f"{name}{i}", ended[i], ended[i + 1] if i < 2 else None) for i in range(3)]
    tasks = [asyncio.create_task(call) for call in calls]
    await asyncio.sleep(0)
    with hotspan.stage("user message"):
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)


def test_two_agents_at_once():
    """Each agent has its own three tools and its own message."""

    async def main():
        with hotspan.request("r"):
            await asyncio.gather(run("a"), run("b"))

    with capture() as captured:
        asyncio.run(main())
    agents = {
        span.attributes["name"]: span.span_id
        for span in captured.spans
        if span.name.startswith("invoke_agent")
    }
    children = {
        name: sorted(span.name for span in captured.spans if span.parent_id == span_id)
        for name, span_id in agents.items()
    }

    assert children == {
        name: [*(f"execute_tool {name}{i}" for i in range(3)), "user message"] for name in ("a", "b")
    }
    tools = [span for span in captured.spans if span.name.startswith("execute_tool a")]
    assert [span.name[-1] for span in sorted(tools, key=lambda span: span.end_ns)] == ["2", "1", "0"]
