"""LangSmith: its decorator and its trace blocks, sent to a collector that takes everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import langsmith
from langsmith import run_trees, wrappers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from contenders.harness.target import Target

TITLE = "langsmith"
PACKAGES = ("langsmith", "openai<3")
ENVIRONMENT = {"LANGSMITH_TRACING": "true", "LANGSMITH_ENDPOINT": "{url}", "LANGSMITH_API_KEY": "none"}
NOTES = {
    "chunk": "the first chunk is an event, all are kept",
    "chunk-async": "the first chunk is an event, all are kept",
}


def start(target: Target) -> None:
    """Do nothing: the environment has configured it."""


def drain() -> None:
    """Wait until the client has sent everything."""
    run_trees.get_cached_client().flush()


def traced(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Return `fn` decorated."""
    return langsmith.traceable(fn)


def traced_async(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Return the coroutine function `fn` decorated."""
    return langsmith.traceable(fn)


def request(attributes: Mapping[str, Any]) -> Callable[[], None]:
    """Return a request of five spans with these attributes."""
    metadata = dict(attributes)

    def run() -> None:
        with langsmith.trace("request", metadata=metadata):
            for _ in range(4):
                with langsmith.trace("step", metadata=metadata):
                    pass

    return run


def stream(fn: Callable[[int], Iterator[str]]) -> Callable[[int], Iterator[str]]:
    """Return the generator function `fn` decorated as a model call, whose chunks are events."""
    return langsmith.traceable(run_type="llm")(fn)


def stream_async(fn: Callable[[int], AsyncIterator[str]]) -> Callable[[int], AsyncIterator[str]]:
    """Return the asynchronous generator function `fn` decorated likewise."""
    return langsmith.traceable(run_type="llm")(fn)


def openai_client(client: Any) -> Any:
    """Return the client wrapped."""
    return wrappers.wrap_openai(client)
