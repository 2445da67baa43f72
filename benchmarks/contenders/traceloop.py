"""OpenLLMetry: the decorators of traceloop-sdk."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from contenders.harness import otel
from opentelemetry import trace
from traceloop.sdk import Traceloop
from traceloop.sdk.decorators import task, workflow

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from contenders.harness.target import Target
    from opentelemetry.sdk.trace import ReadableSpan

TITLE = "traceloop-sdk"
PACKAGES = ("traceloop-sdk", "httpx", "openai<3")  # it imports httpx, and does not require it
TARGETS = ("drop", "otlp", "hang", "keep")
ENVIRONMENT = {"TRACELOOP_TELEMETRY": "false", "TRACELOOP_METRICS_ENABLED": "false"}
NOTES = {"chunk": "no stamps", "chunk-async": "no stamps"}


def start(target: Target) -> None:
    """Initialise the SDK with a batch processor of the same exporter as the others have."""
    Traceloop.init(app_name="benchmark", processor=otel.processor(target), telemetry_enabled=False)


def drain() -> None:
    """Wait until the processor's queue is empty."""
    trace.get_tracer_provider().force_flush(otel.FLUSH_MS)  # type: ignore[attr-defined]  # the SDK's provider


def traced(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Return `fn` decorated."""
    return task(name="empty")(fn)


def traced_async(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Return the coroutine function `fn` decorated."""
    return task(name="empty")(fn)


def request(attributes: Mapping[str, Any]) -> Callable[[], None]:
    """Return a request of five spans with these attributes, set on the current span."""

    @task(name="step")
    def step() -> None:
        trace.get_current_span().set_attributes(attributes)

    @workflow(name="request")
    def run() -> None:
        trace.get_current_span().set_attributes(attributes)
        for _ in range(4):
            step()

    return run


def stream(fn: Callable[[int], Iterator[str]]) -> Callable[[int], Iterator[str]]:
    """Return the generator function `fn` decorated."""
    return task(name="stream")(fn)


def stream_async(fn: Callable[[int], AsyncIterator[str]]) -> Callable[[int], AsyncIterator[str]]:
    """Return the asynchronous generator function `fn` decorated."""
    return task(name="stream")(fn)


def accounts() -> dict[str, dict[str, Any]]:
    """Return what was recorded of each call since the last time: model -> figure -> ns."""
    return otel.accounts(_account)


def _account(span: ReadableSpan) -> tuple[str, dict[str, Any]]:
    # An event for each chunk; its metric of the time to the first token is taken at the first of them.  The
    # gaps are compared between the tokens: the role comes before them, the end and the usage after them.
    stamps = [event.timestamp for event in span.events if event.name == "gen_ai.content.completion.chunk"]
    first_ns, tokens = (stamps[0] - span.start_time if stamps else None), stamps[1:-2]
    gaps = [later - earlier for earlier, later in itertools.pairwise(tokens)]
    return str(span.attributes["gen_ai.request.model"]), {"ttfb": first_ns, "ttft": first_ns, "gaps": gaps}


def openai_client(client: Any) -> Any:
    """Return the client: `init` has instrumented its class."""
    return client
