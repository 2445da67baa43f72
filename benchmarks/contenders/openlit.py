"""OpenLIT: its decorator for plain functions, and its span for the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openlit
from contenders.harness import otel
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from contenders.harness.target import Target

TITLE = "openlit"
PACKAGES = ("openlit", "openai<3", "opentelemetry-exporter-otlp-proto-http")
TARGETS = ("drop", "otlp", "hang")
ENVIRONMENT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "{url}"}


def start(target: Target) -> None:
    """Initialise openlit on a provider that is there, as it documents for applications that have one."""
    provider = TracerProvider()
    provider.add_span_processor(otel.processor(target))
    trace.set_tracer_provider(provider)
    openlit.init(
        application_name="benchmark",
        disable_metrics=True,
        disable_events=True,
        pricing_json=_no_prices(target),
    )


def _no_prices(target: Target) -> str:
    # Otherwise it fetches its list of prices.
    path = f"{target.path}.prices.json"
    with open(path, "w") as file:  # noqa: PTH123 - two lines
        file.write('{"chat": {}}')
    return path


def drain() -> None:
    """Wait until the processor's queue is empty."""
    trace.get_tracer_provider().force_flush(otel.FLUSH_MS)  # type: ignore[attr-defined]  # the SDK's provider


def traced(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Return `fn` decorated; of a coroutine function or a generator it would time the making alone."""
    return openlit.trace(fn)


def request(attributes: Mapping[str, Any]) -> Callable[[], None]:
    """Return a request of five spans with these attributes."""
    metadata = dict(attributes)

    def run() -> None:
        with openlit.start_trace("request") as root:
            root.set_metadata(metadata)
            for _ in range(4):
                with openlit.start_trace("step") as span:
                    span.set_metadata(metadata)

    return run


def openai_client(client: Any) -> Any:
    """Return the client: `init` has instrumented its class."""
    return client
