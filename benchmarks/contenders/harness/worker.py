"""The process of one contender: reads commands from standard input, a JSON object a line, and answers each.

    python -m contenders.harness.worker CONTENDER TARGET

The first answer says that the contender has started.  Then `{"row": KEY}` is answered by `{"value": x}`, by
`{"absent": true}` where the contender has no such function, or by `{"error": "why"}`.  What the contender
itself prints goes to standard error.  Connections to anything but the loopback interface are refused, and
reported.
"""

from __future__ import annotations

import asyncio
import importlib
import ipaddress
import json
import os
import socket
import sys
from typing import TYPE_CHECKING, Any, Protocol

from contenders.harness import measure
from contenders.harness.rows import BY_KEY
from contenders.harness.target import Target

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from contenders.harness.rows import Row

refused: list[str] = []  # addresses that the contender tried to reach


def _is_here(host: object) -> bool:
    if host in (None, "", "localhost"):
        return True
    try:
        return ipaddress.ip_address(host.decode() if isinstance(host, bytes) else str(host)).is_loopback
    except ValueError:
        return False


def stay_here() -> None:
    """Refuse every connection and look-up that leaves this machine; costs nothing on any other call."""
    look_up, connect, connect_ex = socket.getaddrinfo, socket.socket.connect, socket.socket.connect_ex

    def check(host: object) -> None:
        if not _is_here(host):
            refused.append(str(host))
            msg = f"the benchmark sends nothing outside of this machine, and {host!r} is"
            raise ConnectionRefusedError(msg)

    def checked_look_up(host: Any, *args: Any, **kwargs: Any) -> Any:
        check(host)
        return look_up(host, *args, **kwargs)

    def checked_connect(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            check(address[0])
        connect(self, address)

    def checked_connect_ex(self: socket.socket, address: Any) -> int:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            check(address[0])
        return connect_ex(self, address)

    socket.getaddrinfo = checked_look_up
    socket.socket.connect = checked_connect  # type: ignore[method-assign]  # on purpose
    socket.socket.connect_ex = checked_connect_ex  # type: ignore[method-assign]  # on purpose


class Answering(Protocol):
    """What measures in a contender's process."""

    def answer(self, row: str, **asked: Any) -> dict[str, Any]:
        """Return what was measured for a row."""


class Worker:
    """One contender and how its rows are read, each prepared when it is first asked for."""

    def __init__(self, contender: ModuleType, target: Target) -> None:
        self._contender, self._target = contender, target
        self._readings: dict[str, measure.Reading] = {}
        self._loop = asyncio.new_event_loop()

    def answer(self, row: str, **_asked: Any) -> dict[str, Any]:
        """Return what was measured for the row of this key."""
        return self._answer(BY_KEY[row])

    def _answer(self, row: Row) -> dict[str, Any]:
        if not hasattr(self._contender, row.needs):
            return {"absent": True}
        if row.target == "hang":
            return measure.held(self._contender, self._target.n_spans)
        if row.is_process:
            return measure.sustained(self._contender, self._target.n_spans)
        if row.key not in self._readings:
            self._readings[row.key] = measure.reading(self._contender, row.key, self._target, self._loop)
        return {"value": self._readings[row.key].median_us()}


def serve(name: str, target_json: str, answering: Callable[[ModuleType, Target], Answering]) -> None:
    """Serve until standard input ends; then leave without waiting for a library's exit handlers.

    Args:
        name: The contender.
        target_json: Where its spans go.
        answering: Makes what answers: to each command, its fields are the arguments of `answer`.
    """
    target = Target.from_json(target_json)
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # a library that prints must not answer for us
    stay_here()
    contender = importlib.import_module(f"contenders.{name}")
    contender.start(target)
    worker = answering(contender, target)
    answers.write(json.dumps({"started": True}) + "\n")
    for line in sys.stdin:
        try:
            answer = worker.answer(**json.loads(line))
        except Exception as exc:  # noqa: BLE001 - the other rows and contenders go on
            import traceback  # noqa: PLC0415 - only then

            traceback.print_exc()
            answer = {"error": f"{type(exc).__name__}: {exc}"}
        answers.write(json.dumps(answer | {"refused": sorted(set(refused))}) + "\n")
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], Worker)
