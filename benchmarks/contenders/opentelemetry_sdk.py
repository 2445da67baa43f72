"""The OpenTelemetry SDK, used as its documentation says: what the ratios are to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contenders.harness import otel
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from contenders.harness.target import Target

TITLE = "OpenTelemetry SDK"
PACKAGES = (
    "opentelemetry-sdk",
    "opentelemetry-exporter-otlp-proto-http",
    "opentelemetry-exporter-otlp-json-file",
)
TARGETS = ("drop", "file", "otlp", "hang")
NOTES = {
    "chunk": "one event per chunk",
    "chunk-async": "one event per chunk",
    "memory": "in the queue of its batch processor, made long enough",
}

tracer = trace.get_tracer("benchmark")


def start(target: Target) -> None:
    """Set the SDK up with its batch processor."""
    provider = TracerProvider()
    provider.add_span_processor(otel.processor(target))
    trace.set_tracer_provider(provider)


def drain() -> None:
    """Wait until the processor's queue is empty."""
    trace.get_tracer_provider().force_flush(otel.FLUSH_MS)  # type: ignore[attr-defined]  # the SDK's provider


def traced(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Return `fn` decorated."""
    return tracer.start_as_current_span("empty")(fn)


def traced_async(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Return the coroutine function `fn` decorated."""
    return tracer.start_as_current_span("empty")(fn)


def request(attributes: Mapping[str, Any]) -> Callable[[], None]:
    """Return a request of five spans with these attributes."""

    def run() -> None:
        with tracer.start_as_current_span("request", attributes=attributes):
            for _ in range(4):
                with tracer.start_as_current_span("step", attributes=attributes):
                    pass

    return run


def stream(fn: Callable[[int], Iterator[str]]) -> Callable[[int], Iterator[str]]:
    """Return the generator function `fn` with a span around it and an event per chunk."""

    def wrapper(n: int) -> Iterator[str]:
        with tracer.start_as_current_span("stream") as span:
            for chunk in fn(n):
                span.add_event("chunk")
                yield chunk

    return wrapper


def stream_async(fn: Callable[[int], AsyncIterator[str]]) -> Callable[[int], AsyncIterator[str]]:
    """Return the asynchronous generator function `fn` with a span around it and an event per chunk."""

    async def wrapper(n: int) -> AsyncIterator[str]:
        with tracer.start_as_current_span("stream") as span:
            async for chunk in fn(n):
                span.add_event("chunk")
                yield chunk

    return wrapper
