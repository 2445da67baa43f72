"""What one reading is: runs in a contender's own process, with the standard library and the contender alone.

A reading of the rows of the calling thread is CPU time of that thread (`time.thread_time_ns`) per call, less
the same code without tracing, measured just before.  What a library does in its own threads is not in it: it
is in the rows that measure the whole process.
"""

from __future__ import annotations

import gc
import itertools
import statistics
import time
import tracemalloc
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Callable, Iterator
    from types import ModuleType

    from contenders.harness.target import Target

    Run = Callable[[int], int]  # makes so many calls and returns their CPU time, ns

ATTRIBUTES: Final = {"a": 1, "b": 2.0, "c": "three", "d": True, "e": "five"}
SPANS_PER_REQUEST: Final = 5
N_CHUNKS: Final = (
    500  # of the long stream; the short one has one chunk, and the difference is the chunks' own
)
READING_NS: Final = 10_000_000  # what one reading is to last
MAX_SPANS: Final = 1_000  # in one reading: fewer than the SDK's queue holds, so that nothing is dropped
N_READINGS: Final = 5  # in one round
N_WARM_UP: Final = 20


def _empty() -> None:
    return None


async def _empty_async() -> None:
    return None


def _chunks(n: int) -> Iterator[str]:
    for _ in range(n):
        yield "token"


async def _chunks_async(n: int) -> AsyncIterator[str]:
    for _ in range(n):
        yield "token"


class Reading:
    """How one row is read from one contender.

    Args:
        traced: Makes n calls that are traced.
        bare: Makes the same calls without tracing; None where they are measured by another contender.
        n_spans: Spans that one call makes.
        n_units: Units of the row in one call.
        drain: Waits until the library has sent everything.
    """

    def __init__(
        self,
        traced: Run,
        bare: Run | None,
        *,
        drain: Callable[[], object],
        n_spans: int = 1,
        n_units: int = 1,
    ) -> None:
        self._traced, self._bare, self._drain, self._n_units = traced, bare, drain, n_units
        self._traced(N_WARM_UP)
        drain()
        each_ns = self._traced(N_WARM_UP) / N_WARM_UP
        drain()
        self._n_calls = max(5, min(MAX_SPANS // n_spans, int(READING_NS / max(each_ns, 1))))

    def median_us(self) -> float:
        """Return the median of some readings, in microseconds per unit."""
        return statistics.median(self._read() for _ in range(N_READINGS))

    def _read(self) -> float:
        n = self._n_calls
        bare_ns = self._bare(n) if self._bare is not None else 0
        traced_ns = self._traced(n)
        self._drain()
        return (traced_ns - bare_ns) / n / self._n_units / 1_000


# --- Rows of the calling thread ----------------------------------------------------------------------------


def _calls(fn: Callable[[], Any]) -> Run:
    def run(n: int) -> int:
        before = time.thread_time_ns()
        for _ in itertools.repeat(None, n):
            fn()
        return time.thread_time_ns() - before

    return run


def _awaits(fn: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> Run:
    async def main(n: int) -> int:
        before = time.thread_time_ns()
        for _ in itertools.repeat(None, n):
            await fn()
        return time.thread_time_ns() - before

    return lambda n: loop.run_until_complete(main(n))


def _streams(fn: Callable[[int], Any]) -> Run:
    def consume(n_streams: int, n_chunks: int) -> int:
        before = time.thread_time_ns()
        for _ in itertools.repeat(None, n_streams):
            for _chunk in fn(n_chunks):
                pass
        return time.thread_time_ns() - before

    return lambda n: consume(n, N_CHUNKS + 1) - consume(n, 1)


def _async_streams(fn: Callable[[int], Any], loop: asyncio.AbstractEventLoop) -> Run:
    async def consume(n_streams: int, n_chunks: int) -> int:
        before = time.thread_time_ns()
        for _ in itertools.repeat(None, n_streams):
            async for _chunk in fn(n_chunks):
                pass
        return time.thread_time_ns() - before

    return lambda n: (
        loop.run_until_complete(consume(n, N_CHUNKS + 1)) - loop.run_until_complete(consume(n, 1))
    )


def _openai_streams(contender: ModuleType, target: Target) -> Run:
    import openai  # noqa: PLC0415 - only contenders that are in this row have it

    client = contender.openai_client(
        openai.OpenAI(base_url=f"{target.url}/v1", api_key="none", max_retries=0)
    )

    def stream(n_chunks: int) -> Any:
        # The collector's stand-in for a model answers with as many chunks as it is asked for.
        messages = [{"role": "user", "content": "hello"}]
        return client.chat.completions.create(
            model="none", messages=messages, max_tokens=n_chunks, stream=True
        )

    return _streams(stream)


def reading(contender: ModuleType, row: str, target: Target, loop: asyncio.AbstractEventLoop) -> Reading:
    """Return how `row`, one of the calling thread, is read from the contender."""
    drain = contender.drain
    if row == "sync":
        return Reading(_calls(contender.traced(_empty)), _calls(_empty), drain=drain)
    if row == "async":
        traced = contender.traced_async(_empty_async)
        return Reading(_awaits(traced, loop), _awaits(_empty_async, loop), drain=drain)
    if row == "request":
        request = contender.request(ATTRIBUTES)
        return Reading(_calls(request), _calls(_empty), drain=drain, n_spans=SPANS_PER_REQUEST)
    if row == "chunk":
        traced = contender.stream(_chunks)
        return Reading(_streams(traced), _streams(_chunks), drain=drain, n_units=N_CHUNKS)
    if row == "chunk-async":
        traced = contender.stream_async(_chunks_async)
        bare = _async_streams(_chunks_async, loop)
        return Reading(_async_streams(traced, loop), bare, drain=drain, n_units=N_CHUNKS)
    return Reading(_openai_streams(contender, target), None, drain=drain, n_units=N_CHUNKS)


# --- Rows of a whole process -------------------------------------------------------------------------------


def sustained(contender: ModuleType, n_spans: int) -> dict[str, float]:
    """Make spans as fast as one thread can, and return what the process spent until all had been sent.

    Returns:
        `value`: CPU time of all threads per span that was started, in microseconds.  `n_started`: spans that
        were started, those of the warm-up too.
    """
    request = contender.request(ATTRIBUTES)
    for _ in range(N_WARM_UP):
        request()
    contender.drain()
    n_requests = n_spans // SPANS_PER_REQUEST
    before = time.process_time_ns()
    for _ in itertools.repeat(None, n_requests):
        request()
    contender.drain()
    spent_ns = time.process_time_ns() - before
    n_started = (N_WARM_UP + n_requests) * SPANS_PER_REQUEST
    return {"value": spent_ns / (n_requests * SPANS_PER_REQUEST) / 1_000, "n_started": n_started}


def held(contender: ModuleType, n_spans: int) -> dict[str, float]:
    """Make spans while their collector does not answer, and return the bytes that each of them takes.

    What is counted is the memory that Python allocated (`tracemalloc`), once the library's threads have come
    to rest, and with a garbage collection before.
    """
    request = contender.request(ATTRIBUTES)
    for _ in range(N_WARM_UP):
        request()
    _settle()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    n_requests = n_spans // SPANS_PER_REQUEST
    for _ in itertools.repeat(None, n_requests):
        request()
    _settle()
    n_bytes = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return {"value": n_bytes / (n_requests * SPANS_PER_REQUEST)}


def _settle(*, quiet_s: float = 0.5, timeout_s: float = 30.0) -> None:
    """Wait until the process uses next to no CPU, then collect garbage."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        before = time.process_time()
        time.sleep(quiet_s)
        if time.process_time() - before < 0.02 * quiet_s:
            break
    gc.collect()
