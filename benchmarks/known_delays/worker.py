"""The process of one contender: makes the calls that it is asked to make, and says what was recorded of them.

    python -m known_delays.worker CONTENDER TARGET

The first answer says that the contender has started.  Then `{"row": KIND, "url": …, "tag": …, "streams": n,
"calls": n, "spread_s": x}` is answered by `{"accounts": {model: {figure: ns}}, "cpu_us": x}`: CPU time of the
process per token.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from typing import TYPE_CHECKING, Any

from contenders.harness import worker

from known_delays import drive
from known_delays.schedule import keep_to_core

if TYPE_CHECKING:
    from types import ModuleType

    from contenders.harness.target import Target


class Timed:
    """Answers the questions to one contender; clients are made once and kept."""

    def __init__(self, contender: ModuleType, target: Target) -> None:  # noqa: ARG002 - as the harness calls it
        self._contender = contender
        self._clients: dict[str, Any] = {}
        self._loop = asyncio.new_event_loop()
        keep_to_core(0)

    def answer(self, row: str, **asked: Any) -> dict[str, Any]:
        """Make the calls of one reading."""
        if row not in self._clients:
            self._clients[row] = drive.KINDS[row](asked["url"], self._contender)
        client = self._clients[row]
        options = (asked["tag"], asked["streams"], asked["calls"], asked["spread_s"])
        gc.collect()
        before = time.process_time()
        if row.endswith("async"):
            self._loop.run_until_complete(drive.in_tasks(client.call, *options))
        else:
            drive.in_threads(client.call, *options)
        spent_s = time.process_time() - before
        n_tokens = asked["streams"] * (asked["calls"] + 1) * asked["tokens"]
        return {"accounts": self._accounts(client), "cpu_us": spent_s * 1e6 / n_tokens}

    def _accounts(self, client: Any) -> dict[str, Any]:
        seen: drive.ByHand | None = getattr(client, "seen", None)
        if seen is None:
            self._contender.drain()
            return self._contender.accounts()  # type: ignore[no-any-return]  # a contender's own
        taken, seen.taken = seen.taken, {}
        return taken


if __name__ == "__main__":
    worker.serve(sys.argv[1], sys.argv[2], Timed)
