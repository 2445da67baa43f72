"""How values are written: what `--by` prints is what `--where` reads; numbers compare as Python's."""

from __future__ import annotations

import math
import operator

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from made_traces import many, request

from hotspan.analysis import analyse, parse_where, select
from hotspan.analysis.spelling import spelt, written
from hotspan.testing import build_trace
from hotspan.tracer.errors import ConfigurationError

BIG = 2**62
ODD = (
    "true",
    "True",
    "5",
    "5.0",
    "[1, 2]",
    "(1, 2)",
    "(all)",
    "(none)",
    "other values",
    "null",
    "NaN",
    "",
    "{}",
)
_numbers = st.integers() | st.integers(BIG - 3, BIG + 3) | st.floats() | st.sampled_from([float(BIG), 5, 5.0])
_texts = st.sampled_from(ODD) | st.text('ab5 .,|[]"=~', max_size=4)
_plain = _texts | _numbers | st.booleans()
_values = _plain | st.lists(_plain, max_size=2).map(tuple) | st.binary(max_size=2)
_OPERATORS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def holds(where, value):
    """Whether a call whose attribute `x` has the value fulfils a condition."""
    (span,) = build_trace(("call", 0, 1), attributes={"call": {"x": value}}).spans
    (condition,) = parse_where([where]).conditions
    return condition.holds(None, [span])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", "text"),
        (True, "true"),
        (None, "null"),
        (2**62 + 1, "4611686018427387905"),
        (5.0, "5.0"),
        (math.nan, "NaN"),
        ((1, "a", False), '[1, "a", false]'),
        ({"é": (b"\x01\x02",)}, '{"é": ["AQI="]}'),
        (b"\x01\x02", "AQI="),
        pytest.param(10**5000, "…", id="digits"),
    ],
)
def test_a_value_is_spelt_as_json(value, expected):
    """A text without its quotes, bytes as base64; what Python does not write is an ellipsis."""
    assert spelt(value) == expected


def test_a_value_may_be_nested_without_end():
    """However deep a list is, its spelling is found."""
    value = ()
    for _ in range(100_000):
        value = (value,)

    assert spelt(value) == "…"


@settings(max_examples=500, deadline=None)
@given(_numbers, st.sampled_from(list(_OPERATORS)), _numbers)
@example(BIG + 1, "=", BIG + 2)
@example(BIG + 1, ">", float(BIG))
@example(10**400, ">", 1.5)
def test_numbers_compare_as_python_s(value, sign, bound):
    """Whole ones exactly, however large, and against floats too."""
    assume(sign not in ("=", "!=") or bound == bound)  # noqa: PLR0124 - NaN is found by its name, below

    assert holds(f"x{sign}{bound!r}", value) == _OPERATORS[sign](value, bound)


@settings(max_examples=200, deadline=None)
@given(_numbers, _numbers, _numbers)
def test_a_range_is_as_python_s(value, low, high):
    """Two conditions on one attribute."""
    where = parse_where([f"x>={low!r} and x<{high!r}"])
    (span,) = build_trace(("call", 0, 1), attributes={"call": {"x": value}}).spans

    assert all(condition.holds(None, [span]) for condition in where.conditions) == (low <= value < high)


def test_a_duration_is_exact():
    """1.1 ms are 1,100,000 ns, not the nearest float's."""
    (span,) = build_trace(("call", 0, 1_100_000)).spans
    results = [
        parse_where([f"duration{sign}1.1ms"]).conditions[0].holds(None, [span]) for sign in ("<", ">=")
    ]

    assert results == [False, True]


@settings(max_examples=500, deadline=None)
@given(_values)
@example(math.nan)
@example(b"\x01\x02")
def test_a_written_value_is_read_as_itself(value):
    """Any value, in quotes where it is a text of more than a word."""
    assert holds(f"x={written(value)}", value)


@pytest.mark.parametrize(
    ("where", "holds_for"),
    [
        ("x=true", [True, "true"]),
        ("x=True", [True, "True"]),
        ("x=TRUE", [True]),
        ("x='true'", ["true"]),
        ("x=5", [5, 5.0, "5"]),
        ("x=5.0", [5, 5.0]),
        ('x="5"', ["5"]),
        ("x=1", []),
        ("x=null", []),
        ("x=[1,2]", [(1, 2)]),
        ("x=[1, 2]", [(1, 2), "[1, 2]"]),
        ("x='[1, 2]'", ["[1, 2]"]),
        ("x=[1", ["[1"]),
        ("x=[1]a", ["[1]a"]),
        ("x=[1, 2]|5", [(1, 2), "[1, 2]", 5, 5.0, "5"]),
        ("x~TR", [True, "true", "True"]),
        ("x~1", [(1, 2), "[1, 2]", "[1", "[1]a"]),
        ("x>4", [5, 5.0]),
        ("x>=0", [5, 5.0]),
    ],
)
def test_what_a_word_stands_for(where, holds_for):
    """The text, and the value that is spelt so; in quotes the text alone; no boolean is a number."""
    values = [True, "true", "True", 5, 5.0, "5", (1, 2), "[1, 2]", "[1", "[1]a"]

    found = [value for value in values if holds(where, value)]
    assert list(map(repr, found)) == [text for text in map(repr, values) if text in map(repr, holds_for)]


def test_an_inequality_is_of_the_boolean_that_is_meant():
    """`!=True` leaves no true ones, silently."""
    assert [value for value in (True, False) if holds("x!=True", value)] == [False]


def _is_text(value):
    return isinstance(value, str | bytes)


@settings(max_examples=300, deadline=None)
@given(st.lists(_values, min_size=1, max_size=8))
@example([True, "True", "true", False])
@example([5, "5", 5.0, "5.0"])
@example(["(all)", "(none)", "other values", ""])
@example([(1, 2), "[1, 2]", "(1, 2)"])
@example([math.nan, math.nan, "NaN"])
def test_what_a_group_is_called_selects_it(values):
    """Pasted behind `request.x=`: all of its requests, and beside them at most texts that are spelt so."""
    traces = many(len(values), lambda k: request(k, 100, attributes={"x": values[k - 1]}))
    groups = analyse(traces, by="x").groups

    assert sum(part.request.n for _, part in groups.reports) == len(values)
    assert len(dict(groups.reports)) == len(groups.reports)
    for label, part in groups.reports:
        named = [value for value in values if spelt(value) == label]
        is_text = all(map(_is_text, named))
        pasted = written(label) if named and is_text else label
        kept = list(select(traces, parse_where([f"request.x={pasted}"])))
        found = [trace.spans[0].attributes["x"] for trace in kept]
        texts = [value for value in found if _is_text(value) and not is_text]
        assert len(found) - len(texts) == part.request.n
        assert all(spelt(value) == label for value in texts)


@pytest.mark.parametrize(
    ("where", "whole"),
    [
        ("request.name=request rag", 'request.name="request rag"'),
        ("name=a b and stage=tool", 'name="a b"'),
        ("stage=tool and name=x|a b", 'name=x|"a b"'),
        ("name=search and replace, stage=tool", 'name="search and replace"'),
        ("x=(1, 2)", 'x="(1, 2)"'),
        ('x=a"b', "x='a\"b'"),
        ("stage=a or stage=b", None),
        ("stage='a' b", None),
        ("stage=a and", None),
    ],
)
def test_a_value_of_several_words_is_shown_in_quotes(where, whole):
    """The condition as it was meant, where it was meant so; and it can be read then."""
    with pytest.raises(ConfigurationError) as caught:
        parse_where([where])

    says = str(caught.value).splitlines()[0].partition(" needs quotes: ")[2]
    assert says == (whole or "")
    if whole:
        parse_where([whole])
