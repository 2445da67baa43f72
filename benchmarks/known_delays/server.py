"""A model server that sends every chunk when it is due, and keeps when it really did.

    python -m known_delays.server SCHEDULE     # prints its port, and serves until standard input ends

POST …/chat/completions  a role, the tokens, then in one piece the end, the usage and [DONE]
GET  /account            model -> [request arrived, role sent, token sent, …], of the answers since the last
                         time; ns of CLOCK_MONOTONIC, which every process of the machine reads alike

One thread, one heap of what is due.  A stamp is taken just before `send`: nobody can have the bytes earlier.
A request counts from the moment at which the kernel received it, where the kernel says so.
"""

from __future__ import annotations

import gc
import heapq
import json
import os
import select
import socket
import struct
import sys
import threading
import time
from typing import Any, Final

from known_delays.schedule import Schedule, keep_to_core

_SO_TIMESTAMPNS: Final = 35  # <asm-generic/socket.h>; Python has no name for it
_IDLE_S: Final = 0.5
_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
_END: Final = b"0\r\n\r\n"


class Server:
    """Accepts, answers and keeps account, in the thread that calls `run`."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self._due: list[tuple[int, int, _Answer]] = []
        self._received: dict[socket.socket, bytes] = {}
        self._accounts: dict[str, list[int]] = {}
        self._n_answers = 0

    @property
    def port(self) -> int:
        """Where it listens, on the loopback interface."""
        return int(self._listener.getsockname()[1])

    def run(self) -> None:
        """Serve for ever."""
        while True:
            wait_s = (self._due[0][0] - time.perf_counter_ns()) / 1e9 if self._due else _IDLE_S
            # `select` and not `epoll`, which rounds up to whole milliseconds.
            readable, _, _ = select.select([self._listener, *self._received], [], [], max(0.0, wait_s))
            self._send_due()
            for each in readable:
                if each is self._listener:
                    self._accept()
                else:
                    self._read(each)

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._received[connection] = b""

    def _read(self, connection: socket.socket) -> None:
        try:
            data, ancillary, _, _ = connection.recvmsg(1 << 16, 128)
        except OSError:
            data, ancillary = b"", []
        if not data:
            del self._received[connection]
            connection.close()
            return
        received = self._received[connection] + data
        head, found, body = received.partition(b"\r\n\r\n")
        if not found or len(body) < _content_length(head):
            self._received[connection] = received
            return
        self._received[connection] = b""
        if head.startswith(b"GET"):
            connection.sendall(_json_response(self._taken()))
        else:
            self._begin(connection, json.loads(body)["model"], arrived_ns(ancillary))

    def _taken(self) -> dict[str, list[int]]:
        taken, self._accounts = self._accounts, {}
        return taken

    def _begin(self, connection: socket.socket, model: str, arrived: int) -> None:
        self._accounts[model] = [arrived]
        self._n_answers += 1
        answer = _Answer(connection, model, arrived, self._n_answers)
        heapq.heappush(self._due, (arrived + self._schedule.due_ns(0), self._n_answers, answer))

    def _send_due(self) -> None:
        while self._due and self._due[0][0] <= time.perf_counter_ns():
            _, number, answer = heapq.heappop(self._due)
            sent = self._accounts.get(answer.model)
            if sent is None or answer.connection not in self._received:  # asked for too early, or hung up
                continue
            try:
                self._send(answer, sent)
            except OSError:
                continue
            following = len(sent) - 1
            if following <= self._schedule.n_tokens:
                heapq.heappush(self._due, (answer.arrived + self._schedule.due_ns(following), number, answer))
            else:
                answer.connection.sendall(_piece(answer.ending()) + _END)

    @staticmethod
    def _send(answer: _Answer, sent: list[int]) -> None:
        data = answer.role() if len(sent) == 1 else answer.token()
        stamp = time.perf_counter_ns()
        answer.connection.sendall(data)
        sent.append(stamp)


class _Answer:
    """One answer, in vLLM's words."""

    __slots__ = ("_head", "_token", "arrived", "connection", "model", "n_tokens")

    def __init__(self, connection: socket.socket, model: str, arrived: int, number: int) -> None:
        self.connection, self.model, self.arrived, self.n_tokens = connection, model, arrived, 0
        about = {"object": "chat.completion.chunk", "created": 1_700_000_000, "model": model}
        self._head: dict[str, Any] = {"id": f"chatcmpl-{number:032x}", **about}
        self._token = _piece(self._event({"content": " token"}))

    def role(self) -> bytes:
        return _HEAD + _piece(self._event({"role": "assistant", "content": ""}))

    def token(self) -> bytes:
        self.n_tokens += 1
        return self._token

    def ending(self) -> bytes:
        counts = {"prompt_tokens": 7, "completion_tokens": self.n_tokens, "total_tokens": 7 + self.n_tokens}
        usage = {**self._head, "choices": [], "usage": counts}
        return self._event({"content": ""}, "stop") + _event(usage) + b"data: [DONE]\n\n"

    def _event(self, delta: dict[str, str], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return _event({**self._head, "choices": [choice]})


def _event(chunk: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n"


def _piece(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def _json_response(body: object) -> bytes:
    data = json.dumps(body).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (
        len(data),
        data,
    )


def arrived_ns(ancillary: list[tuple[int, int, bytes]]) -> int:
    """Return when the kernel received what was just read, on the monotonic clock; now, if it does not say."""
    now, wall = time.perf_counter_ns(), time.time_ns()
    for _, kind, data in ancillary:
        if kind == _SO_TIMESTAMPNS:
            seconds, rest = struct.unpack_from("qq", data)
            return now - max(0, wall - (seconds * 1_000_000_000 + rest))
    return now


def main() -> None:
    """Serve until standard input ends."""
    keep_to_core(1)
    gc.disable()  # a collection would make a chunk late; what is kept is taken away after every round
    server = Server(Schedule.from_json(sys.argv[1]))
    threading.Thread(target=server.run, daemon=True).start()
    print(server.port, flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
