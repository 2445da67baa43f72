"""What-if against the truth: the change is made in a running program, and both are measured in one run.

Delays are real sleeps; a machine under load makes them longer, for both programs alike.  So the two run in
turns, medians are compared, and what is estimated is a ratio.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from itertools import groupby

import pytest

import hotspan
from hotspan.analysis import analyse
from hotspan.testing import capture
from hotspan.tracer.record import Trace

N = 5  # rounds: medians of so many
DELAYS = {"embedding": 0.02, "retrieval": 0.04, "tool": 0.06, "rerank": 0.10, "generation": 0.12}
CLOSE = 0.05  # of the request
ROUNDS = 3


def traces_of(captured):
    """The captured spans as traces."""
    spans = sorted(captured.spans, key=lambda span: span.trace_id)
    return [Trace(trace_id, found) for trace_id, found in groupby(spans, key=lambda span: span.trace_id)]


def sequential(delays):
    """One stage after the other."""
    with hotspan.request("ask"):
        for stage, delay in delays.items():
            with getattr(hotspan, stage)():
                time.sleep(delay)


def parallel(delays):
    """Embedding, then retrieval, a tool and a rerank at once, then the answer."""

    async def work(stage):
        with getattr(hotspan, stage)():
            await asyncio.sleep(delays[stage])

    async def ask():
        with hotspan.request("ask"):
            await work("embedding")
            await asyncio.gather(work("retrieval"), work("tool"), work("rerank"))
            await work("generation")

    asyncio.run(ask())


def nested(delays):
    """An agent whose steps ask the model and run two tools at once, each with a search inside."""

    async def look_up():
        async with hotspan.tool("look up"):
            await asyncio.sleep(delays["tool"])
            async with hotspan.retrieval("search"):
                await asyncio.sleep(delays["retrieval"])

    async def ask():
        with hotspan.request("ask"), hotspan.agent("agent"):
            for _ in range(2):
                with hotspan.step():
                    with hotspan.generation():
                        await asyncio.sleep(delays["generation"])
                    await asyncio.gather(look_up(), look_up())

    asyncio.run(ask())


def fan_out(delays, *, at_once=False):
    """Three searches, one after the other or at once, between the embedding and the answer."""

    async def search(delay):
        async with hotspan.retrieval("search"):
            await asyncio.sleep(delay)

    async def ask():
        searches = [search(delays[stage]) for stage in ("retrieval", "rerank", "tool")]
        with hotspan.request("ask"):
            with hotspan.embedding():
                await asyncio.sleep(delays["embedding"])
            if at_once:
                await asyncio.gather(*searches)
            else:
                for one in searches:
                    await one
            with hotspan.generation():
                await asyncio.sleep(delays["generation"])

    asyncio.run(ask())


@pytest.mark.parametrize("factor", [pytest.param(0.5, id="half"), pytest.param(0, id="gone")])
@pytest.mark.parametrize(
    ("program", "stage"),
    [
        pytest.param(sequential, "rerank", id="in-sequence"),
        pytest.param(sequential, "generation", id="in-sequence-the-longest"),
        pytest.param(parallel, "rerank", id="at-once-until-another-is-longer"),
        pytest.param(parallel, "tool", id="at-once-beside-a-longer-one"),
        pytest.param(parallel, "generation", id="after-what-ran-at-once"),
        pytest.param(nested, "generation", id="in-an-agent"),
        pytest.param(nested, "retrieval", id="inside-tools-at-once"),
    ],
)
def test_the_estimate_is_what_the_changed_program_takes(program, stage, factor):
    """Half the delay of a stage, or none, in the estimate and in the program: the same request, to 5 %."""
    changed = DELAYS | {stage: DELAYS[stage] * factor}
    kind = "x0.5" if factor else "removed"

    assert_close(lambda: program(DELAYS), lambda: program(changed), f"{stage} {kind}")


def test_calls_at_once_take_what_is_estimated():
    """Searches that follow each other, and a program that asks them at once: the same request, to 5 %."""
    assert_close(lambda: fan_out(DELAYS), lambda: fan_out(DELAYS, at_once=True), "retrieval in parallel")


def assert_close(program, changed, change):
    """Hold the estimate of a change against the program that has it.

    A machine that is busy for a moment spoils one round; the program is measured again, at most twice.
    """
    for _ in range(ROUNDS):
        estimated, really = measured(program, changed, change)
        if estimated == pytest.approx(really, abs=CLOSE):
            break
    assert estimated == pytest.approx(really, abs=CLOSE)


def measured(program, changed, change):
    """What a change is said to do to a program, and what it does: shares of the request."""
    with capture() as captured:
        for _ in range(N):
            program()
            changed()
    ordered = sorted(traces_of(captured), key=lambda trace: min(span.start_ns for span in trace.spans))
    before, after = ordered[::2], ordered[1::2]

    estimated = {found.change: found.request_p50_change_ratio for found in analyse(before).what_if}
    really = median_ns(after) / median_ns(before) - 1

    # A stage that no request waited for is not in the list: there is nothing to gain.
    return estimated.get(change, 0.0), really


def median_ns(traces):
    """The median duration of the requests."""
    return statistics.median(root.duration_ns for trace in traces for root in trace.roots)
