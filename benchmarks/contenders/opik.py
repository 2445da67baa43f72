"""Opik: its decorator and its spans, sent to a collector that takes everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import opik

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from contenders.harness.target import Target

TITLE = "opik"
PACKAGES = ("opik", "openai<3")
ENVIRONMENT = {
    "OPIK_URL_OVERRIDE": "{url}",
    "OPIK_WORKSPACE": "default",
    "OPIK_SENTRY_ENABLE": "false",
    "OPIK_ANALYTICS_ENABLE": "false",
    "OPIK_CONSOLE_LOGGING_LEVEL": "ERROR",
}
NOTES = {"chunk": "no stamps, the chunks are kept", "chunk-async": "no stamps, the chunks are kept"}


def start(target: Target) -> None:
    """Do nothing: the environment has configured it."""


def drain() -> None:
    """Wait until the client has sent everything."""
    opik.flush_tracker()


def traced(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Return `fn` decorated."""
    return opik.track(fn)


def traced_async(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Return the coroutine function `fn` decorated."""
    return opik.track(fn)


def request(attributes: Mapping[str, Any]) -> Callable[[], None]:
    """Return a request of five spans with these attributes."""
    metadata = dict(attributes)

    def run() -> None:
        with opik.start_as_current_span("request", metadata=metadata):
            for _ in range(4):
                with opik.start_as_current_span("step", metadata=metadata):
                    pass

    return run


def stream(fn: Callable[[int], Iterator[str]]) -> Callable[[int], Iterator[str]]:
    """Return the generator function `fn` decorated."""
    return opik.track(fn)


def stream_async(fn: Callable[[int], AsyncIterator[str]]) -> Callable[[int], AsyncIterator[str]]:
    """Return the asynchronous generator function `fn` decorated."""
    return opik.track(fn)


def openai_client(client: Any) -> Any:
    """Return the client tracked."""
    from opik.integrations.openai import track_openai  # noqa: PLC0415 - slow to import

    return track_openai(client)
