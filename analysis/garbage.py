"""The garbage collector while traces are read: it takes most of the time, and finds nothing."""

from __future__ import annotations

import gc
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_BETWEEN_COLLECTIONS: Final = 100_000  # objects
_lock = threading.Lock()
_before: list[tuple[int, int, int]] = []  # one for each block that runs; the first one's are the program's


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Let the garbage collector look for cycles a hundred times less often: records of traces have none.

    Several threads may do so at once.  A program that collects less often, or not at all, is left alone.
    """
    with _lock:
        before = gc.get_threshold()
        _before.append(before)
        if 0 < before[0] < _BETWEEN_COLLECTIONS:
            gc.set_threshold(_BETWEEN_COLLECTIONS, *before[1:])
    try:
        yield
    finally:
        with _lock:
            first = _before[0]
            _before.pop()
            if not _before:
                gc.set_threshold(*first)
