"""A stream that is left early, in whatever way, gives no log line and ends its span once."""

import asyncio
import gc

import pytest

import hotspan
from hotspan.testing import capture


@hotspan.generation
async def tokens():
    """Yield for ever."""
    while True:
        yield "x"
        await asyncio.sleep(0)


async def leave_by_break():
    """Break after the first item, and let the loop go on."""
    async for _ in tokens():
        break
    gc.collect()
    await asyncio.sleep(0.01)


async def close_in_another_task():
    """Start in one task and close in another."""
    made = tokens()
    await asyncio.create_task(anext(made))
    await asyncio.create_task(made.aclose())


async def time_out():
    """Cancel a consumer by a time-out."""

    async def consume():
        async for _ in tokens():
            pass

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(consume(), 0.01)
    gc.collect()
    await asyncio.sleep(0.01)


async def leave_to_the_end_of_the_loop():
    """Return with the stream open."""
    async for _ in tokens():
        return


@pytest.mark.parametrize(
    "leave", [leave_by_break, close_in_another_task, time_out, leave_to_the_end_of_the_loop]
)
def test_no_noise_and_one_span(leave, caplog):
    """Nothing is logged, and the span says that the stream was abandoned or cancelled."""
    with capture() as captured:
        asyncio.run(leave())
        gc.collect()

    assert caplog.records == []
    (span,) = captured.spans
    assert span.attributes["hotspan.outcome"] in {"abandoned", "cancelled"}
    assert span.status == "unset"
