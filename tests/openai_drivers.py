"""The openai package's two clients behind one interface, traced: each test of one is a test of both."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from typing import TYPE_CHECKING, Any

import httpx
import openai

import hotspan

if TYPE_CHECKING:
    from collections.abc import Callable

# What a stream that breaks raises: the HTTP client's exception, from version 3 on the openai package's own.
BROKEN: Any = (openai.APIConnectionError, httpx.HTTPError)
MESSAGES: Any = [{"role": "user", "content": "Hi"}]


def _options(url: str, options: dict[str, Any]) -> dict[str, Any]:
    return {"base_url": f"{url}/v1", "api_key": "none", "max_retries": 0, **options}


class Blocking:
    """Drives `openai.OpenAI` as a blocking program does."""

    stream_type: Any = openai.Stream

    def __init__(self, url: str, *, usage: bool = False, **options: Any) -> None:
        self.client = hotspan.trace_openai(openai.OpenAI(**_options(url, options)), usage=usage)

    def call(self, path: str, **body: Any) -> Any:
        """Return what the client's method at `path`, e.g. `embeddings.create`, returns."""
        return _method(self.client, path)(**body)

    def chat(self, **body: Any) -> Any:
        """Return a whole chat answer."""
        return self.call("chat.completions.create", model="tiny", messages=MESSAGES, **body)

    def take(self, n: int | None = None, *, end: str = "exhaust", **body: Any) -> list[Any]:
        """Return the first `n` chunks (None: all) of a streamed chat, left in the given way."""
        stream, seen = self.chat(stream=True, **body), []
        for chunk in stream:
            seen.append(chunk)
            if len(seen) == n:
                break
        if end == "close":
            stream.close()
        del stream
        gc.collect()
        return seen

    def gather(self, path: str, **body: Any) -> list[Any]:
        """Return every item of the stream that the method at `path` returns."""
        return list(self.call(path, stream=True, **body))

    def within(self, exc: BaseException | None) -> None:
        """Enter a stream, take one chunk, and leave it, by `exc` if there is one."""
        with contextlib.suppress(BaseException), self.chat(stream=True) as stream:
            next(iter(stream))
            if exc is not None:
                raise exc

    def consume(self, path: str, n: int | None = None, **body: Any) -> list[Any]:
        """Return the first `n` items of the context manager that the method at `path` returns."""
        seen = []
        with self.call(path, **body) as stream:
            for item in stream:
                seen.append(item)
                if len(seen) == n:
                    break
        return seen

    def read(self, n: int | None = None, **body: Any) -> list[bytes]:
        """Return the lines of a streamed chat's HTTP response, read with `with_streaming_response`."""
        seen = []
        path = "chat.completions.with_streaming_response.create"
        with self.call(path, model="tiny", messages=MESSAGES, **body) as response:
            for line in response.iter_lines():
                seen.append(line)
                if len(seen) == n:
                    break
        return seen

    def raw(self, **body: Any) -> tuple[Any, Any]:
        """Return a chat's raw response and what it parses to, a list of chunks for a stream."""
        response = self.call(
            "chat.completions.with_raw_response.create", model="tiny", messages=MESSAGES, **body
        )
        parsed = response.parse()
        return response, list(parsed) if body.get("stream") else parsed

    def close(self) -> None:
        """Close the client."""
        self.client.close()


class Awaiting:
    """Drives `openai.AsyncOpenAI` in an event loop of its own; the same operations."""

    stream_type: Any = openai.AsyncStream

    def __init__(self, url: str, *, usage: bool = False, **options: Any) -> None:
        self.runner = asyncio.Runner()
        self.client = hotspan.trace_openai(openai.AsyncOpenAI(**_options(url, options)), usage=usage)

    def call(self, path: str, **body: Any) -> Any:
        """Return what the client's method at `path` returns."""
        return self.runner.run(_awaited(_method(self.client, path), body))

    def chat(self, **body: Any) -> Any:
        """Return a whole chat answer."""
        return self.call("chat.completions.create", model="tiny", messages=MESSAGES, **body)

    def take(self, n: int | None = None, *, end: str = "exhaust", **body: Any) -> list[Any]:
        """Return the first `n` chunks of a streamed chat, and leave the stream in the given way."""
        return self.runner.run(self._take(n, end, body))

    async def _take(self, n: int | None, end: str, body: dict[str, Any]) -> list[Any]:
        create = self.client.chat.completions.create
        stream, seen = await create(model="tiny", messages=MESSAGES, stream=True, **body), []
        async for chunk in stream:
            seen.append(chunk)
            if len(seen) == n:
                break
        if end == "close":
            await stream.close()
        del stream
        for _ in range(10):  # turns of the event loop, which closes what was dropped
            await asyncio.sleep(0)
            gc.collect()
        return seen

    def gather(self, path: str, **body: Any) -> list[Any]:
        """Return every item of the stream that the method at `path` returns."""
        return self.runner.run(self._gather(path, body))

    async def _gather(self, path: str, body: dict[str, Any]) -> list[Any]:
        return [item async for item in await _method(self.client, path)(stream=True, **body)]

    def within(self, exc: BaseException | None) -> None:
        """Enter a stream, take one chunk, and leave it, by `exc` if there is one."""
        self.runner.run(self._within(exc))

    async def _within(self, exc: BaseException | None) -> None:
        create = self.client.chat.completions.create
        with contextlib.suppress(BaseException):
            async with await create(model="tiny", messages=MESSAGES, stream=True) as stream:
                await anext(stream)
                if exc is not None:
                    raise exc

    def consume(self, path: str, n: int | None = None, **body: Any) -> list[Any]:
        """Return the first `n` items of the context manager that the method at `path` returns."""
        return self.runner.run(self._consume(path, n, body))

    async def _consume(self, path: str, n: int | None, body: dict[str, Any]) -> list[Any]:
        seen = []
        async with _method(self.client, path)(**body) as stream:
            async for item in stream:
                seen.append(item)
                if len(seen) == n:
                    break
        return seen

    def read(self, n: int | None = None, **body: Any) -> list[bytes]:
        """Return the lines of a streamed chat's HTTP response."""
        return self.runner.run(self._read(n, body))

    async def _read(self, n: int | None, body: dict[str, Any]) -> list[bytes]:
        seen = []
        create = self.client.chat.completions.with_streaming_response.create
        async with create(model="tiny", messages=MESSAGES, **body) as response:
            async for line in response.iter_lines():
                seen.append(line)
                if len(seen) == n:
                    break
        return seen

    def raw(self, **body: Any) -> tuple[Any, Any]:
        """Return a chat's raw response and what it parses to, a list of chunks for a stream."""
        return self.runner.run(self._raw(body))

    async def _raw(self, body: dict[str, Any]) -> tuple[Any, Any]:
        create = self.client.chat.completions.with_raw_response.create
        response = await create(model="tiny", messages=MESSAGES, **body)
        parsed = response.parse()
        return response, [chunk async for chunk in parsed] if body.get("stream") else parsed

    def close(self) -> None:
        """Close the client."""
        self.runner.run(self.client.close())
        self.runner.close()


def _method(client: Any, path: str) -> Callable[..., Any]:
    found = client
    for name in path.split("."):
        found = getattr(found, name)
    return found


async def _awaited(method: Callable[..., Any], body: dict[str, Any]) -> Any:
    return await method(**body)


def texts(chunks: list[Any]) -> list[str | None]:
    """Return the content of each chunk's first choice."""
    return [chunk.choices[0].delta.content for chunk in chunks]
