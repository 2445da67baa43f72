"""Requests that are one call each, and ran while another request did: that one's work, in all likelihood."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hotspan.analysis.columns import Longs, view
from hotspan.analysis.patterns import Strays

if TYPE_CHECKING:
    from hotspan.analysis.tail import RequestRows


def strays(rows: RequestRows) -> Strays | None:
    """Return how many such requests there are; `None` where no request is a call, or every one is."""
    are_calls = view(rows.are_calls).astype(bool)
    if not are_calls.any() or are_calls.all():
        return None
    starts = view(rows.starts_ns)
    ends = starts + view(rows.durations_ns)
    order = np.argsort(starts[~are_calls], kind="stable")
    others, latest = starts[~are_calls][order], np.maximum.accumulate(ends[~are_calls][order])
    before = np.searchsorted(others, starts[are_calls], side="right") - 1
    n_inside = int(((before >= 0) & (latest[before] >= ends[are_calls])).sum())
    return Strays(int(are_calls.sum()), n_inside, len(others), _busy_ratio(others, latest))


def _busy_ratio(starts: Longs, latest: Longs) -> float:
    """Return for what part of the time a request was in flight; `latest`: the last end up to each start."""
    idle = int(np.maximum(starts[1:] - latest[:-1], 0).sum())
    whole = int(latest[-1] - starts[0])
    return 1 - idle / whole if whole else 1.0
