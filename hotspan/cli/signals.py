"""Ends that are asked for from outside."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_TERMINATED = 128 + signal.SIGTERM  # what a shell reports of a program that SIGTERM ended


@contextmanager
def sigterm_as_ctrl_c() -> Iterator[None]:
    """End the block at SIGTERM as Ctrl-C would, but exit with 143."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    received = False

    def interrupt(*_signal: object) -> None:
        nonlocal received
        received = True
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        if received:
            sys.exit(_TERMINATED)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
