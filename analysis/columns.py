"""Columns of numbers that grow as traces are read, and exact sums over them."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

Longs = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]

MAX: Final = 1 << 62  # whatever a file says, it has to fit
_LOW_BITS: Final = 32


def longs(values: Iterable[int] = ()) -> array[int]:
    """Return a column of 64-bit integers."""
    return array("q", values)


def floats(values: Iterable[float] = ()) -> array[float]:
    """Return a column of floats."""
    return array("d", values)


def view(column: array[Any]) -> Any:
    """Return a column as a numpy array that shares its memory: let go of it before the column grows."""
    return np.frombuffer(column, dtype=column.typecode) if len(column) else np.zeros(0, dtype=column.typecode)


def repeat(column: array[Any], value: float, n: int) -> None:
    """Append one value several times."""
    column.extend(array(column.typecode, (value,)) * n)


def known(values: Longs) -> Longs:
    """Return the values that are not negative: a negative one stands for none."""
    return values[values >= 0]


def total(values: Longs) -> int:
    """Return the sum, exactly: thousands of years of nanoseconds do not fit in 64 bits."""
    high, low = values >> _LOW_BITS, values & ((1 << _LOW_BITS) - 1)
    return (int(high.sum()) << _LOW_BITS) + int(low.sum())
