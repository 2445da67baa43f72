"""The garbage collector is as it was, whoever else asked for the same meanwhile."""

from __future__ import annotations

import gc

import pytest

from hotspan.analysis.garbage import seldom_collected


@pytest.fixture(autouse=True)
def _as_it_was():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_two_at_once_leave_what_was_before_the_first():
    """The second may begin while the first runs, and end after it."""
    gc.set_threshold(123, 4, 5)
    first, second = seldom_collected(), seldom_collected()
    first.__enter__()
    second.__enter__()
    assert gc.get_threshold()[0] > 123
    first.__exit__(None, None, None)
    assert gc.get_threshold()[0] > 123
    second.__exit__(None, None, None)

    assert gc.get_threshold() == (123, 4, 5)


@pytest.mark.parametrize("threshold", [pytest.param(0, id="never"), pytest.param(1_000_000, id="seldom")])
def test_a_program_that_collects_less_is_left_alone(threshold):
    """Nothing is collected more often than it wants."""
    gc.set_threshold(threshold, 4, 5)
    with seldom_collected():
        assert gc.get_threshold() == (threshold, 4, 5)
    assert gc.get_threshold() == (threshold, 4, 5)
