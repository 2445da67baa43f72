"""NVIDIA NeMo Agent Toolkit: its function decorator, with one subscriber that drops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nat.builder.context import Context
from nat.plugins.profiler.decorators.function_tracking import track_function

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from contenders.harness.target import Target

TITLE = "nvidia-nat"
PACKAGES = ("nvidia-nat-core", "nvidia-nat-profiler")
NOTES = {
    "sync": "two events to one subscriber that drops, no spans",
    "request": "attributes fixed at decoration",
    "chunk": "an event per chunk",
    "chunk-async": "an event per chunk",
}


def start(target: Target) -> None:  # noqa: ARG001 - its exporters run in its own workflows alone
    """Subscribe something that drops, where its exporters would subscribe."""
    Context.get().intermediate_step_manager.subscribe(on_next=_drop)


def _drop(step: Any) -> None:
    """Take one event."""


def drain() -> None:
    """Do nothing: subscribers are called at once."""


def traced(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Return `fn` decorated."""
    return track_function(fn)


def traced_async(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Return the coroutine function `fn` decorated."""
    return track_function(fn)


def request(attributes: Mapping[str, Any]) -> Callable[[], None]:
    """Return a request of five functions with these attributes."""
    metadata = dict(attributes)

    @track_function(metadata=metadata)
    def step() -> None:
        return None

    @track_function(metadata=metadata)
    def run() -> None:
        for _ in range(4):
            step()

    return run


def stream(fn: Callable[[int], Iterator[str]]) -> Callable[[int], Iterator[str]]:
    """Return the generator function `fn` decorated."""
    return track_function(fn)


def stream_async(fn: Callable[[int], AsyncIterator[str]]) -> Callable[[int], AsyncIterator[str]]:
    """Return the asynchronous generator function `fn` decorated."""
    return track_function(fn)
