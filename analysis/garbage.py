"""The garbage collector while traces are read: it takes most of the time, and finds nothing."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_BETWEEN_COLLECTIONS: Final = 100_000  # objects


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Let the garbage collector look for cycles a hundred times less often: records of traces have none."""
    before = gc.get_threshold()
    gc.set_threshold(_BETWEEN_COLLECTIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
