"""`LLMClient` and `AsyncLLMClient`: any OpenAI-compatible server, each call a traced generation.

What they do is in `session.py` and `exchange.py`; here are the two ways to reach the network, and the faces
that users see.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from typing import TYPE_CHECKING, Any, Self, TypeVar

import anyio
import httpx

from hotspan.tracer.clients.call import Attempt, Call
from hotspan.tracer.clients.exchange import Exchange
from hotspan.tracer.clients.headers import request_headers
from hotspan.tracer.clients.session import Session, complete
from hotspan.tracer.clients.transport import open_async_client, open_client
from hotspan.tracer.clients.urls import endpoint
from hotspan.tracer.context import get_context
from hotspan.tracer.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
    from types import TracebackType

    from hotspan.tracer.clients.answer import Completion, Delta

__all__ = ["AsyncChatStream", "AsyncLLMClient", "ChatStream", "LLMClient"]

C = TypeVar("C", httpx.Client, httpx.AsyncClient)

# --- The network ---------------------------------------------------------------------------------------


class _Wire:
    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def request(
        self, url: str, headers: Mapping[str, str], content: bytes | None, attempt: Attempt
    ) -> httpx.Request:
        method = "GET" if content is None else "POST"
        extensions = {"trace": attempt.trace}
        return self._client.build_request(
            method, url, headers=headers, content=content, extensions=extensions
        )

    async def send(self, request: httpx.Request) -> httpx.Response:
        return self._client.send(request, stream=True)

    def pieces(self, response: httpx.Response) -> Iterator[bytes]:
        return response.iter_bytes() if "content-encoding" in response.headers else response.iter_raw()

    async def next_piece(self, pieces: Iterator[bytes]) -> bytes | None:
        return next(pieces, None)

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251 - this wire blocks by design

    async def close(self, response: httpx.Response) -> None:
        response.close()


class _AsyncWire:
    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._orphans: list[httpx.Response] = []
        self._closing: set[asyncio.Task[None]] = set()

    def request(
        self, url: str, headers: Mapping[str, str], content: bytes | None, attempt: Attempt
    ) -> httpx.Request:
        method = "GET" if content is None else "POST"
        extensions = {"trace": attempt.trace_async}
        return self._client.build_request(
            method, url, headers=headers, content=content, extensions=extensions
        )

    async def send(self, request: httpx.Request) -> httpx.Response:
        while self._orphans:
            await self._orphans.pop().aclose()
        return await self._client.send(request, stream=True)

    def pieces(self, response: httpx.Response) -> AsyncIterator[bytes]:
        return response.aiter_bytes() if "content-encoding" in response.headers else response.aiter_raw()

    async def next_piece(self, pieces: AsyncIterator[bytes]) -> bytes | None:
        return await anext(pieces, None)

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)

    async def close(self, response: httpx.Response) -> None:
        await response.aclose()

    def close_later(self, response: httpx.Response) -> None:
        """Close the response of a stream that was dropped: in the running loop, else before the next call."""
        try:
            task = asyncio.get_running_loop().create_task(response.aclose())
        except RuntimeError:
            self._orphans.append(response)
        else:
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)


# --- What both clients share ---------------------------------------------------------------------------


def _checked(client: object, kind: type[C]) -> C:
    if isinstance(client, kind):
        return client
    msg = f"http_client={client!r}: expected an httpx.{kind.__name__}"
    raise ConfigurationError(msg)


class _Client:
    """Building calls, which is the same for both clients."""

    _session: Session
    _usage: bool

    @property
    def base_url(self) -> str:
        """The server's API root."""
        return self._session.target.shown

    def _call(self, messages: Iterable[Any], model: str | None, body: Mapping[str, Any]) -> Call:
        if "stream" in body:
            msg = "stream=...: call .stream() for a streamed answer and .chat() for a whole one"
            raise ConfigurationError(msg)
        return Call(self._session.target, {"model": model, "messages": list(messages), **body}, get_context())

    def _exchange(self, messages: Iterable[Any], model: str | None, body: Mapping[str, Any]) -> Exchange:
        call = self._call(messages, model, body)
        call.body["stream"] = True
        asked = call.body.get("stream_options") or {}
        if self._usage:
            call.body["stream_options"] = {"include_usage": True, **asked}
        return Exchange(self._session, call, hide_usage=not asked.get("include_usage"))


class _Stream:
    """What a stream knows of its answer, during and after."""

    __slots__ = ("__weakref__", "_exchange")

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    @property
    def text(self) -> str:
        """Content of the first answer so far."""
        return self._exchange.answer.text

    @property
    def reasoning(self) -> str:
        """The model's thinking so far."""
        return self._exchange.answer.reasoning

    @property
    def tool_calls(self) -> list[dict[str, Any]]:
        """Tool calls so far, their fragments merged."""
        return self._exchange.answer.tool_calls

    @property
    def finish_reason(self) -> str | None:
        """Why the first answer ended; None while it has not."""
        return self._exchange.answer.finish_reason

    @property
    def usage(self) -> dict[str, Any] | None:
        """The server's `usage` object, the last one that it sent."""
        return self._exchange.answer.usage

    @property
    def metrics(self) -> dict[str, Any] | None:
        """VLLM's per-request `metrics`, as they came."""
        return self._exchange.answer.metrics

    @property
    def timings(self) -> dict[str, Any] | None:
        """llama.cpp's `timings`, as they came."""
        return self._exchange.answer.timings

    @property
    def status(self) -> str:
        """`open` while it runs, then `ok`, `error`, `truncated`, `cancelled` or `abandoned`."""
        return self._exchange.call.status


# --- Blocking ------------------------------------------------------------------------------------------


class ChatStream(_Stream):
    """A streamed answer: iterate it for its `Delta`s, or use it in a `with` statement and iterate it there.

    The request is sent on entering or at the first pull, so that waiting for the answer is not confused with
    waiting for the consumer.  `close`, leaving the `with` statement or dropping it ends the call early.
    """

    __slots__ = ()

    def __iter__(self) -> Iterator[Delta]:
        return self

    def __next__(self) -> Delta:
        delta = complete(self._exchange.pull())
        if delta is None:
            raise StopIteration
        return delta

    def __enter__(self) -> Self:
        complete(self._exchange.open())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        complete(self._exchange.close(exc))

    def close(self) -> None:
        """End the call here, if it has not ended."""
        complete(self._exchange.close())

    def __del__(self) -> None:
        if (response := self._exchange.drop()) is not None:
            with contextlib.suppress(Exception):
                response.close()


class LLMClient(_Client):
    """A blocking client of an OpenAI-compatible server, each call a traced generation.

    Args:
        base_url: Where the server is: "http://127.0.0.1:8000", with or without `/v1`.
        model: The model to ask for; None for the first one that the server offers.
        api_key: Sent as a bearer token; None for none.
        timeout: Longest wait for one step (connecting, the next piece of an answer), seconds; None: no limit.
        headers: Further headers of every request.
        max_retries: How often a request is sent again that met no connection, 429 or 5xx.
        http_client: An `httpx.Client` of your own, which stays yours to close.
        usage: Ask for token counts at the end of streams (`stream_options.include_usage`).

    Example:
        `for delta in LLMClient("http://127.0.0.1:8000").stream([{"role": "user", "content": "Why?"}]): ...`
    """

    def __init__(  # noqa: PLR0913 - keyword-only options, one default each
        self,
        base_url: str,
        *,
        model: str | None = None,
        api_key: str | None = None,
        timeout: float | None = 60.0,
        headers: Mapping[str, str] | None = None,
        max_retries: int = 0,
        http_client: httpx.Client | None = None,
        usage: bool = True,
    ) -> None:
        target = endpoint(base_url)
        self._own = open_client(target, timeout) if http_client is None else None
        wire = _Wire(_checked(self._own or http_client, httpx.Client))
        self._session = Session(
            target, wire, model=model, headers=request_headers(api_key, headers), max_retries=max_retries
        )
        self._usage = usage

    def chat(self, messages: Iterable[Any], *, model: str | None = None, **body: Any) -> Completion:
        """Return the whole answer; `body` is further fields of the request, e.g. `max_tokens`, `tools`.

        Raises:
            EngineError: No connection, or the server refused; with the server's own message.
        """
        return complete(self._session.fetch(self._call(messages, model, body)))

    def stream(self, messages: Iterable[Any], *, model: str | None = None, **body: Any) -> ChatStream:
        """Return the answer as a stream of `Delta`s; iterating raises as `chat` does, and `StreamError`."""
        return ChatStream(self._exchange(messages, model, body))

    def close(self) -> None:
        """Close the connections, unless the HTTP client is the caller's."""
        if self._own is not None:
            self._own.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()


# --- Asynchronous --------------------------------------------------------------------------------------


class AsyncChatStream(_Stream):
    """`ChatStream` for `async for` and `async with`."""

    __slots__ = ("_wire",)

    def __init__(self, exchange: Exchange, wire: _AsyncWire) -> None:
        super().__init__(exchange)
        self._wire = wire

    def __aiter__(self) -> AsyncIterator[Delta]:
        return self

    async def __anext__(self) -> Delta:
        delta = await self._exchange.pull()
        if delta is None:
            raise StopAsyncIteration
        return delta

    async def __aenter__(self) -> Self:
        await self._exchange.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._exchange.close(exc)

    async def close(self) -> None:
        """End the call here, if it has not ended."""
        await self._exchange.close()

    aclose = close

    def __del__(self) -> None:
        if (response := self._exchange.drop()) is not None and not sys.is_finalizing():
            self._wire.close_later(response)


class AsyncLLMClient(_Client):
    """`LLMClient` for asynchronous code; the same arguments, with an `httpx.AsyncClient`.

    Example:
        `async for delta in AsyncLLMClient("http://127.0.0.1:8000").stream(messages): ...`
    """

    def __init__(  # noqa: PLR0913 - keyword-only options, one default each
        self,
        base_url: str,
        *,
        model: str | None = None,
        api_key: str | None = None,
        timeout: float | None = 60.0,
        headers: Mapping[str, str] | None = None,
        max_retries: int = 0,
        http_client: httpx.AsyncClient | None = None,
        usage: bool = True,
    ) -> None:
        target = endpoint(base_url)
        self._own = open_async_client(target, timeout) if http_client is None else None
        self._wire = _AsyncWire(_checked(self._own or http_client, httpx.AsyncClient))
        self._session = Session(
            target,
            self._wire,
            model=model,
            headers=request_headers(api_key, headers),
            max_retries=max_retries,
        )
        self._usage = usage

    async def chat(self, messages: Iterable[Any], *, model: str | None = None, **body: Any) -> Completion:
        """Return the whole answer, as `LLMClient.chat` does."""
        return await self._session.fetch(self._call(messages, model, body))

    def stream(self, messages: Iterable[Any], *, model: str | None = None, **body: Any) -> AsyncChatStream:
        """Return the answer as an asynchronous stream of `Delta`s."""
        return AsyncChatStream(self._exchange(messages, model, body), self._wire)

    async def close(self) -> None:
        """Close the connections, unless the HTTP client is the caller's."""
        if self._own is not None:
            await self._own.aclose()

    aclose = close

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()
