"""A fault of Hotspan's own: logged once, counted, and raised only under pytest.

Tracing must never break the program that is traced, nor hide from its own tests that it is wrong.
"""

from __future__ import annotations

import logging
import os

from hotspan.tracer import process

_log = logging.getLogger("hotspan")

n_faults = 0


def count() -> int:
    """Return how many faults there were in this process."""
    return n_faults


def fault(exc: Exception) -> None:
    """Take note of an exception that a part of Hotspan raised where the user's program is running.

    Raises:
        Exception: `exc`, when the program runs under pytest.
    """
    global n_faults  # noqa: PLW0603 - one count per process
    if "PYTEST_CURRENT_TEST" in os.environ:
        raise exc
    with process.lock:
        n_faults += 1
        is_first = n_faults == 1
    if is_first:
        _log.warning("hotspan: a fault of the tracing itself; the program is not affected", exc_info=exc)
