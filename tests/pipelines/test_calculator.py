"""The calculator: arithmetic and nothing else, bounded in time and memory."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotspan.pipelines.calculator import MAX_BITS, calculate
from hotspan.pipelines.tools import ARITHMETIC


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("12 * 3 + 4", 40, id="precedence"),
        pytest.param("-2 ** 2", -4, id="unary-below-power"),
        pytest.param("(1 + 2) * 3", 9, id="parentheses"),
        pytest.param("7 // 2 + 7 % 2", 4, id="floor-and-modulo"),
        pytest.param("1 / 4", 0.25, id="division"),
        pytest.param(" 1\n", 1, id="white-space"),
        pytest.param("2 ** 100", 2**100, id="large"),
        pytest.param("2 ** -1", 0.5, id="negative-power"),
    ],
)
def test_value(expression, expected):
    """Python's own rules of arithmetic."""
    assert calculate(expression) == expected


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        pytest.param("", "not arithmetic", id="nothing"),
        pytest.param("1 +", "not arithmetic", id="half"),
        pytest.param("__import__('os').system('true')", "not arithmetic", id="call"),
        pytest.param("x", "not arithmetic", id="name"),
        pytest.param("'a' * 3", "not arithmetic", id="text"),
        pytest.param("True + 1", "not arithmetic", id="boolean"),
        pytest.param("1 < 2", "not arithmetic", id="comparison"),
        pytest.param("1j", "not arithmetic", id="imaginary"),
        pytest.param("1 / 0", "division by zero", id="division-by-zero"),
        pytest.param("9 ** 9 ** 9", "too large", id="tower-of-powers"),
        pytest.param("9.0 ** 999", "no value", id="float-overflow"),
        pytest.param("(-8) ** 0.5", "not a real number", id="complex-result"),
        pytest.param("1" * 201, "201 characters", id="too-long"),
        pytest.param("(" * 100 + "1" + ")" * 100, "201 characters", id="deep"),
        pytest.param("1\0", "not arithmetic", id="null-byte"),
    ],
)
def test_refusal(expression, says):
    """Whatever is not arithmetic, or has no bounded real value, is refused in a sentence."""
    with pytest.raises(ValueError, match=says):
        calculate(expression)


@given(st.text(alphabet="0123456789+-*/%(). e_", max_size=60))
def test_any_text_is_calculated_or_refused(expression):
    """No text makes it fail otherwise, or gives a result beyond the bound."""
    try:
        result = calculate(expression)
    except ValueError:
        return
    assert isinstance(result, float) or result.bit_length() <= MAX_BITS


@given(st.from_regex(ARITHMETIC, fullmatch=True))
def test_what_the_schema_allows_is_arithmetic(expression):
    """A random model's argument can be calculated, unless it divides by zero."""
    try:
        calculate(expression)
    except ValueError as exc:
        assert re.search("zero|too large", str(exc))  # noqa: PT017 - both outcomes are right
