"""Numbers as a reader sees them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotspan.exporters.reports import figures


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(0, "0", id="zero"),
        pytest.param(412.4, "412", id="hundreds"),
        pytest.param(41.24, "41.2", id="tens"),
        pytest.param(5.1, "5.10", id="a-zero-at-the-end-was-measured"),
        pytest.param(9.996, "10.0", id="rounding-adds-a-digit"),
        pytest.param(999.6, "1,000", id="rounding-reaches-a-thousand"),
        pytest.param(0.05, "0.0500", id="below-one"),
        pytest.param(12_345.0, "12,300", id="three-digits-also-of-thousands"),
        pytest.param(-41.24, "-41.2", id="negative"),
    ],
)
def test_a_number_has_three_significant_digits(value, expected):
    """Three digits that were measured, no exponent, thousands separated."""
    assert figures.significant(value) == expected


@pytest.mark.parametrize(
    ("ns", "expected"),
    [
        pytest.param(None, "\N{EN DASH}", id="absent"),
        pytest.param(0, "0 ms", id="zero-is-not-absent"),
        pytest.param(912, "912 ns", id="ns"),
        pytest.param(999_600, "1.00 ms", id="a-rounded-thousand-takes-the-next-unit"),
        pytest.param(55_000, "55.0 µs", id="us"),
        pytest.param(1_840_000_000, "1.84 s", id="s"),
        pytest.param(83_400_000_000, "83.4 s", id="seconds-up-to-ten-minutes"),
        pytest.param(900_000_000_000, "15.0 min", id="min"),
        pytest.param(7_200_000_000_000, "2.00 h", id="h"),
    ],
)
def test_a_duration_has_the_unit_that_suits_it(ns, expected):
    """Every duration has a unit; one that was not measured is a dash, not a zero."""
    assert figures.duration(ns) == expected


@pytest.mark.parametrize(
    ("durations_ns", "expected"),
    [
        pytest.param([402e6, 3e6, 0.5e6], "ms", id="one-unit-for-all"),
        pytest.param([5.1e9, 0.21e9], "s", id="the-largest-that-fits"),
        pytest.param([5.1e9, 0.02e9], None, id="too-far-apart"),
        pytest.param([402e6, 212e6], "ms", id="the-unit-of-the-longest"),
        pytest.param([402e6, None, 0], "ms", id="absent-and-zero-do-not-count"),
        pytest.param([], None, id="empty"),
    ],
)
def test_a_column_has_one_unit_where_that_is_readable(durations_ns, expected):
    """From 0.1 up to 1,000 of a unit is readable."""
    assert figures.common_unit(durations_ns) == expected


@given(st.floats(min_value=1, max_value=1e15))
def test_a_printed_duration_is_the_measured_one(ns):
    """Reading the figure back gives the value within its three digits."""
    number, unit = figures.duration(ns).split(" ")
    assert math.isclose(float(number.replace(",", "")) * dict(figures.UNITS_NS)[unit], ns, rel_tol=0.00501)


@given(
    st.lists(st.floats(min_value=0, max_value=1e6), min_size=1, max_size=30).filter(lambda xs: sum(xs) > 0)
)
def test_shares_add_up_as_printed(weights):
    """Shares of one whole are printed as 100.0 % in sum, each within a tenth of its own value."""
    ratios = [weight / math.fsum(weights) for weight in weights]
    tenths = figures.tenths_of_percent(ratios)
    assert sum(tenths) == 1000
    assert all(abs(shown - 1000 * ratio) < 1.001 for shown, ratio in zip(tenths, ratios, strict=True))


def test_shares_of_a_part_add_up_to_the_part():
    """The phases of a stage add up to what is printed for the stage, not to their own rounding."""
    assert figures.tenths_of_percent([0.1004, 0.1004, 0.1004], 302) == [101, 101, 100]


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        pytest.param(0.62, "62.0 %", id="whole"),
        pytest.param(0.034, "3.4 %", id="small"),
        pytest.param(0.0996, "10.0 %", id="rounded"),
        pytest.param(0.0, "0.0 %", id="zero"),
        pytest.param(None, "\N{EN DASH}", id="absent"),
    ],
)
def test_a_ratio_has_one_decimal(ratio, expected):
    """In a table and in running text alike."""
    assert figures.percent(ratio) == expected


def test_a_noun_follows_its_number():
    """One request, but two of them, and none."""
    assert [figures.counted(n, "call") for n in (0, 1, 1200)] == ["0 calls", "1 call", "1,200 calls"]
