"""Waiting for a model server: it is ready when `/health` says 200, whatever it says before."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import httpx

import hotspan
from hotspan.pipelines.engines.base import say

if TYPE_CHECKING:
    from hotspan.pipelines.engines.process import ServerProcess

_POLL_S: Final = 0.2
_PROGRESS_EVERY_S: Final = 10.0


def wait_until_ready(name: str, server: ServerProcess, address: str, timeout_s: float) -> None:
    """Wait until the server is ready.

    Args:
        name: What the server is called in messages.
        server: Its process.
        address: Its base URL.
        timeout_s: How long it may take, in seconds.

    Raises:
        hotspan.EngineError: The server died, or was not ready in time; the message has the log's last lines.
    """
    start = time.monotonic()
    next_word = _PROGRESS_EVERY_S
    with httpx.Client(base_url=address, trust_env=False, timeout=5.0) as client:
        while not _is_healthy(client):
            waited = time.monotonic() - start
            if (status := server.exit_status) is not None:
                raise _failed(server, f"{name} ended with status {status} before it was ready.")
            if waited > timeout_s:
                raise _failed(server, f"{name} was not ready after {timeout_s:.0f} s.")
            if waited >= next_word:
                say(f"  {name} is still loading ({waited:.0f} s)")
                next_word += _PROGRESS_EVERY_S
            time.sleep(_POLL_S)
    say(f"{name} is ready after {time.monotonic() - start:.0f} s")


def _is_healthy(client: httpx.Client) -> bool:
    try:
        return client.get("/health").status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


def _failed(server: ServerProcess, what: str) -> hotspan.EngineError:
    return hotspan.EngineError(f"{what} Its log, {server.log}, ends with:\n{server.last_lines()}")
