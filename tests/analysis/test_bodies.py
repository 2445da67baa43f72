"""Many spans asked at once say what each of them says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotspan.analysis.drafts import BODY, Bodies, spans_of
from hotspan.analysis.readers import otlp_shapes
from hotspan.analysis.readers.otlp_json import Decoder
from hotspan.analysis.readers.otlp_text import TextDecoder
from hotspan.exporters import otlp_lines
from hotspan.tracer import semconv
from hotspan.tracer.record import Resource, Scope, SpanRecord

START_NS = 1_790_000_000_000_000_000
RESOURCE, SCOPE = Resource({semconv.SERVICE_NAME: "bot"}), Scope(semconv.SCOPE_NAME)
REST = ("unset", "", (), ())  # status, events, links
KEYS = ("count", "size", "gaps", "ratio", "model", "is_last", "absent")

attributes = st.fixed_dictionaries(
    {semconv.STAGE: st.just("generation")},
    optional={
        "count": st.integers(0, 3) | st.integers(-(1 << 63), (1 << 63) - 1),
        "size": st.just(7),
        "gaps": st.lists(st.integers(0, 1 << 50), max_size=4).map(tuple),
        "ratio": st.floats(0, 1) | st.integers(0, 3),
        "model": st.sampled_from(("small", "large")),
        "is_last": st.booleans(),
    },
)


@pytest.fixture(autouse=True)
def _early_shapes(monkeypatch):
    """Let two spans be enough for a shape, and for what is taken to be the same in all."""
    monkeypatch.setattr(otlp_shapes, "_MIN_MISSES", 1)
    monkeypatch.setattr(otlp_shapes, "_MIN_ALIKE", 2)


def _drafts(said):
    spans = [
        SpanRecord(
            f"{n:032x}",
            f"{n:016x}",
            None,
            "chat",
            START_NS,
            START_NS + n,
            one,
            "client",
            *REST,
            RESOURCE,
            SCOPE,
        )
        for n, one in enumerate(said, 1)
    ]
    texts = TextDecoder(Decoder())
    return [
        draft for span in spans for line in otlp_lines.lines([span]) for draft in texts.drafts(line.encode())
    ]


@given(st.lists(attributes, min_size=1, max_size=40), st.data())
@settings(max_examples=300)
def test_columns_hold_what_the_spans_say(said, data):
    """However the texts were taken apart, and whatever was taken to be the same in all."""
    drafts = _drafts(said)
    bodies = Bodies([draft[BODY] for draft in drafts])
    is_wanted = data.draw(st.lists(st.booleans(), min_size=len(said), max_size=len(said)))

    assert [dict(span.attributes) for span in spans_of(drafts)] == said
    for key in KEYS:
        expected = [one.get(key) for one in said]
        assert list(bodies.column(key)) == expected
        assert bodies.have(key) == any(key in one for one in said)
        integers = bodies.integers(key)
        assert integers is None or (integers.tolist() == expected and all(type(n) is int for n in expected))
    of_wanted = itertools.compress((one.get("gaps") for one in said), is_wanted)
    found = [
        gaps.tolist() if isinstance(gaps, np.ndarray) else gaps or ()
        for gaps in bodies.arrays("gaps", is_wanted)
    ]
    assert sorted(itertools.chain(*found)) == sorted(itertools.chain(*filter(None, of_wanted)))


def test_numbers_of_many_spans_come_at_once():
    """Counts and arrays of spans that are alike are not made one by one."""
    said = [{semconv.STAGE: "generation", "count": n, "size": 7, "gaps": (n, n + 1)} for n in range(40)]
    bodies = Bodies([draft[BODY] for draft in _drafts(said)[10:]])

    assert bodies.integers("count").tolist() == list(range(10, 40))
    assert bodies.integers("size").tolist() == [7] * 30
    (gaps,) = bodies.arrays("gaps", [True] * 30)
    assert gaps.tolist() == [n for one in said[10:] for n in one["gaps"]]


def test_a_value_that_was_the_same_in_all_may_change():
    """What was taken to be the same is looked at in every span all the same."""
    said = [{semconv.STAGE: "generation", "count": n, "model": "small"} for n in range(20)]
    said += [{semconv.STAGE: "generation", "count": n, "model": f"large {n // 3}"} for n in range(60)]
    drafts = _drafts(said)

    assert [dict(span.attributes) for span in spans_of(drafts)] == said
    first = drafts[19][BODY].shape
    assert list(first.holes) == ["count"]
    assert list(drafts[-1][BODY].shape.holes) == ["count", "model"]  # who changes it often gets a hole for it
