"""The mean number of calls in flight, against counting them nanosecond by nanosecond."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotspan.analysis.patterns.decode_load import _mean_in_flight, _rank_correlation

intervals = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 30)).map(lambda pair: (pair[0], pair[0] + pair[1])),
    min_size=1,
)


def rows(pairs):
    """The columns that the function reads."""
    starts, ends = (np.array(values, dtype=np.int64) for values in zip(*pairs, strict=True))
    return {"start_ns": starts, "duration_ns": ends - starts}


@given(intervals)
def test_the_mean_in_flight_is_that_of_counting(pairs):
    """Over each call's interval, itself included: at least 1."""
    counted = [
        sum(sum(start <= t < end for start, end in pairs) for t in range(first, last)) / (last - first)
        for first, last in pairs
    ]

    assert _mean_in_flight(rows(pairs), rows(pairs)) == pytest.approx(counted)
    assert min(counted) >= 1


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        pytest.param([1, 2, 3, 4], [10, 20, 30, 90], 1, id="the-same-order"),
        pytest.param([1, 2, 3, 4], [4, 3, 2, 1], -1, id="the-opposite"),
        pytest.param([1, 1, 1, 1], [4, 3, 2, 1], 0, id="constant"),
        pytest.param([1, 1, 2, 2], [1, 2, 1, 2], 0, id="ties-share-their-rank"),
    ],
)
def test_the_rank_correlation(left, right, expected):
    """Spearman's, and no NaN where there is nothing to correlate."""
    assert _rank_correlation(np.array(left, float), np.array(right, float)) == pytest.approx(expected)
