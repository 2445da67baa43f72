"""MLflow Tracing, exporting over OTLP as it documents for a collector of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mlflow

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from contenders.harness.target import Target

TITLE = "mlflow-tracing"
PACKAGES = ("mlflow-tracing", "opentelemetry-exporter-otlp-proto-http", "openai<3")
TARGETS = ("drop", "otlp")
ENVIRONMENT = {
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "{url}/v1/traces",
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_TRACKING_URI": "{url}",
}
NOTES = {
    "sync": "exporting over OTLP; to a server of its own it costs more",
    "chunk": "an event per chunk",
    "chunk-async": "an event per chunk",
}


def start(target: Target) -> None:
    """Do nothing: the environment has configured it."""


def drain() -> None:
    """Wait until everything was sent."""
    from mlflow.tracing.provider import provider  # noqa: PLC0415 - made with the first span

    provider.get().force_flush(120_000)


def traced(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Return `fn` decorated."""
    return mlflow.trace(fn)


def traced_async(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Return the coroutine function `fn` decorated."""
    return mlflow.trace(fn)


def request(attributes: Mapping[str, Any]) -> Callable[[], None]:
    """Return a request of five spans with these attributes."""
    given = dict(attributes)

    def run() -> None:
        with mlflow.start_span("request", attributes=given):
            for _ in range(4):
                with mlflow.start_span("step", attributes=given):
                    pass

    return run


def stream(fn: Callable[[int], Iterator[str]]) -> Callable[[int], Iterator[str]]:
    """Return the generator function `fn` decorated."""
    return mlflow.trace(fn)


def stream_async(fn: Callable[[int], AsyncIterator[str]]) -> Callable[[int], AsyncIterator[str]]:
    """Return the asynchronous generator function `fn` decorated."""
    return mlflow.trace(fn)
