"""Langfuse: its decorator and its observations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contenders.harness import otel
from langfuse import Langfuse, get_client, observe

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from contenders.harness.target import Target

TITLE = "langfuse"
PACKAGES = ("langfuse", "openai<3", "opentelemetry-exporter-otlp-proto-http")
TARGETS = ("drop", "otlp")
NOTES = {"chunk": "no stamps, the chunks are kept", "chunk-async": "no stamps, the chunks are kept"}


def start(target: Target) -> None:
    """Make the client, with its own batch processor and the same exporter as the others have."""
    Langfuse(
        public_key="pk-lf-none",
        secret_key="sk-lf-none",  # noqa: S106 - no secret
        base_url=target.url,
        span_exporter=otel.exporter(target),
    )


def drain() -> None:
    """Wait until the client has sent everything."""
    get_client().flush()


def traced(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Return `fn` decorated."""
    return observe()(fn)


def traced_async(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Return the coroutine function `fn` decorated."""
    return observe()(fn)


def request(attributes: Mapping[str, Any]) -> Callable[[], None]:
    """Return a request of five spans with these attributes."""
    client, metadata = get_client(), dict(attributes)

    def run() -> None:
        with client.start_as_current_observation(as_type="span", name="request", metadata=metadata):
            for _ in range(4):
                with client.start_as_current_observation(as_type="span", name="step", metadata=metadata):
                    pass

    return run


def stream(fn: Callable[[int], Iterator[str]]) -> Callable[[int], Iterator[str]]:
    """Return the generator function `fn` decorated."""
    return observe(as_type="generation")(fn)


def stream_async(fn: Callable[[int], AsyncIterator[str]]) -> Callable[[int], AsyncIterator[str]]:
    """Return the asynchronous generator function `fn` decorated."""
    return observe(as_type="generation")(fn)


def openai_client(client: Any) -> Any:
    """Return the client that Langfuse documents as the drop-in for it."""
    from langfuse.openai import OpenAI  # noqa: PLC0415 - importing it instruments every client

    return OpenAI(base_url=client.base_url, api_key="none", max_retries=0)
