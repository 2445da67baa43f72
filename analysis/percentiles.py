"""Percentiles that say how far they can be trusted.

Linear interpolation between order statistics (Hyndman and Fan's type 7, numpy's default), so that
min <= p50 <= p95 <= p99 <= max always, and one sample is its own percentile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from hotspan.analysis.columns import total

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotspan.analysis.columns import Floats, Longs

    Samples = Sequence[float] | Floats | Longs

_SHOWN = (50, 90, 95, 99)
_MIN_BEYOND = 10  # fewer samples beyond a percentile than this, and it is marked
_MAX_WHOLE = 1 << 53  # floats below hold every whole number
_PART = 1 << 15  # samples that are summed at a time: what is made of them stays in the processor's cache
_TAIL = 0.025  # of the binomial on either side of a 95 % interval


@dataclass(frozen=True, slots=True)
class Distribution:
    """A sample's mean, extremes and percentiles.

    The unit is that of the samples: nanoseconds where the field that holds it ends in `_ns`.
    """

    n: int  # samples, at least 1
    mean: float
    min: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float
    p95_interval: tuple[float, float] | None  # 95 % interval of p95; None where the sample cannot give one
    weak: tuple[str, ...] = ()  # percentiles with fewer than 10 samples beyond them

    def to_dict(self, scale: float = 1.0) -> dict[str, Any]:
        """Return the JSON form, every value multiplied by `scale`."""
        interval = self.p95_interval
        return {
            "n": self.n,
            "mean": self.mean * scale,
            "min": self.min * scale,
            "p50": self.p50 * scale,
            "p90": self.p90 * scale,
            "p95": self.p95 * scale,
            "p99": self.p99 * scale,
            "max": self.max * scale,
            "p95_interval": None if interval is None else [interval[0] * scale, interval[1] * scale],
            "weak": list(self.weak),
        }


@dataclass(frozen=True, slots=True)
class PerRequest:
    """How a count, or a ratio, spreads over the requests."""

    mean: float
    p50: float
    p95: float
    max: float

    def to_dict(self) -> dict[str, float]:
        """Return the JSON form."""
        return {"mean": self.mean, "p50": self.p50, "p95": self.p95, "max": self.max}


def distribution(samples: Samples) -> Distribution | None:
    """Return the distribution of a sample, or `None` for an empty one.

    Args:
        samples: Finite numbers in any unit and order.

    Source: docs/definitions.md#per-stage-over-n-requests.
    """
    if not len(samples):
        return None
    ordered = _ordered(samples)
    p50, p90, p95, p99 = (_quantile(ordered, percent) for percent in _SHOWN)
    low, high = float(ordered[0]), float(ordered[-1])
    return Distribution(
        n=len(ordered),
        mean=min(max(mean_of(ordered), low), high),
        min=low,
        p50=p50,
        p90=p90,
        p95=p95,
        p99=p99,
        max=high,
        p95_interval=_interval(ordered, 95),
        weak=tuple(f"p{percent}" for percent in _SHOWN if len(ordered) * (100 - percent) < _MIN_BEYOND * 100),
    )


def percentile(samples: Samples, percent: float) -> float:
    """Return one percentile of at least one number, as a `Distribution` has it; `percent` is in (0, 100)."""
    values = np.array(samples, dtype=np.float64)
    place = (len(values) - 1) * Fraction(percent) / 100
    values.partition(sorted({math.floor(place), math.ceil(place)}))
    return _quantile(values, Fraction(percent))


def median(samples: Samples) -> float:
    """Return the median of at least one number."""
    return percentile(samples, 50)


def per_request(samples: Samples) -> PerRequest | None:
    """Return mean, p50, p95 and maximum of one figure of every request, or `None` without requests."""
    if not len(samples):
        return None
    ordered = _ordered(samples)
    return PerRequest(mean_of(ordered), _quantile(ordered, 50), _quantile(ordered, 95), float(ordered[-1]))


def mean_of(values: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """Return the mean of at least one value, from their exact sum."""
    parts = [values[first : first + _PART] for first in range(0, len(values), _PART)]
    summed = 0
    for part in parts:
        # Nanoseconds, tokens: whole numbers, whose sum is that of integers.
        whole = part.astype(np.int64) if np.abs(part).max() < _MAX_WHOLE else None
        if whole is None or (whole != part).any():
            return math.fsum(chain.from_iterable(part.tolist() for part in parts)) / len(values)
        summed += total(whole)
    return summed / len(values)


def _ordered(samples: Samples) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the samples, in order as far as anything here looks at: a quarter of the time of a sort."""
    values = np.array(samples, dtype=np.float64)
    last = len(values) - 1
    places = {0, last, *(_interval_ranks(len(values), 95) or ())}
    for percent in _SHOWN:
        below = last * percent // 100
        places |= {below, min(below + 1, last)}
    values.partition(sorted(places))
    return values


def _quantile(ordered: np.ndarray[Any, np.dtype[np.float64]], percent: int | Fraction) -> float:
    # By hand, exactly up to the last step: p = 95 of 101 samples is exactly the 96th of them, and
    # rounding cannot carry a percentile past its neighbours.
    below, hundredths = divmod((len(ordered) - 1) * percent, 100)
    low = float(ordered[below])
    if not hundredths:
        return low
    high = float(ordered[below + 1])
    return min(low + (high - low) * float(hundredths / 100), high)


def _interval(ordered: np.ndarray[Any, np.dtype[np.float64]], percent: int) -> tuple[float, float] | None:
    ranks = _interval_ranks(len(ordered), percent)
    return None if ranks is None else (float(ordered[ranks[0]]), float(ordered[ranks[1]]))


@lru_cache(maxsize=1024)
def _interval_ranks(n: int, percent: int) -> tuple[int, int] | None:
    """Return the two 0-based order statistics that hold the percentile with 95 % confidence.

    The number of samples below the true percentile is Binomial(n, percent / 100), whatever the distribution
    of the samples.  `None` where even the extremes do not reach 95 %: below 72 samples for p95.

    Source: Hahn and Meeker, Statistical Intervals, 1991, section 5.2.
    """
    p = percent / 100
    spread = 12 * math.sqrt(n * p * (1 - p)) + 2  # beyond 12 standard deviations nothing is left to add up
    first, last = max(0, int(n * p - spread)), min(n, int(n * p + spread))
    k = np.arange(first, last)
    log_pmf = _log_binomial(n, first, p) + np.concatenate(
        ([0.0], np.cumsum(np.log((n - k) / (k + 1)) + math.log(p / (1 - p))))
    )
    cdf = np.cumsum(np.exp(log_pmf))  # cdf[i] = P(at most first + i samples below)
    lower = first + int(np.searchsorted(cdf, _TAIL, side="right")) - 1
    upper = first + int(np.searchsorted(cdf, 1 - _TAIL, side="left"))
    return (lower, upper) if lower >= 0 and upper < n else None


def _log_binomial(n: int, k: int, p: float) -> float:
    choose = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return choose + k * math.log(p) + (n - k) * math.log1p(-p)
