"""A scripted HTTP server for tests: a network peer whose every byte, pause and fault the test decides.

It speaks over real sockets and parses nothing but the request's head and body, so that it can misbehave in
any way: cut anywhere, stop in the middle, reset the connection, answer nothing.

    with ScriptedServer([stream(event(delta("Hi", finish="stop")), DONE)]) as server:
        LLMClient(server.url, model="tiny").stream(messages)
    server.requests[0].json["stream"]

A script is a list of replies, one per request (the last one repeats); a reply is a list of steps: bytes are
sent by one `send`, `Wait(event)` waits for the test, `Pause(seconds)` is a delay that the test measures,
`Close()` and `Reset()` end the connection there.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Self

DONE = b"data: [DONE]\n\n"
PATIENCE_S = 10.0


@dataclass(frozen=True)
class Wait:
    """Wait until the test sets the event."""

    event: threading.Event


@dataclass(frozen=True)
class Pause:
    """Do nothing for some seconds: the delay that a test looks for."""

    seconds: float


@dataclass(frozen=True)
class Close:
    """Close the connection here."""


@dataclass(frozen=True)
class Reset:
    """Reset the connection here (RST)."""


@dataclass(frozen=True)
class AwaitClose:
    """Wait until the client has closed its side, and note that it did."""


Step = bytes | Wait | Pause | Close | Reset | AwaitClose


@dataclass
class Request:
    """What a client sent."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    connection: int
    hung_up: threading.Event = field(default_factory=threading.Event)

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class ScriptedServer:
    """Serves a script on 127.0.0.1 (or `host`), each connection in a thread of its own."""

    def __init__(self, replies: list[list[Step]], *, host: str = "127.0.0.1") -> None:
        self.requests: list[Request] = []
        self.n_connections = 0
        self._replies = replies
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._open: set[socket.socket] = set()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.socket(family, socket.SOCK_STREAM)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind((host, 0))
        self._listener.listen(64)
        self.host, self.port = host, self._listener.getsockname()[1]

    @property
    def n_open(self) -> int:
        """Connections that are open on this side."""
        with self._lock:
            return len(self._open)

    @property
    def url(self) -> str:
        """The base URL, without `/v1`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_exc: object) -> None:
        # A blocked accept() wakes up by a shutdown, not by a close.
        self._shut(self._listener)
        with self._lock:
            connections, threads = list(self._open), list(self._threads)
        for connection in connections:
            self._shut(connection)
        for thread in threads:
            thread.join(PATIENCE_S)

    def _start(self, target: Any, *args: Any) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        with self._lock:
            self._threads.append(thread)
        thread.start()

    @staticmethod
    def _shut(sock: socket.socket) -> None:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        sock.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._open.add(connection)
                self.n_connections += 1
                number = self.n_connections
            self._start(self._serve, connection, number)

    def _serve(self, connection: socket.socket, number: int) -> None:
        try:
            while (request := _read_request(connection, number)) is not None:
                with self._lock:
                    reply = self._replies[min(len(self.requests), len(self._replies) - 1)]
                    self.requests.append(request)
                if not self._play(connection, reply, request):
                    return
        except OSError:
            pass
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    @staticmethod
    def _play(connection: socket.socket, reply: list[Step], request: Request) -> bool:
        """Carry out a reply; return whether the connection goes on."""
        for step in reply:
            match step:
                case bytes():
                    connection.sendall(step)
                case Wait(event):
                    event.wait(PATIENCE_S)
                case Pause(seconds):
                    time.sleep(seconds)
                case AwaitClose():
                    connection.settimeout(PATIENCE_S)
                    if connection.recv(1) == b"":
                        request.hung_up.set()
                    return False
                case Reset():
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return False
                case Close():
                    return False
        return True


def _read_request(connection: socket.socket, number: int) -> Request | None:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65_536)
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += connection.recv(65_536)
    method, target, _version = first.split(" ")
    return Request(method, target, headers, body, number)


# --- Writing replies -----------------------------------------------------------------------------------


def head(
    status: str = "200 OK",
    content_type: str = "text/event-stream",
    *,
    length: int | None = None,
    **headers: str,
) -> bytes:
    """Return the head of a response: chunked, unless it has a length."""
    lines = [f"HTTP/1.1 {status}", f"content-type: {content_type}"]
    lines.append("transfer-encoding: chunked" if length is None else f"content-length: {length}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def piece(data: bytes) -> bytes:
    """Return one HTTP chunk."""
    return b"%x\r\n%s\r\n" % (len(data), data)


END = b"0\r\n\r\n"


def stream(*steps: Step) -> list[Step]:
    """Return the reply that sends each bytes step as one HTTP chunk, and ends the body."""
    return [head(), *(piece(s) if isinstance(s, bytes) else s for s in steps), END]


def at_once(*data: bytes) -> list[Step]:
    """Return the reply that sends everything, head and all, in one segment."""
    return [head() + b"".join(piece(d) for d in data) + END]


def answer(body: Any, status: str = "200 OK", **headers: str) -> list[Step]:
    """Return the reply with one JSON (or bytes) body."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return [head(status, "application/json", length=len(data), **headers) + data]


def event(data: Any, *, newline: bytes = b"\n", prefix: bytes = b"data: ") -> bytes:
    """Return one server-sent event."""
    body = data if isinstance(data, bytes) else json.dumps(data, ensure_ascii=False).encode()
    return prefix + body + newline * 2


def delta(
    content: str | None = None, *, index: int = 0, finish: str | None = None, **fields: Any
) -> dict[str, Any]:
    """Return one chunk of a streamed chat answer."""
    inner = dict(fields) if content is None else {"content": content, **fields}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "model": "tiny",
        "choices": [{"index": index, "delta": inner, "finish_reason": finish}],
    }


def usage(prompt: int, output: int, **details: Any) -> dict[str, Any]:
    """Return a chunk that carries only usage."""
    counts = {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        **details,
    }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "model": "tiny",
        "choices": [],
        "usage": counts,
    }


def message(content: str | None = "Hi", *, finish: str = "stop", **fields: Any) -> dict[str, Any]:
    """Return a whole chat answer."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "tiny",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, **fields},
                "finish_reason": finish,
            }
        ],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
    }
