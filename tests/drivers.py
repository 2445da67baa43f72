"""The two clients behind one interface, so that each test of one is a test of both."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from typing import TYPE_CHECKING, Any

from servers import (
    DONE,
    AwaitClose,
    Step,
    delta,
    event,
    head,
    piece,
    stream,
    usage,
)

from hotspan.tracer.clients.llm import AsyncLLMClient, LLMClient

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hotspan.tracer.clients.answer import Completion, Delta

MESSAGES = [{"role": "user", "content": "Hi"}]
HELLO = stream(
    event(delta("", role="assistant")),
    event(delta("Hel")),
    event(delta("lo", finish="stop")),
    event(usage(5, 2)),
    DONE,
)
ENDLESS: list[Step] = [head(), piece(event(delta("a")) + event(delta("b"))), AwaitClose()]


class Blocking:
    """Drives `LLMClient` as a blocking program does."""

    def __init__(self, url: str, **options: Any) -> None:
        self.client = LLMClient(url, **{"model": "tiny", **options})

    def chat(self, **body: Any) -> Completion:
        """Return a whole answer."""
        return self.client.chat(MESSAGES, **body)

    def take(self, n: int | None = None, *, end: str = "close", **body: Any) -> tuple[list[Delta], Any]:
        """Return the first `n` deltas (None: all) and the stream, left in the given way."""
        answered, seen = self.client.stream(MESSAGES, **body), []
        for piece_ in answered:
            seen.append(piece_)
            if len(seen) == n:
                break
        if end == "close":
            answered.close()
        elif end == "drop":
            exchange = answered._exchange  # noqa: SLF001 - its end is looked at after the stream is gone
            del answered
            gc.collect()
            return seen, exchange.call
        return seen, answered

    def within(self, exc: BaseException | None) -> Any:
        """Enter a stream, take one delta, and leave it, by `exc` if there is one."""
        with contextlib.suppress(BaseException), self.client.stream(MESSAGES) as answered:
            next(answered)
            if exc is not None:
                raise exc
        return answered

    def close(self) -> None:
        """Close the client."""
        self.client.close()


class Awaiting:
    """Drives `AsyncLLMClient` in an event loop of its own; the same operations."""

    def __init__(self, url: str, **options: Any) -> None:
        self.runner = asyncio.Runner()
        self.client = AsyncLLMClient(url, **{"model": "tiny", **options})

    def chat(self, **body: Any) -> Completion:
        """Return a whole answer."""
        return self.runner.run(self.client.chat(MESSAGES, **body))

    def take(self, n: int | None = None, *, end: str = "close", **body: Any) -> tuple[list[Delta], Any]:
        """Return the first `n` deltas and the stream, left in the given way."""
        return self.runner.run(self._take(n, end, body))

    async def _take(self, n: int | None, end: str, body: dict[str, Any]) -> tuple[list[Delta], Any]:
        answered, seen = self.client.stream(MESSAGES, **body), []
        async for piece_ in answered:
            seen.append(piece_)
            if len(seen) == n:
                break
        if end == "close":
            await answered.close()
        elif end == "drop":
            exchange = answered._exchange  # noqa: SLF001 - its end is looked at after the stream is gone
            del answered
            gc.collect()
            return seen, exchange.call
        return seen, answered

    def within(self, exc: BaseException | None) -> Any:
        """Enter a stream, take one delta, and leave it, by `exc` if there is one."""
        return self.runner.run(self._within(exc))

    async def _within(self, exc: BaseException | None) -> Any:
        with contextlib.suppress(BaseException):
            async with self.client.stream(MESSAGES) as answered:
                await anext(answered)
                if exc is not None:
                    raise exc
        return answered

    def close(self) -> None:
        """Close the client."""
        self.runner.run(self.client.close())
        self.runner.close()


def texts(deltas: Iterable[Delta]) -> list[str]:
    """Return the text of each delta."""
    return [d.text for d in deltas]
