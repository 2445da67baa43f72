"""OpenTelemetry's own instrumentation of the openai client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contenders.harness import otel
from opentelemetry import trace
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider

if TYPE_CHECKING:
    from contenders.harness.target import Target
    from opentelemetry.sdk.trace import ReadableSpan

TITLE = "opentelemetry genai-openai"
PACKAGES = ("opentelemetry-instrumentation-genai-openai", "opentelemetry-sdk", "openai<3")
TARGETS = ("drop", "keep")


def start(target: Target) -> None:
    """Set the SDK up with its batch processor."""
    provider = TracerProvider()
    provider.add_span_processor(otel.processor(target))
    trace.set_tracer_provider(provider)


def drain() -> None:
    """Wait until the processor's queue is empty."""
    trace.get_tracer_provider().force_flush(otel.FLUSH_MS)  # type: ignore[attr-defined]  # the SDK's provider


def accounts() -> dict[str, dict[str, Any]]:
    """Return what was recorded of each call since the last time: model -> figure -> ns."""
    return otel.accounts(_account)


def _account(span: ReadableSpan) -> tuple[str, dict[str, Any]]:
    # It says "chunk", and means it: there is no time of a token.
    first_s = span.attributes.get("gen_ai.response.time_to_first_chunk")
    return str(span.attributes["gen_ai.request.model"]), {"ttfb": None if first_s is None else first_s * 1e9}


def openai_client(client: Any) -> Any:
    """Return the client, its class instrumented."""
    OpenAIInstrumentor().instrument()
    return client
