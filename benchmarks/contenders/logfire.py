"""Logfire, with its own span processors and one that drops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import logfire
from contenders.harness import otel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from contenders.harness.target import Target

TITLE = "logfire"
PACKAGES = ("logfire", "openai<3")
TARGETS = ("drop", "otlp", "hang")
ENVIRONMENT = {"LOGFIRE_IGNORE_NO_CONFIG": "1"}
NOTES = {"chunk": "no stamps", "chunk-async": "no stamps"}


def start(target: Target) -> None:
    """Configure logfire to send nothing home and print nothing."""
    logfire.configure(
        send_to_logfire=False,
        console=False,
        metrics=False,
        inspect_arguments=False,
        additional_span_processors=[otel.processor(target)],
    )


def drain() -> None:
    """Wait until the processors' queues are empty."""
    logfire.force_flush(otel.FLUSH_MS)


def traced(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Return `fn` decorated."""
    return logfire.instrument("empty")(fn)


def traced_async(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Return the coroutine function `fn` decorated."""
    return logfire.instrument("empty")(fn)


def request(attributes: Mapping[str, Any]) -> Callable[[], None]:
    """Return a request of five spans with these attributes."""

    def run() -> None:
        with logfire.span("request", **attributes):
            for _ in range(4):
                with logfire.span("step", **attributes):
                    pass

    return run


def stream(fn: Callable[[int], Iterator[str]]) -> Callable[[int], Iterator[str]]:
    """Return the generator function `fn` decorated."""
    return logfire.instrument("stream", allow_generator=True)(fn)


def stream_async(fn: Callable[[int], AsyncIterator[str]]) -> Callable[[int], AsyncIterator[str]]:
    """Return the asynchronous generator function `fn` decorated."""
    return logfire.instrument("stream", allow_generator=True)(fn)


def openai_client(client: Any) -> Any:
    """Return the client instrumented."""
    logfire.instrument_openai(client)
    return client
