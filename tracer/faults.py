"""What went wrong and no span tells: faults of Hotspan's own, calls whose process died, spans without an end.

A fault is logged once, counted, and raised only under pytest: tracing must never break the program that is
traced, nor hide from its own tests that it is wrong.
"""

from __future__ import annotations

import logging
import os
import signal

from hotspan.tracer import process, semconv

_log = logging.getLogger("hotspan")

n_faults = 0
n_broken_calls = 0
n_unended_spans = 0


def notes() -> dict[str, int]:
    """Return what a trace file is to note of this process, each under its key."""
    return {
        semconv.FAULTS: n_faults,
        semconv.BROKEN_CALLS: n_broken_calls,
        semconv.UNENDED_SPANS: n_unended_spans,
    }


def broken_call() -> None:
    """Take note of a call whose worker process died, and its last spans with it."""
    global n_broken_calls  # noqa: PLW0603 - one count per process
    with process.lock:
        n_broken_calls += 1


def unended(n_spans: int) -> None:
    """Take note of spans that are lost because they had not ended when the program did."""
    global n_unended_spans  # noqa: PLW0603 - one count per process
    with process.lock:
        n_unended_spans += n_spans


def count() -> int:
    """Return how many faults there were in this process."""
    return n_faults


def is_the_programs(exc: BaseException) -> bool:
    """Return whether a signal handler of the program's raised it (a time limit, say), wherever it struck."""
    handlers = map(signal.getsignal, signal.valid_signals())
    codes = {getattr(handler, "__code__", None) for handler in handlers} - {None}
    trace = exc.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


def fault(exc: Exception) -> None:
    """Take note of an exception that a part of Hotspan raised where the user's program is running.

    Raises:
        Exception: `exc`, when a signal handler of the program's raised it, or the program runs under pytest.
    """
    global n_faults  # noqa: PLW0603 - one count per process
    if is_the_programs(exc):
        raise exc
    if "PYTEST_CURRENT_TEST" in os.environ:
        raise exc
    with process.lock:
        n_faults += 1
        is_first = n_faults == 1
    if is_first:
        _log.warning("hotspan: a fault of the tracing itself; the program is not affected", exc_info=exc)
