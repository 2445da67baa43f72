"""A collector on the loopback interface that takes everything, counts OTLP spans and forgets them.

    python -m contenders.harness.sink          # prints its port, and serves until standard input ends

POST …/v1/traces         counted by reading only the lengths of the protobuf messages
GET  /count              {"spans": n}
GET  /info               what LangSmith's server says, so that its client compresses as it does there
POST /hang/…             never answered: a collector that hangs
POST …/chat/completions  a stream of `max_tokens` chunks, as an OpenAI-compatible server sends it
anything else            200 and an empty object
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOW_BITS: Final = 0x7F
_LENGTH_DELIMITED, _FIXED64, _FIXED32 = 2, 1, 5
# ExportTraceServiceRequest.resource_spans, ResourceSpans.scope_spans, ScopeSpans.spans
_PATH_TO_SPANS: Final = (1, 2, 2)

_counts: Counter[str] = Counter()
_counting = threading.Lock()
_never = threading.Event()


def count_spans(message: bytes) -> int:
    """Return the number of spans in an OTLP trace request in protobuf."""
    return sum(1 for _ in _messages(memoryview(message), _PATH_TO_SPANS))


def _messages(message: memoryview, path: tuple[int, ...]) -> Iterator[memoryview]:
    for field, value in _fields(message):
        if field == path[0]:
            if len(path) == 1:
                yield value
            else:
                yield from _messages(value, path[1:])


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == _LENGTH_DELIMITED:
            length, at = _varint(message, at)
            yield tag >> 3, message[at : at + length]
            at += length
        elif kind == _FIXED64:
            at += 8
        elif kind == _FIXED32:
            at += 4
        else:
            _, at = _varint(message, at)


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & _LOW_BITS) << shift
        if byte <= _LOW_BITS:
            return value, at
        shift += 7


def chat_chunks(n: int) -> bytes:
    """Return a streamed chat completion of n chunks and its end, as it goes over the wire."""
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "none"}

    def event(delta: dict[str, str], finish_reason: str | None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return b"data: " + json.dumps({**head, "choices": [choice]}).encode() + b"\n\n"

    return event({"content": " token"}, None) * n + event({}, "stop") + b"data: [DONE]\n\n"


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_GET(self) -> None:
        """Say how many spans came, or what the server can do."""
        answers: dict[str, Any] = {
            "/count": {"spans": _counts["spans"]},
            "/info": {"instance_flags": {"zstd_compression_enabled": True}},
        }
        self._answer(json.dumps(answers.get(self.path, {})).encode())

    def do_POST(self) -> None:
        """Take what is sent."""
        body = self._body()
        if self.path.startswith("/hang"):
            _never.wait()
        elif self.path.endswith("/chat/completions"):
            self._answer(chat_chunks(json.loads(body)["max_tokens"]), "text/event-stream")
        elif "protobuf" in self.headers.get("Content-Type", ""):
            self._count(body)
            self._answer(b"", "application/x-protobuf")
        else:
            self._answer(b"{}")

    do_PUT = do_PATCH = do_DELETE = do_POST  # noqa: N815 - the base class looks for these names

    def _count(self, body: bytes) -> None:
        if self.path.endswith("/traces"):
            n_spans = count_spans(body)
            with _counting:
                _counts["spans"] += n_spans

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            body = b"".join(iter(self._chunk, b""))
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body

    def _chunk(self) -> bytes:
        data = self.rfile.read(int(self.rfile.readline().partition(b";")[0], 16))
        self.rfile.readline()
        return data

    def _answer(self, body: bytes, content_type: str = "application/json") -> None:
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that goes away is no news."""


def main() -> None:
    """Serve until standard input ends."""
    server = _Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
