"""Whether a token takes longer when more model calls run at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hotspan.analysis.generation import tpot_ns
from hotspan.analysis.patterns import DecodeLoad
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hotspan.analysis.generation import ModelCall

_MIN_CALLS: Final = 20  # with a time per token, for two groups of a third
_GROUPS: Final = 3

Floats = np.ndarray[Any, np.dtype[np.float64]]


def decode_load(calls: Iterable[ModelCall]) -> DecodeLoad | None:
    """Return the comparison; `None` for fewer than 20 calls with a time per token."""
    by_model: dict[str, list[ModelCall]] = {}
    for call in calls:
        by_model.setdefault(_model(call), []).append(call)
    model, found = max(by_model.items(), key=lambda item: len(item[1]), default=("", []))
    timed = [(call, tpot) for call in found if call.outcome == "ok" and (tpot := tpot_ns(call)) is not None]
    if len(timed) < _MIN_CALLS:
        return None
    concurrency = _mean_in_flight(found, [call for call, _ in timed])
    tpots = np.array([tpot for _, tpot in timed], dtype=np.float64)
    order = np.argsort(concurrency, kind="stable")
    low, high = order[: len(order) // _GROUPS], order[-(len(order) // _GROUPS) :]
    return DecodeLoad(
        n_calls=len(timed),
        model=model,
        low_concurrency=float(np.median(concurrency[low])),
        high_concurrency=float(np.median(concurrency[high])),
        low_tpot_ns=float(np.median(tpots[low])),
        high_tpot_ns=float(np.median(tpots[high])),
        rank_correlation=_rank_correlation(concurrency, tpots),
    )


def _model(call: ModelCall) -> str:
    keys = (semconv.RESPONSE_MODEL, semconv.REQUEST_MODEL)
    names = (call.last.attributes.get(key) for key in keys)
    return next((name for name in names if isinstance(name, str)), "")


def _mean_in_flight(calls: Sequence[ModelCall], asked: Sequence[ModelCall]) -> Floats:
    """Return the mean number of `calls` in flight over each asked call's interval.

    The number in flight, summed up to t, is the sum of (t - start) over what had started less that of
    (t - end) over what had ended.
    """
    zero = min(call.span.start_ns for call in calls)
    starts = np.sort(np.array([call.span.start_ns - zero for call in calls], dtype=np.float64))
    ends = np.sort(np.array([_end_ns(call) - zero for call in calls], dtype=np.float64))
    first = np.array([call.span.start_ns - zero for call in asked], dtype=np.float64)
    last = np.array([_end_ns(call) - zero for call in asked], dtype=np.float64)
    summed = _passed(starts, last) - _passed(ends, last) - _passed(starts, first) + _passed(ends, first)
    mean: Floats = summed / np.maximum(last - first, 1.0)
    return mean


def _end_ns(call: ModelCall) -> int:
    return call.span.end_ns if call.span.end_ns is not None else call.span.start_ns


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
