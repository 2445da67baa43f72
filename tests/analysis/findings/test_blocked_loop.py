"""A real event loop that is blocked, and one that is not: the same work, in the loop and in a thread."""

from __future__ import annotations

import asyncio
import time
from itertools import groupby

import pytest

import hotspan
from hotspan.analysis import analyse
from hotspan.testing import capture
from hotspan.tracer.record import Trace

N_USERS, N_EACH = 6, 6
RERANK_S, ANSWER_S = 0.02, 0.12


def in_the_loop():
    """Work that the event loop has to do itself."""
    with hotspan.rerank():
        time.sleep(RERANK_S)


async def blocking():
    """A synchronous reranker, called where everything else runs."""
    in_the_loop()


async def threaded():
    """The same, in a thread."""
    await asyncio.to_thread(hotspan.propagate(in_the_loop))


async def remote():
    """A reranker on another machine: nothing runs here."""
    with hotspan.rerank():
        await asyncio.sleep(RERANK_S)


async def serve(rerank):
    """Several users at once, each asking again and again."""

    async def user(number):
        await asyncio.sleep(number * ANSWER_S / N_USERS)  # not all in step
        for _ in range(N_EACH):
            with hotspan.request("ask"):
                await rerank()
                with hotspan.generation():
                    await asyncio.sleep(ANSWER_S)

    await asyncio.gather(*map(user, range(N_USERS)))


@pytest.mark.parametrize(
    ("rerank", "is_blocked"),
    [
        pytest.param(blocking, True, id="in-the-loop"),
        pytest.param(threaded, False, id="in-a-thread"),
        pytest.param(remote, False, id="elsewhere"),
    ],
)
def test_a_loop_that_is_held_is_named(rerank, is_blocked):
    """Synchronous work in the loop stops the others; in a thread or elsewhere it does not."""
    with capture() as captured:
        asyncio.run(serve(rerank))
    spans = sorted(captured.spans, key=lambda span: span.trace_id)
    traces = [Trace(key, found) for key, found in groupby(spans, key=lambda span: span.trace_id)]

    found = {finding.id: finding for finding in analyse(traces).findings}

    assert ("event-loop-blocked" in found) is is_blocked
    if is_blocked:
        assert "(rerank)" in found["event-loop-blocked"].text
