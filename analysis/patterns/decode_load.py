"""How long a token takes, and whether it takes longer when more model calls run at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hotspan.analysis.generation import MIN_TOKENS
from hotspan.analysis.patterns import DecodeLoad, TokenTime
from hotspan.analysis.percentiles import median

if TYPE_CHECKING:
    from hotspan.analysis.call_table import CallTable, Picked

_MIN_CALLS: Final = 20  # with a time per token, for two groups of a third
_GROUPS: Final = 3

Floats = np.ndarray[Any, np.dtype[np.float64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]


def token_time(table: CallTable) -> TokenTime | None:
    """Return the time per token; `None` where it is known of no call."""
    times, by_engine = _token_times(table.succeeded())
    is_known = ~np.isnan(times)
    if not is_known.any():
        return None
    return TokenTime(median(times[is_known]), int(is_known.sum()), int(by_engine.sum()))


def _token_times(calls: Picked) -> tuple[Floats, Bools]:
    """Return the time per token of each call, NaN where it is not known, and whether the engine says it."""
    tpots, decoded, n_tokens = calls["tpot"], calls["decode_ns"], calls["output"]
    by_engine = np.isnan(tpots) & (decoded > 0) & (n_tokens >= MIN_TOKENS)
    return np.where(by_engine, decoded / np.maximum(n_tokens - 1, 1), tpots), by_engine


def decode_load(table: CallTable) -> DecodeLoad | None:
    """Return the comparison; `None` for fewer than 20 calls with a time per token."""
    rows = table.rows()
    if not len(rows):
        return None
    models, first_seen, counts = np.unique(rows["model"], return_index=True, return_counts=True)
    most = max(range(len(models)), key=lambda i: (counts[i], -first_seen[i]))
    found, timed = (
        calls.those(calls["model"] == models[most]) for calls in (table.every(), table.succeeded())
    )
    times, by_engine = _token_times(timed)
    timed, times = timed.those(~np.isnan(times)), times[~np.isnan(times)]
    if len(timed) < _MIN_CALLS:
        return None
    concurrency = _mean_in_flight(found, timed)
    order = np.argsort(concurrency, kind="stable")
    low, high = order[: len(order) // _GROUPS], order[-(len(order) // _GROUPS) :]
    return DecodeLoad(
        n_calls=len(timed),
        model=table.models.known()[models[most]] if models[most] >= 0 else "",
        low_concurrency=median(concurrency[low]),
        high_concurrency=median(concurrency[high]),
        low_token_ns=median(times[low]),
        high_token_ns=median(times[high]),
        rank_correlation=_rank_correlation(concurrency, times),
        n_by_engine=int(by_engine.sum()),
    )


def _mean_in_flight(calls: Picked, asked: Picked) -> Floats:
    """Return the mean number of `calls` in flight over each asked call's interval.

    The number in flight, summed up to t, is the sum of (t - start) over what had started less that of
    (t - end) over what had ended.
    """
    zero = calls["start_ns"].min()
    starts = np.sort((calls["start_ns"] - zero).astype(np.float64))
    ends = np.sort((calls["start_ns"] - zero + calls["duration_ns"]).astype(np.float64))
    first = (asked["start_ns"] - zero).astype(np.float64)
    last = (asked["start_ns"] - zero + asked["duration_ns"]).astype(np.float64)
    summed = _passed(starts, last) - _passed(ends, last) - _passed(starts, first) + _passed(ends, first)
    return np.asarray(summed / np.maximum(last - first, 1.0))


def _passed(ordered: Floats, at: Floats) -> Floats:
    """Return the sum of (t - x) over all x below t, for each t."""
    below = np.searchsorted(ordered, at)
    sums = np.concatenate(([0.0], np.cumsum(ordered)))
    passed: Floats = below * at - sums[below]
    return passed


def _rank_correlation(left: Floats, right: Floats) -> float:
    """Return Spearman's correlation; 0 where one side is constant."""
    first, second = _ranks(left), _ranks(right)
    if not first.std() or not second.std():
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def _ranks(values: Floats) -> Floats:
    """Return the rank of each value; equal ones share the mean of theirs."""
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[where], dtype=np.float64)
