"""HTTP transports that know when bytes came off the socket.

httpx hands over one piece per HTTP chunk, and one read of the socket may hold many of them (a server under
load, a slow consumer).  Stamping the pieces would spread one arrival over the time that it takes to unpack
them.  So the stream below the HTTP parser keeps the moment at which its last read returned; everything else
is httpcore's pool, as in httpx's own transport.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any, Final

import httpcore
import httpx

from hotspan.tracer import clock
from hotspan.tracer.clients.urls import Endpoint, proxy_for

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Iterator

MAX_CONNECTIONS: Final = 1_000
MAX_IDLE_CONNECTIONS: Final = 100
IDLE_EXPIRY_S: Final = 4.0  # under the 5 s after which uvicorn, and so vLLM, closes an idle connection

_log = logging.getLogger(__name__)


class StampedStream(httpcore.NetworkStream):
    """A connection that keeps when its last read returned (`read_ns`, monotonic)."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner
        self.read_ns = 0
        self.patience_s: float | None = None  # an upper bound on the next reads' timeouts

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read as the inner stream does, and stamp."""
        data = self._inner.read(max_bytes, _shorter(timeout, self.patience_s))
        self.read_ns = clock.now_ns()
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write as the inner stream does."""
        self._inner.write(buffer, timeout)

    def close(self) -> None:
        """Close the inner stream."""
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> StampedStream:
        """Return the encrypted stream, stamped as well."""
        return StampedStream(self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        """Return what the inner stream knows of itself."""
        return self._inner.get_extra_info(info)


class AsyncStampedStream(httpcore.AsyncNetworkStream):
    """`StampedStream` for the asynchronous pool."""

    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner
        self.read_ns = 0
        self.patience_s: float | None = None

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - httpcore's signature
        """Read as the inner stream does, and stamp."""
        data = await self._inner.read(max_bytes, _shorter(timeout, self.patience_s))
        self.read_ns = clock.now_ns()
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as above
        """Write as the inner stream does."""
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close the inner stream."""
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
    ) -> AsyncStampedStream:
        """Return the encrypted stream, stamped as well."""
        return AsyncStampedStream(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        """Return what the inner stream knows of itself."""
        return self._inner.get_extra_info(info)


def _shorter(timeout: float | None, patience_s: float | None) -> float | None:
    if timeout is None or patience_s is None:
        return patience_s if timeout is None else timeout
    return min(timeout, patience_s)


class _Backend(httpcore.SyncBackend):
    def connect_tcp(self, *args: Any, **kwargs: Any) -> StampedStream:
        return StampedStream(super().connect_tcp(*args, **kwargs))


class _AsyncBackend(httpcore.AnyIOBackend):
    async def connect_tcp(self, *args: Any, **kwargs: Any) -> AsyncStampedStream:
        return AsyncStampedStream(await super().connect_tcp(*args, **kwargs))


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
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        with _as_httpx_errors():
            yield from self._stream

    def close(self) -> None:
        self._stream.close()


class _AsyncBody(httpx.AsyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx_errors():
            async for piece in self._stream:
                yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


class StampedTransport(httpx.BaseTransport):
    """A connection pool whose responses carry a `StampedStream` as the `network_stream` extension."""

    def __init__(self, scheme: str) -> None:
        self._pool = httpcore.ConnectionPool(**_pool_options(scheme), network_backend=_Backend())

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and return its response, the body unread."""
        with _as_httpx_errors():
            response = self._pool.handle_request(_as_httpcore(request))
        return httpx.Response(
            response.status,
            headers=response.headers,
            stream=_Body(response.stream),
            extensions=response.extensions,
        )

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()


class AsyncStampedTransport(httpx.AsyncBaseTransport):
    """`StampedTransport` for `httpx.AsyncClient`."""

    def __init__(self, scheme: str) -> None:
        self._pool = httpcore.AsyncConnectionPool(**_pool_options(scheme), network_backend=_AsyncBackend())

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and return its response, the body unread."""
        with _as_httpx_errors():
            response = await self._pool.handle_async_request(_as_httpcore(request))
        return httpx.Response(
            response.status,
            headers=response.headers,
            stream=_AsyncBody(response.stream),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()


def _pool_options(scheme: str) -> dict[str, Any]:
    return {
        # Reading the certificates takes longer than everything else here.
        "ssl_context": httpx.create_ssl_context() if scheme == "https" else None,
        "max_connections": MAX_CONNECTIONS,
        "max_keepalive_connections": MAX_IDLE_CONNECTIONS,
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
