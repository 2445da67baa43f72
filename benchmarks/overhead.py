"""What a span costs the thread that is traced: Hotspan and the OpenTelemetry SDK, interleaved in one process.

    python benchmarks/overhead.py          # prints the table of docs/how-it-works.md

CPU time of the calling thread (`time.thread_time_ns`), median of the rounds, less the same code without
tracing.  Hotspan writes its file meanwhile; the SDK hands its spans to a batch processor whose exporter drops
them.
"""

from __future__ import annotations

import asyncio
import platform
import statistics
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

import hotspan

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from opentelemetry.sdk.trace import ReadableSpan

N_CALLS = 1_000  # in one reading
N_ROUNDS = 30
ATTRIBUTES = {"a": 1, "b": 2.0, "c": "three", "d": True, "e": "five"}


class _Nowhere(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002 - the SDK's signature
        return SpanExportResult.SUCCESS


provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(_Nowhere()))
tracer = provider.get_tracer("overhead")


def empty() -> None:
    """Do nothing: what remains is the tracing."""


async def empty_async() -> None:
    """Do nothing, as a coroutine."""


hotspan_empty, hotspan_async = hotspan.embedding(empty), hotspan.embedding(empty_async)
sdk_empty = tracer.start_as_current_span("embedding")(empty)
five = hotspan.embedding(**ATTRIBUTES)
outer = hotspan.request("five")


async def sdk_async() -> None:
    """Trace a coroutine with the SDK."""
    with tracer.start_as_current_span("embedding"):
        await empty_async()


def hotspan_request() -> None:
    """Trace one request with four stages of five attributes."""
    with outer as span:
        span.set_many(ATTRIBUTES)
        for _ in range(4):
            with five:
                empty()


def sdk_request() -> None:
    """Trace the same with the SDK."""
    with tracer.start_as_current_span("five", attributes=ATTRIBUTES):
        for _ in range(4):
            with tracer.start_as_current_span("embedding", attributes=ATTRIBUTES):
                empty()


def bare_request() -> None:
    """Do what those two trace."""
    for _ in range(4):
        empty()


def pieces() -> Iterator[str]:
    """Yield what a model would."""
    yield from ["token"] * N_CALLS


async def pieces_async() -> AsyncIterator[str]:
    """Yield the same, asynchronously."""
    for piece in ["token"] * N_CALLS:
        yield piece


hotspan_pieces, hotspan_pieces_async = hotspan.generation(pieces), hotspan.generation(pieces_async)


def sdk_pieces() -> Iterator[str]:
    """Stamp every piece with an event of the SDK's."""
    with tracer.start_as_current_span("chat") as span:
        for piece in pieces():
            span.add_event("chunk")
            yield piece


async def sdk_pieces_async() -> AsyncIterator[str]:
    """Do the same, asynchronously."""
    with tracer.start_as_current_span("chat") as span:
        async for piece in pieces_async():
            span.add_event("chunk")
            yield piece


def repeated(fn: Callable[[], object]) -> Callable[[], None]:
    """Return a function that calls `fn` as often as one reading needs."""

    def run() -> None:
        for _ in range(N_CALLS):
            fn()

    return run


def repeated_async(fn: Callable[[], object]) -> Callable[[], None]:
    """Return a function that awaits `fn` as often as one reading needs."""

    async def main() -> None:
        for _ in range(N_CALLS):
            await fn()  # type: ignore[misc]  # a coroutine function, by its callers

    return lambda: asyncio.run(main())


def consumed(stream: Callable[[], Iterator[str]]) -> Callable[[], None]:
    """Return a function that reads a stream to its end."""

    def run() -> None:
        for _ in stream():
            pass

    return run


def consumed_async(stream: Callable[[], AsyncIterator[str]]) -> Callable[[], None]:
    """Return a function that reads an async stream to its end."""

    async def main() -> None:
        async for _ in stream():
            pass

    return lambda: asyncio.run(main())


# work -> without tracing, with Hotspan, with the SDK
WORK = {
    "span, function": (repeated(empty), repeated(hotspan_empty), repeated(sdk_empty)),
    "span, coroutine function": (
        repeated_async(empty_async),
        repeated_async(hotspan_async),
        repeated_async(sdk_async),
    ),
    "request of 5 spans, 5 attributes each": (
        repeated(bare_request),
        repeated(hotspan_request),
        repeated(sdk_request),
    ),
    "item of a traced generator, stamped": (
        consumed(pieces),
        consumed(hotspan_pieces),
        consumed(sdk_pieces),
    ),
    "item of a traced async generator, stamped": (
        consumed_async(pieces_async),
        consumed_async(hotspan_pieces_async),
        consumed_async(sdk_pieces_async),
    ),
}


def reading_us(run: Callable[[], None]) -> float:
    """Return the CPU time of this thread per call, in microseconds."""
    before = time.thread_time_ns()
    run()
    return (time.thread_time_ns() - before) / N_CALLS / 1_000


def measure(runs: Sequence[Callable[[], None]]) -> list[float]:
    """Return the median of each, the rounds interleaved so that drift meets all alike."""
    readings: list[list[float]] = [[] for _ in runs]
    for _ in range(N_ROUNDS):
        for run, kept in zip(runs, readings, strict=True):
            kept.append(reading_us(run))
            hotspan.flush()
            provider.force_flush()
    return [statistics.median(kept) for kept in readings]


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        hotspan.configure(file=Path(folder) / "run.jsonl")
        print(
            f"Python {platform.python_version()}, OpenTelemetry SDK {metadata.version('opentelemetry-sdk')}\n"
        )
        print("| work | Hotspan, µs | OpenTelemetry SDK, µs | ratio |\n| --- | ---: | ---: | ---: |")
        for name, runs in WORK.items():
            bare, ours, sdk = measure(runs)
            print(f"| {name} | {ours - bare:.2f} | {sdk - bare:.2f} | {(sdk - bare) / (ours - bare):.0f} |")
        print(f"\n{hotspan.shutdown()}")


if __name__ == "__main__":
    main()
