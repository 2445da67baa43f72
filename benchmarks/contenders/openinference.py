"""OpenInference: the decorators of its tracer, and its instrumentation of the openai client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contenders.harness import otel
from openinference.instrumentation import TracerProvider
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry import trace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from contenders.harness.target import Target
    from opentelemetry.sdk.trace import ReadableSpan

TITLE = "openinference"
PACKAGES = (
    "openinference-instrumentation",
    "openinference-instrumentation-openai",
    "opentelemetry-sdk",
    "opentelemetry-exporter-otlp-proto-http",
    "openai<3",
)
TARGETS = ("drop", "otlp", "hang", "keep")
NOTES = {"chunk": "no stamps, the chunks are kept", "chunk-async": "no stamps, the chunks are kept"}

_tracer: Any = None


def start(target: Target) -> None:
    """Set OpenInference's provider up with the SDK's batch processor."""
    global _tracer  # noqa: PLW0603 - one set-up per process, as every contender has
    provider = TracerProvider()
    provider.add_span_processor(otel.processor(target))
    trace.set_tracer_provider(provider)
    _tracer = provider.get_tracer("benchmark")


def drain() -> None:
    """Wait until the processor's queue is empty."""
    trace.get_tracer_provider().force_flush(otel.FLUSH_MS)  # type: ignore[attr-defined]  # the SDK's provider


def traced(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Return `fn` decorated."""
    return _tracer.chain(fn)


def traced_async(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Return the coroutine function `fn` decorated."""
    return _tracer.chain(fn)


def request(attributes: Mapping[str, Any]) -> Callable[[], None]:
    """Return a request of five spans with these attributes."""

    def run() -> None:
        with _tracer.start_as_current_span("request", openinference_span_kind="chain", attributes=attributes):
            for _ in range(4):
                with _tracer.start_as_current_span(
                    "step", openinference_span_kind="chain", attributes=attributes
                ):
                    pass

    return run


def stream(fn: Callable[[int], Iterator[str]]) -> Callable[[int], Iterator[str]]:
    """Return the generator function `fn` decorated as a model call, which is the decorator that steps it."""
    return _tracer.llm(fn)


def stream_async(fn: Callable[[int], AsyncIterator[str]]) -> Callable[[int], AsyncIterator[str]]:
    """Return the asynchronous generator function `fn` decorated likewise."""
    return _tracer.llm(fn)


def accounts() -> dict[str, dict[str, Any]]:
    """Return what was recorded of each call since the last time: model -> figure -> ns."""
    return otel.accounts(_account)


def _account(span: ReadableSpan) -> tuple[str, dict[str, Any]]:
    # One event, at the first chunk, which it calls the first token's.
    stamps = [event.timestamp for event in span.events if event.name == "First Token Stream Event"]
    first_ns = stamps[0] - span.start_time if stamps else None
    return str(span.attributes["llm.model_name"]), {"ttfb": first_ns, "ttft": first_ns}


def openai_client(client: Any) -> Any:
    """Return the client, its class instrumented."""
    OpenAIInstrumentor().instrument()
    return client
