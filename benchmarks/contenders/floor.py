"""The least that anything which measures can do: two clock readings and one tuple per span."""

from __future__ import annotations

import functools
import threading
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from contenders.harness.target import Target

TITLE = "*do-nothing floor*"
PACKAGES = ("openai<3", "httpx")  # the bare clients, which the others' figures are compared with
TARGETS = ("drop", "file", "hang", "keep")
NOTES = {
    "openai": "the bare client, which the others' figures are over",
    "file": "one line of text per span, without ids, escaping or checks",
    "memory": "the same line, as bytes",
}

_Span = tuple[str, int, int, "Mapping[str, object] | None"]
_finished: deque[_Span] = deque()
_held: list[bytes] = []
_sink: Callable[[bytes], object] | None = None


def start(target: Target) -> None:
    """Write what is kept, in a thread of its own, where it is to be written."""
    global _sink  # noqa: PLW0603 - one set-up per process, as every contender has
    if target.kind == "file":
        _sink = Path(target.path).open("ab", buffering=1 << 20).write  # noqa: SIM115 - as long as the process
        threading.Thread(target=_drain_for_ever, daemon=True).start()
    elif target.kind == "hang":
        _sink = _held.append


def _drain_for_ever() -> None:
    while True:
        time.sleep(0.02)
        drain()


def drain() -> None:
    """Encode what is kept, or forget it."""
    if _sink is None:
        _finished.clear()
    while _finished:
        name, begun, ended, attributes = _finished.popleft()
        _sink(
            f'{{"spanId":0,"name":"{name}","start":{begun},"end":{ended},"attributes":{attributes}}}\n'.encode()
        )
    if _sink not in (None, _held.append):
        _sink.__self__.flush()


def traced(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Return `fn` with a clock reading on both sides."""
    now, keep, name = time.perf_counter_ns, _finished.append, fn.__name__

    @functools.wraps(fn)
    def wrapper() -> Any:
        begun = now()
        try:
            return fn()
        finally:
            keep((name, begun, now(), None))

    return wrapper


def traced_async(fn: Callable[[], Any]) -> Callable[[], Any]:
    """Return the coroutine function `fn` with a clock reading on both sides."""
    now, keep, name = time.perf_counter_ns, _finished.append, fn.__name__

    @functools.wraps(fn)
    async def wrapper() -> Any:
        begun = now()
        try:
            return await fn()
        finally:
            keep((name, begun, now(), None))

    return wrapper


class _Timed:
    def __init__(self, name: str, attributes: Mapping[str, object]) -> None:
        self._name, self._attributes = name, attributes

    def __enter__(self) -> None:
        self._begun = time.perf_counter_ns()

    def __exit__(self, *_: object) -> None:
        _finished.append((self._name, self._begun, time.perf_counter_ns(), self._attributes))


def request(attributes: Mapping[str, object]) -> Callable[[], None]:
    """Return a request of five spans with these attributes."""

    def run() -> None:
        with _Timed("request", attributes):
            for _ in range(4):
                with _Timed("step", attributes):
                    pass

    return run


def stream(fn: Callable[[int], Iterator[str]]) -> Callable[[int], Iterator[str]]:
    """Return the generator function `fn` with a clock reading per chunk."""

    def wrapper(n: int) -> Iterator[str]:
        now = time.perf_counter_ns
        stamps = []
        for chunk in fn(n):
            stamps.append(now())
            yield chunk

    return wrapper


def stream_async(fn: Callable[[int], AsyncIterator[str]]) -> Callable[[int], AsyncIterator[str]]:
    """Return the asynchronous generator function `fn` with a clock reading per chunk."""

    async def wrapper(n: int) -> AsyncIterator[str]:
        now = time.perf_counter_ns
        stamps = []
        async for chunk in fn(n):
            stamps.append(now())
            yield chunk

    return wrapper


def openai_client(client: Any) -> Any:
    """Return the client as it is: the others' cost is over this."""
    return client
