"""Connections that know when the bytes that were read last arrived.

    network ──► kernel ──────► event loop ──► read returns ──► parsed ──► consumer
                arrival stamp  may be busy     plain stamp

Linux keeps with every segment when it came, and gives that out with the bytes (SO_TIMESTAMPNS).  So a program
that is busy, with other streams or with its own work, makes no token late.  What this cannot be had for is
stamped when its read returned: other systems, and TLS, whose records are not segments.  Bytes that wait to be
read may be joined, by the kernel too: they have the stamp of those that came last.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
import sys
from typing import TYPE_CHECKING, Any, Final

import anyio
import httpcore

from hotspan.tracer import clock

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable

CAN_TELL: Final = sys.platform == "linux"
_SO_TIMESTAMPNS: Final = 35  # <asm-generic/socket.h>; Python has no name for it
_STAMP: Final = struct.Struct("@ll")  # a timespec
_ANCILLARY_BYTES: Final = socket.CMSG_SPACE(_STAMP.size) if CAN_TELL else 0
_NS_PER_S: Final = 1_000_000_000
_LONGEST_TRY_S: Final = 2.0  # of one address of a host that has more


def ask_for_stamps(sock: socket.socket) -> bool:
    """Make the kernel tell when bytes arrived; False where it cannot."""
    if not CAN_TELL:
        return False
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    except OSError:
        return False
    return True


def arrival_ns(ancillary: Iterable[tuple[int, int, bytes]], before_ns: int) -> int:
    """Return when what was just read arrived, as a reading of the monotonic clock.

    Args:
        ancillary: What `recvmsg` returned beside the bytes.
        before_ns: The stamp of the read before: bytes arrive in order.
    """
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
            seconds, rest = _STAMP.unpack_from(data)
            return max(before_ns, clock.of_recent_wall_ns(seconds * _NS_PER_S + rest))
    return clock.now_ns()


def _shorter(timeout: float | None, patience_s: float | None) -> float | None:
    if timeout is None or patience_s is None:
        return patience_s if timeout is None else timeout
    return min(timeout, patience_s)


class _Reads:
    """How a connection is read.

    Attributes:
        read_ns: When the bytes that the last read returned arrived (monotonic).
        patience_s: An upper bound on the next reads' timeouts.
        is_told: Whether the kernel tells when bytes arrived; else a read's stamp is when it returned.
    """

    def __init__(self, *, is_told: bool) -> None:
        self.is_told = is_told
        self.read_ns = 0
        self.reset()

    def reset(self) -> None:
        """Read again as a new connection is read: the next call is another's."""
        self.patience_s: float | None = None


class StampedStream(_Reads, httpcore.NetworkStream):
    """A blocking connection, stamped by the kernel where it can."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner
        self._socket: Any = inner.get_extra_info("socket")
        is_plain = self._socket is not None and inner.get_extra_info("ssl_object") is None
        super().__init__(is_told=is_plain and ask_for_stamps(self._socket))

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read as the inner stream does, and stamp."""
        timeout = _shorter(timeout, self.patience_s)
        if not self.is_told:
            data = self._inner.read(max_bytes, timeout)
            self.read_ns = clock.now_ns()
            return data
        try:
            self._socket.settimeout(timeout)
            data, ancillary, _, _ = self._socket.recvmsg(max_bytes, _ANCILLARY_BYTES)
        except TimeoutError as exc:
            raise httpcore.ReadTimeout(str(exc)) from exc
        except OSError as exc:
            raise httpcore.ReadError(str(exc)) from exc
        self.read_ns = arrival_ns(ancillary, self.read_ns)
        return data  # type: ignore[no-any-return]  # a socket's

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


class AsyncStampedStream(_Reads, httpcore.AsyncNetworkStream):
    """A connection of anyio's, stamped when its reads return."""

    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        super().__init__(is_told=False)
        self._inner = inner

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


class AsyncArrivalStream(_Reads, httpcore.AsyncNetworkStream):
    """A connection on a socket of its own, whose bytes have the kernel's stamps."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(is_told=ask_for_stamps(sock))
        self._socket = sock

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - httpcore's signature
        """Wait until there are bytes, and read them."""
        try:
            with anyio.fail_after(_shorter(timeout, self.patience_s)):
                while True:
                    await anyio.wait_readable(self._socket)
                    try:
                        data, ancillary, _, _ = self._socket.recvmsg(max_bytes, _ANCILLARY_BYTES)
                    except BlockingIOError:
                        continue
                    self.read_ns = arrival_ns(ancillary, self.read_ns)
                    return data
        except TimeoutError as exc:
            raise httpcore.ReadTimeout(str(exc)) from exc
        except (OSError, ValueError, anyio.ClosedResourceError) as exc:
            raise httpcore.ReadError(str(exc)) from exc

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as above
        """Send everything."""
        rest = memoryview(buffer)
        try:
            with anyio.fail_after(timeout):
                while rest:
                    try:
                        rest = rest[self._socket.send(rest) :]
                    except BlockingIOError:
                        await anyio.wait_writable(self._socket)
        except TimeoutError as exc:
            raise httpcore.WriteTimeout(str(exc)) from exc
        except (OSError, ValueError, anyio.ClosedResourceError) as exc:
            raise httpcore.WriteError(str(exc)) from exc

    async def aclose(self) -> None:
        """Close the socket; who waits for it is told."""
        if self._socket.fileno() >= 0:
            anyio.notify_closing(self._socket)
            self._socket.close()

    def get_extra_info(self, info: str) -> Any:
        """Return what httpcore asks of a connection."""
        match info:
            case "is_readable":
                return is_readable(self._socket)
            case "socket":
                return self._socket
            case "client_addr":
                return self._socket.getsockname()
            case "server_addr":
                return self._socket.getpeername()
        return None


def is_readable(sock: socket.socket) -> bool:
    """Return whether a read would return at once, with bytes or with the end."""
    if sock.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLIN)
    return bool(poll.poll(0))


async def connect(host: str, port: int, timeout_s: float | None) -> AsyncArrivalStream:
    """Connect to the first address of `host` that answers.

    Raises:
        httpcore.ConnectError: None does.
        httpcore.ConnectTimeout: None did in time.
    """
    try:
        with anyio.fail_after(timeout_s):
            found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            why: OSError | None = None
            for number, (family, kind, protocol, _, address) in enumerate(found, 1):
                sock = socket.socket(family, kind, protocol)
                try:
                    with anyio.move_on_after(_LONGEST_TRY_S if number < len(found) else None):
                        await _connect(sock, address)
                        return AsyncArrivalStream(sock)
                    why = TimeoutError(f"{address[0]} did not answer within {_LONGEST_TRY_S:.0f} s")
                    sock.close()
                except OSError as exc:
                    why = exc
                    sock.close()
                except BaseException:
                    sock.close()
                    raise
            raise httpcore.ConnectError(str(why)) from why
    except TimeoutError as exc:
        raise httpcore.ConnectTimeout(str(exc)) from exc
    except OSError as exc:  # the name's look-up
        raise httpcore.ConnectError(str(exc)) from exc


async def _connect(sock: socket.socket, address: Any) -> None:
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    failed = sock.connect_ex(address)
    if failed == errno.EINPROGRESS:
        await anyio.wait_writable(sock)
        failed = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if failed:
        raise OSError(failed, os.strerror(failed))


class Backend(httpcore.SyncBackend):
    """Opens blocking connections that are stamped."""

    def connect_tcp(self, *args: Any, **kwargs: Any) -> StampedStream:
        """Connect as httpcore does."""
        return StampedStream(super().connect_tcp(*args, **kwargs))


class AsyncBackend(httpcore.AnyIOBackend):
    """Opens connections that are stamped: by the kernel where it can and there is no TLS.

    Args:
        scheme: Of the server's URL.
    """

    def __init__(self, scheme: str) -> None:
        self._is_told = CAN_TELL and scheme == "http"

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - as the others
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> AsyncStampedStream | AsyncArrivalStream:
        """Connect; the last two are for httpcore's own way alone, and never set here."""
        if self._is_told:
            return await connect(host, port, timeout)
        return AsyncStampedStream(
            await super().connect_tcp(host, port, timeout, local_address, socket_options)
        )
