"""Hotspan: this working tree."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hotspan

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from contenders.harness.target import Target

TITLE = "**Hotspan**"
PACKAGES = ("{root}", "openai<3")
TARGETS = ("drop", "file", "otlp", "hang", "keep")
NOTES = {
    "sync": "it writes a file meanwhile, in all rows of the calling thread: it has no exporter that drops"
}

FLUSH_S = 120.0

_FIGURES = {
    "ttfb": "hotspan.generation.ttfb_ns",
    "ttft": "hotspan.generation.ttft_ns",
    "tpot": "hotspan.generation.tpot_ns",
    "gaps": "hotspan.generation.chunk_gaps_ns",
}
_paths: list[str] = []


def start(target: Target) -> None:
    """Configure Hotspan; it writes a file where the others drop their spans."""
    _paths[:] = [target.path]
    if target.kind in {"drop", "file", "keep"}:
        hotspan.configure(file=Path(target.path))
    else:
        hotspan.configure(otlp=target.url)


def drain() -> None:
    """Wait until everything was delivered."""
    hotspan.flush(FLUSH_S)


def traced(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Return `fn` decorated."""
    return hotspan.embedding(fn)


def traced_async(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Return the coroutine function `fn` decorated."""
    return hotspan.embedding(fn)


def request(attributes: Mapping[str, Any]) -> Callable[[], None]:
    """Return a request of five spans with these attributes."""

    def run() -> None:
        with hotspan.request("request") as root:
            root.set_many(attributes)
            for _ in range(4):
                with hotspan.step("step") as span:
                    span.set_many(attributes)

    return run


def stream(fn: Callable[[int], Iterator[str]]) -> Callable[[int], Iterator[str]]:
    """Return the generator function `fn` as a generation: every chunk is stamped."""
    return hotspan.generation(fn)


def stream_async(fn: Callable[[int], AsyncIterator[str]]) -> Callable[[int], AsyncIterator[str]]:
    """Return the asynchronous generator function `fn` as a generation: every chunk is stamped."""
    return hotspan.generation(fn)


def accounts() -> dict[str, dict[str, Any]]:
    """Return what was recorded of each call since the last time: model -> figure -> ns."""
    (path,) = _paths
    found = {}
    for trace in hotspan.load(path):
        for span in trace.spans:
            about = {name: span.attributes.get(key) for name, key in _FIGURES.items()}
            found[str(span.attributes["gen_ai.request.model"])] = about
    os.truncate(path, 0)  # it is appended to
    return found


def openai_client(client: Any) -> Any:
    """Return the client, traced."""
    return hotspan.trace_openai(client)
