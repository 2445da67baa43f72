"""Percentiles stay between the samples, and say when few samples carry them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotspan.analysis.percentiles import distribution, median, per_request, percentile

samples = st.lists(st.floats(0, 1e15, allow_nan=False), min_size=1, max_size=300)


@given(samples)
def test_percentiles_are_ordered_and_inside_the_sample(values):
    """Law 4: min <= p50 <= p90 <= p95 <= p99 <= max, and the mean is between the extremes."""
    d = distribution(values)

    assert d.min == min(values)
    assert d.max == max(values)
    assert d.min <= d.p50 <= d.p90 <= d.p95 <= d.p99 <= d.max
    assert d.min <= d.mean <= d.max


@given(samples)
def test_percentiles_are_those_of_hyndman_and_fan_7(values):
    """Linear interpolation between order statistics: what numpy calls `linear`."""
    d = distribution(values)

    expected = np.percentile(values, [50, 90, 95, 99], method="linear")
    assert [d.p50, d.p90, d.p95, d.p99] == pytest.approx(list(expected), rel=1e-9, abs=1e-9)


@given(samples, st.floats(0, 100, exclude_min=True, exclude_max=True))
def test_one_percentile_is_the_distributions(values, percent):
    """The same figure, to the last bit; any other percent lies where numpy has it, and inside the sample."""
    d = distribution(values)

    assert [percentile(values, p) for p in (50, 90.0, 95, 99)] == [d.p50, d.p90, d.p95, d.p99]
    assert median(values) == d.p50
    assert d.min <= percentile(values, percent) <= d.max
    assert percentile(values, percent) == pytest.approx(np.percentile(values, percent), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("percent", [7, 28, 55, 95.0, 99])
def test_a_percentile_that_falls_on_a_sample_is_that_sample(percent):
    """To the last bit: whoever asks which samples are at or above it, finds it among them."""
    values = [number / 3 for number in range(101)]

    assert percentile(values, percent) == values[int(percent)]


def test_nothing_has_no_distribution():
    """No samples: None, never zeros."""
    assert distribution([]) is None
    assert per_request([]) is None


@pytest.mark.parametrize(
    ("n", "weak"),
    [
        pytest.param(19, ("p50", "p90", "p95", "p99"), id="even-the-median"),
        pytest.param(20, ("p90", "p95", "p99"), id="ten-beyond-the-median"),
        pytest.param(100, ("p95", "p99"), id="ten-beyond-p90"),
        pytest.param(200, ("p99",), id="ten-beyond-p95"),
        pytest.param(999, ("p99",), id="nine-beyond-p99"),
        pytest.param(1000, (), id="ten-beyond-p99"),
    ],
)
def test_a_percentile_with_fewer_than_ten_samples_beyond_it_is_weak(n, weak):
    """The mark depends on the number of samples alone."""
    assert distribution(range(n)).weak == weak


def _coverage(n, low, high, p):
    """Return the chance that the true percentile lies in [order statistic low, order statistic high]."""
    return sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(low + 1, high + 1))


@pytest.mark.parametrize("n", [72, 73, 100, 150, 400])
def test_the_interval_of_p95_covers_it_in_95_of_100_samples_and_is_as_narrow_as_can_be(n):
    """Binomial order statistics: either end one rank further in would leave more than 2.5 % outside."""
    low, high = (int(rank) for rank in distribution(range(n)).p95_interval)

    assert _coverage(n, low, high, 0.95) >= 0.95
    assert sum(math.comb(n, k) * 0.95**k * 0.05 ** (n - k) for k in range(low + 2)) > 0.025
    assert sum(math.comb(n, k) * 0.95**k * 0.05 ** (n - k) for k in range(high)) < 0.975


def test_a_sample_too_small_for_an_interval_has_none():
    """Below 72 samples not even the maximum bounds p95 with 97.5 % certainty."""
    assert distribution(range(71)).p95_interval is None
    assert distribution(range(72)).p95_interval is not None


@given(st.lists(st.integers(0, 10**12), min_size=72, max_size=200))
def test_the_interval_holds_the_percentile(values):
    """Whatever the values, p95 lies in its own interval."""
    d = distribution(values)

    low, high = d.p95_interval
    assert d.min <= low <= d.p95 <= high <= d.max


def test_scaling_reaches_every_value():
    """The JSON form in milliseconds is the one in nanoseconds times 1e-6."""
    plain, scaled = (distribution(range(1, 101)).to_dict(scale) for scale in (1.0, 10.0))

    for key in ("mean", "min", "p50", "p90", "p95", "p99", "max"):
        assert scaled[key] == pytest.approx(plain[key] * 10)
    assert scaled["p95_interval"] == pytest.approx([bound * 10 for bound in plain["p95_interval"]])
    assert scaled["n"] == plain["n"] == 100


def test_order_does_not_matter():
    """Every order of the same samples gives the same distribution."""
    assert len({distribution(list(order)) for order in itertools.permutations([3, 1, 2, 9])}) == 1
