"""HTTP transports whose responses know when their bytes arrived, and which many connections do not slow down.

httpx hands over one piece per HTTP chunk, and one read of the socket may hold many of them (a server under
load, a slow consumer).  Stamping the pieces would spread one arrival over the time that it takes to unpack
them.  So the stream below the HTTP parser keeps the stamp; see arrival.py.

httpcore's pool looks at every connection for every other one whenever a request begins or ends: with 64
streams that blocks the event loop for milliseconds, with 128 there is no time for anything else.  A client of
ours talks to one server, so its idle connections are a stack, of which the last one that was used is taken.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import anyio
import httpcore
import httpx

from hotspan.tracer.clients.arrival import AsyncBackend, Backend
from hotspan.tracer.clients.urls import Endpoint, proxy_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

MAX_IDLE_CONNECTIONS: Final = 100
IDLE_EXPIRY_S: Final = 4.0  # under the 5 s after which uvicorn, and so vLLM, closes an idle connection

_log = logging.getLogger(__name__)

C = TypeVar("C", httpcore.HTTPConnection, httpcore.AsyncHTTPConnection)


@contextlib.contextmanager
def _as_httpx_errors() -> Iterator[None]:
    """Raise httpcore's exceptions as httpx's, which have the same names."""
    try:
        yield
    except Exception as exc:
        mapped = getattr(httpx, type(exc).__name__, None)
        if type(exc).__module__.partition(".")[0] != "httpcore" or mapped is None:
            raise
        raise mapped(str(exc)) from exc


def _as_httpcore(request: httpx.Request) -> httpcore.Request:
    url = request.url
    return httpcore.Request(
        request.method,
        httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
        headers=request.headers.raw,
        content=request.stream,
        extensions=request.extensions,
    )


class _Body(httpx.SyncByteStream):
    def __init__(self, stream: Any, give_back: Callable[[], None]) -> None:
        self._stream = stream
        self._give_back: Callable[[], None] | None = give_back

    def __iter__(self) -> Iterator[bytes]:
        with _as_httpx_errors():
            yield from self._stream

    def close(self) -> None:
        give_back, self._give_back = self._give_back, None
        if give_back is not None:
            try:
                self._stream.close()
            finally:
                give_back()  # last: from then on the connection is another call's


class _AsyncBody(httpx.AsyncByteStream):
    def __init__(self, stream: Any, give_back: Callable[[], Awaitable[None]]) -> None:
        self._stream = stream
        self._give_back: Callable[[], Awaitable[None]] | None = give_back

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx_errors():
            async for piece in self._stream:
                yield piece

    async def aclose(self) -> None:
        give_back, self._give_back = self._give_back, None
        if give_back is not None:
            try:
                await self._stream.aclose()
            finally:
                await give_back()


class _Connections(Generic[C]):
    """The connections to one server: all that are open, and of these the idle ones, the last used on top."""

    def __init__(self) -> None:
        self.opened: set[C] = set()
        self._stack: list[C] = []

    def take(self) -> tuple[C | None, list[C]]:
        """Return a connection that is ready, None if there is none, and those that have had their time."""
        expired: list[C] = []
        while True:
            try:
                connection = self._stack.pop()
            except IndexError:  # also where another thread was faster
                return None, expired
            if not connection.has_expired():
                return connection, expired
            expired.append(connection)
            self.opened.discard(connection)

    def give_back(self, connection: C) -> C | None:
        """Take a connection whose response was read or left; return one that is to be closed."""
        if connection.is_closed() or not connection.is_idle():
            self.opened.discard(connection)
            return None if connection.is_closed() else connection
        self._stack.append(connection)
        try:
            if len(self._stack) <= MAX_IDLE_CONNECTIONS and not self._stack[0].has_expired():
                return None
            oldest = self._stack.pop(0)
        except IndexError:  # as above
            return None
        self.opened.discard(oldest)
        return oldest


class StampedTransport(httpx.BaseTransport):
    """Connections to one server; a response's `network_stream` extension is a stream of arrival.py."""

    def __init__(self, scheme: str) -> None:
        self._options = {**_connection_options(scheme), "network_backend": Backend()}
        self._connections: _Connections[httpcore.HTTPConnection] = _Connections()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and return its response, the body unread."""
        connection, expired = self._connections.take()
        for old in expired:
            old.close()
        asked = _as_httpcore(request)
        if connection is None:
            connection = httpcore.HTTPConnection(asked.url.origin, **self._options)
            self._connections.opened.add(connection)
        try:
            with _as_httpx_errors():
                response = connection.handle_request(asked)
        except BaseException:
            self._give_back(connection)
            raise
        network = response.extensions.get("network_stream")
        body = _Body(response.stream, functools.partial(self._give_back, connection, network))
        return _as_httpx(response, body)

    def _give_back(self, connection: httpcore.HTTPConnection, network: Any = None) -> None:
        if network is not None:
            network.reset()
        if (over := self._connections.give_back(connection)) is not None:
            over.close()

    def close(self) -> None:
        """Close every connection."""
        while self._connections.opened:
            self._connections.opened.pop().close()


class AsyncStampedTransport(httpx.AsyncBaseTransport):
    """`StampedTransport` for `httpx.AsyncClient`."""

    def __init__(self, scheme: str) -> None:
        self._options = {**_connection_options(scheme), "network_backend": AsyncBackend(scheme)}
        self._connections: _Connections[httpcore.AsyncHTTPConnection] = _Connections()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and return its response, the body unread."""
        connection, expired = self._connections.take()
        for old in expired:
            await old.aclose()
        asked = _as_httpcore(request)
        if connection is None:
            connection = httpcore.AsyncHTTPConnection(asked.url.origin, **self._options)
            self._connections.opened.add(connection)
        try:
            with _as_httpx_errors():
                response = await connection.handle_async_request(asked)
        except BaseException:
            await self._give_back(connection)
            raise
        network = response.extensions.get("network_stream")
        body = _AsyncBody(response.stream, functools.partial(self._give_back, connection, network))
        return _as_httpx(response, body)

    async def _give_back(self, connection: httpcore.AsyncHTTPConnection, network: Any = None) -> None:
        if network is not None:
            network.reset()
        if (over := self._connections.give_back(connection)) is not None:
            with anyio.CancelScope(shield=True):
                await over.aclose()

    async def aclose(self) -> None:
        """Close every connection."""
        while self._connections.opened:
            await self._connections.opened.pop().aclose()


def _as_httpx(response: httpcore.Response, body: Any) -> httpx.Response:
    return httpx.Response(
        response.status, headers=response.headers, stream=body, extensions=response.extensions
    )


def _connection_options(scheme: str) -> dict[str, Any]:
    return {
        # Reading the certificates takes longer than everything else here.
        "ssl_context": httpx.create_ssl_context() if scheme == "https" else None,
        "keepalive_expiry": IDLE_EXPIRY_S,
    }


def _client_options(timeout_s: float | None) -> dict[str, Any]:
    # The proxy was decided for this one server; httpx's own reading of the environment fails on NO_PROXY
    # with a network in it, and would send loopback through a proxy.
    return {"timeout": timeout_s, "trust_env": False, "follow_redirects": False}


def open_client(target: Endpoint, timeout_s: float | None) -> httpx.Client:
    """Return an HTTP client for one server; through a proxy, pieces are stamped as httpx hands them over."""
    proxy = _announced_proxy(target)
    transport = StampedTransport(target.scheme) if proxy is None else httpx.HTTPTransport(proxy=proxy)
    return httpx.Client(transport=transport, **_client_options(timeout_s))


def open_async_client(target: Endpoint, timeout_s: float | None) -> httpx.AsyncClient:
    """Return `open_client`'s counterpart for asynchronous code."""
    proxy = _announced_proxy(target)
    transport = (
        AsyncStampedTransport(target.scheme) if proxy is None else httpx.AsyncHTTPTransport(proxy=proxy)
    )
    return httpx.AsyncClient(transport=transport, **_client_options(timeout_s))


def _announced_proxy(target: Endpoint) -> str | None:
    proxy = proxy_for(target)
    if proxy is not None:
        shown = httpx.URL(proxy).copy_with(username=None, password=None)
        _log.info("requests to %s go through the proxy %s, as the environment says", target.host, shown)
    return proxy
