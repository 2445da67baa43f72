"""Case 092: percentiles of a handful of samples."""

from __future__ import annotations

import pytest

from hotspan.analysis.percentiles import distribution


@pytest.mark.parametrize("values", [[7], [1, 2], [10, 20, 30], list(range(1, 21))])
def test_a_percentile_never_leaves_the_sample(values):
    """One sample is its own percentile; p95 never passes the maximum; each says that few samples carry it."""
    found = distribution(values)

    for percentile in (found.p50, found.p90, found.p95, found.p99):
        assert min(values) <= percentile <= max(values)
    assert "p99" in found.weak
    assert "p95" in found.weak


def test_one_sample_is_returned():
    """N = 1: the sample, not 0."""
    found = distribution([42])

    assert (found.p50, found.p95, found.p99, found.mean) == (42, 42, 42, 42)


def test_p95_of_twenty_is_not_the_maximum():
    """Between the last two order statistics, by the method that is documented."""
    found = distribution(range(1, 21))

    assert found.p95 == pytest.approx(19.05)
    assert found.p99 == pytest.approx(19.81)
