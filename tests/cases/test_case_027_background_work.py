"""Work that outlives its request is recorded whole, below the parent that has ended."""

import asyncio

import hotspan
from hotspan.testing import FakeClock, capture


def test_late_children_keep_their_parent_and_their_time():
    """A fire-and-forget child ends, and a grandchild begins, after the root has ended."""

    async def background(clock, root_ended):
        with hotspan.step("child"):
            await root_ended.wait()
            clock.advance(ms=50)
            with hotspan.step("grandchild"):
                clock.advance(ms=100)

    async def main(clock):
        root_ended = asyncio.Event()
        with hotspan.request("root"):
            clock.advance(ms=50)
            task = asyncio.create_task(background(clock, root_ended))
            await asyncio.sleep(0)
            clock.advance(ms=50)
        root_ended.set()
        await task

    with FakeClock(0) as clock, capture() as captured:
        asyncio.run(main(clock))
    times = {span.name.split()[1]: (span.start_ns // 10**6, span.end_ns // 10**6) for span in captured.spans}

    assert captured.tree() == [["request root", ["step child", ["step grandchild"]]]]
    assert times == {"root": (0, 100), "child": (50, 250), "grandchild": (150, 250)}
