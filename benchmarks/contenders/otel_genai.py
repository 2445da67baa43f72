"""OpenTelemetry's own instrumentation of the openai client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contenders.harness import otel
from opentelemetry import trace
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider

if TYPE_CHECKING:
    from contenders.harness.target import Target

TITLE = "opentelemetry genai-openai"
PACKAGES = ("opentelemetry-instrumentation-genai-openai", "opentelemetry-sdk", "openai<3")
TARGETS = ("drop",)


def start(target: Target) -> None:
    """Set the SDK up with its batch processor."""
    provider = TracerProvider()
    provider.add_span_processor(otel.processor(target))
    trace.set_tracer_provider(provider)


def drain() -> None:
    """Wait until the processor's queue is empty."""
    trace.get_tracer_provider().force_flush(otel.FLUSH_MS)  # type: ignore[attr-defined]  # the SDK's provider


def openai_client(client: Any) -> Any:
    """Return the client, its class instrumented."""
    OpenAIInstrumentor().instrument()
    return client
