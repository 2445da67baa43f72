"""Numbers as a reader sees them: three significant digits and a unit on every figure.

Absent is `None` in and a dash out, never 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.analysis import words
from hotspan.analysis.words import significant, tenths_of_percent

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "ABSENT",
    "UNITS_NS",
    "common_unit",
    "count",
    "counted",
    "duration",
    "mean",
    "per_call",
    "percent",
    "significant",
    "tenths_of_percent",
    "tokens_per_second",
]

ABSENT: Final = "\N{EN DASH}"

# Largest first, so that the first unit that fits is the one to use.
UNITS_NS: Final = (
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 10**9),
    ("ms", 10**6),
    ("µs", 10**3),
    ("ns", 1),
)
_SECONDS_UP_TO: Final = 600  # 83.4 s reads better than 1.39 min; beyond ten minutes it no longer does


def duration(ns: float | None, unit: str | None = None) -> str:
    """Return a duration with its unit: `412 ms`, `1.84 s`.

    Args:
        ns: Nanoseconds; None where nothing was measured.
        unit: One of `UNITS_NS`, as `common_unit` chose it for a column; None for the one that suits best.
    """
    if ns is None:
        return ABSENT
    unit = unit or _unit_of(ns)
    return f"{significant(ns / dict(UNITS_NS)[unit])} {unit}"


def common_unit(durations_ns: Iterable[float | None]) -> str | None:
    """Return the unit in which every duration of a column is readable, or None when there is none.

    Readable is from 0.1 up to 1,000 of the unit, in a unit that the longest of them would have alone.
    """
    known = [abs(ns) for ns in durations_ns if ns]
    unit = _unit_of(max(known, default=0))
    size = dict(UNITS_NS)[unit]
    return unit if known and all(ns >= size / 10 for ns in known) else None


def _unit_of(ns: float) -> str:
    magnitude = abs(float(f"{ns:.3g}"))  # rounded first: 999.9 µs is 1.00 ms
    if 10**9 <= magnitude < _SECONDS_UP_TO * 10**9:
        return "s"
    return next((unit for unit, size in UNITS_NS if magnitude >= size), "ns" if magnitude else "ms")


def count(n: int | None) -> str:
    """Return a whole number, thousands separated: `12,400`."""
    return ABSENT if n is None else f"{n:,}"


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun in the right form: `1 request`, `50 requests`."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def per_call(total: int | None, n_calls: int) -> float | None:
    """Return a mean over the calls that say; None where none does."""
    return None if total is None or not n_calls else total / n_calls


def mean(value: float | None) -> str:
    """Return a mean of counts: three significant digits, no unit."""
    return ABSENT if value is None else significant(value)


def percent(ratio: float | None) -> str:
    """Return a ratio as percent with one decimal: `78.1 %`."""
    return ABSENT if ratio is None else words.percent(ratio)


def tokens_per_second(value: float | None) -> str:
    """Return an output speed: `208 tokens/s`."""
    return ABSENT if value is None else f"{significant(value)} tokens/s"
