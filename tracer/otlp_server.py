"""The OTLP/HTTP server behind `receiver`."""

from __future__ import annotations

import logging
import socket
import socketserver
import threading
import zlib
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.json_format import MessageToJson  # type: ignore[import-untyped] # its stubs are a package apart
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped] # has no stubs
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from hotspan.tracer import otlp_decode

if TYPE_CHECKING:
    from collections.abc import Callable

    from hotspan.tracer.record import SpanRecord

PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"
MAX_BODY_BYTES: Final = 64 << 20  # as sent, and again when unpacked

_PATHS: Final = frozenset({"/v1/traces", "/"})
_PARSERS: Final = {PROTOBUF: otlp_decode.parse_protobuf, JSON: otlp_decode.parse_json}
_GZIP_OR_ZLIB: Final = 47  # zlib's own number for "look at the header"
_IDLE_S: Final = 60.0  # a connection that says nothing for so long is closed
_CLOSE_S: Final = 2.0
_log = logging.getLogger("hotspan")


class OtlpServer(socketserver.ThreadingTCPServer):
    """Answers OTLP/HTTP trace requests, a thread per connection, and hands on what they hold.

    Args:
        address: Host and port to listen on; IPv4, IPv6 or a name.
        take: Called with the spans of each request, from any thread.
    """

    # Not http.server's: that one looks its own name up in the DNS before it listens.
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], take: Callable[[list[SpanRecord]], None]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.take = take
        self.closing = False
        self.connections: set[socket.socket] = set()
        self.changed = threading.Condition()
        super().__init__(address, _Handler)

    def stop(self) -> None:
        """Stop accepting, end idle connections, and wait a moment for those that are answering."""
        self.shutdown()
        self.server_close()
        with self.changed:
            self.closing = True
            for connection in self.connections:
                _end_reading(connection)
            self.changed.wait_for(lambda: not self.connections, _CLOSE_S)

    def handle_error(self, _request: Any, _address: Any) -> None:
        """Log a fault of a connection, a peer that went away most of the time."""
        _log.debug("hotspan: a connection of the receiver broke off", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # senders keep their connection
    timeout = _IDLE_S
    disable_nagle_algorithm = True
    server: OtlpServer

    def setup(self) -> None:
        super().setup()
        with self.server.changed:
            self.server.connections.add(self.connection)
            if self.server.closing:
                _end_reading(self.connection)

    def finish(self) -> None:
        try:
            with suppress(OSError):
                super().finish()
        finally:
            with self.server.changed:
                self.server.connections.discard(self.connection)
                self.server.changed.notify_all()

    def do_POST(self) -> None:
        """Take one request; every way it can be wrong has an answer of its own."""
        try:
            self._answer(HTTPStatus.OK, self._receive())
        except _Refusal as refusal:
            self.close_connection = True  # the body may not have been read
            self._answer(refusal.status, Status(message=str(refusal)))
        except Exception as error:  # noqa: BLE001 -- a fault of ours: the sender gets an answer, the program goes on
            _log.warning("hotspan: the receiver failed on a request: %r", error)
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, Status(message=repr(error)))

    def _receive(self) -> ExportTraceServiceResponse:
        body = self._body()  # first: a sender whose body is left unread may not see the answer
        if self.path.partition("?")[0] not in _PATHS:
            raise _Refusal(HTTPStatus.NOT_FOUND, f"{self.path} is not served; traces go to /v1/traces")
        parse = _PARSERS.get(self._content_type())
        if parse is None:
            kind = self.headers.get("Content-Type")
            raise _Refusal(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"Content-Type {kind!r} is neither {PROTOBUF} nor {JSON}"
            )
        try:
            spans, n_rejected = otlp_decode.records(parse(body))
        except ValueError as error:
            raise _Refusal(
                HTTPStatus.BAD_REQUEST, f"the body is not an OTLP trace request: {error}"
            ) from error
        self.server.take(spans)
        response = ExportTraceServiceResponse()
        if n_rejected:
            response.partial_success.rejected_spans = n_rejected
            response.partial_success.error_message = "spans without a trace id or a span id"
        return response

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise _Refusal(HTTPStatus.LENGTH_REQUIRED, "a Content-Length is needed")
        if int(length) > MAX_BODY_BYTES:
            raise _Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is over {MAX_BODY_BYTES} bytes")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise _Refusal(HTTPStatus.BAD_REQUEST, f"the body ends after {len(body)} of {length} bytes")
        encoding = self.headers.get("Content-Encoding", "identity").lower()
        return body if encoding == "identity" else _unpacked(body, encoding)

    def _content_type(self) -> str:
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    def _answer(self, status: HTTPStatus, message: Any) -> None:
        as_json = self._content_type() == JSON
        body = MessageToJson(message).encode() if as_json else message.SerializeToString()
        with suppress(OSError):  # the sender may have gone
            self.send_response(status)
            self.send_header("Content-Type", JSON if as_json else PROTOBUF)
            self.send_header("Content-Length", str(len(body)))
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_arguments: Any) -> None:
        """Say nothing: stderr is the program's."""


def _end_reading(connection: socket.socket) -> None:
    # Who waits for a next request reads its end; who is answering one can still write.
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RD)


class _Refusal(Exception):  # noqa: N818 -- an answer to the sender, seen by nobody else
    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


def _unpacked(body: bytes, encoding: str) -> bytes:
    if encoding not in {"gzip", "deflate"}:
        raise _Refusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"Content-Encoding {encoding!r} is neither gzip nor deflate"
        )
    unpacker = zlib.decompressobj(_GZIP_OR_ZLIB)
    try:
        unpacked = unpacker.decompress(body, MAX_BODY_BYTES)
    except zlib.error as error:
        raise _Refusal(HTTPStatus.BAD_REQUEST, f"the body is not {encoding}: {error}") from error
    if unpacker.unconsumed_tail:
        raise _Refusal(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the unpacked body is over {MAX_BODY_BYTES} bytes"
        )
    if not unpacker.eof:
        raise _Refusal(HTTPStatus.BAD_REQUEST, f"the {encoding} body ends too early")
    return unpacked
