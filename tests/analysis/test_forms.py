"""Traces of one form are summed together, and give what they give one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotspan.analysis import analyse
from hotspan.analysis.call_table import Names
from hotspan.analysis.collect import Collector
from hotspan.analysis.model import PHASES
from hotspan.analysis.phases import STAMPS, phases_of
from hotspan.analysis.plain_phases import plain_phases, plain_sources
from hotspan.analysis.readers import otlp_shapes
from hotspan.analysis.readers.otlp_json import Decoder
from hotspan.analysis.readers.otlp_text import TextDecoder
from hotspan.analysis.readers.window import Window
from hotspan.analysis.report import compose
from hotspan.exporters import otlp_lines
from hotspan.tracer import semconv
from hotspan.tracer.record import Resource, Scope, SpanRecord, Trace

STAGES = ("agent", "step", "embedding", "retrieval", "generation", "tool", "postprocess")
OUTCOMES = (None, "ok", "error", "cancelled", "abandoned", "truncated", "interrupted")
START_NS = 1_700_000_000_000_000_000
RESOURCES = (
    Resource({semconv.SERVICE_NAME: "bot", semconv.OVERHEAD_NS: 1000}),
    Resource({semconv.SERVICE_NAME: "tools"}),
)
SCOPE = Scope(semconv.SCOPE_NAME)
ELSEWHERE = 98  # the place of no span


@st.composite
def forms(draw):
    """Draw what the traces of one form have in common: parents, stages, names, outcomes.

    Every second one begins below another library's span, which is not there.
    """
    n = draw(st.integers(1, 7))
    parents = [draw(st.sampled_from((None, ELSEWHERE))), *(draw(st.integers(0, i - 1)) for i in range(1, n))]
    kinds = [
        (
            draw(st.sampled_from(("request", *STAGES))) if not i else draw(st.sampled_from(STAGES)),
            draw(st.sampled_from(("a", "b"))),
            draw(st.sampled_from(OUTCOMES)) if draw(st.booleans()) else None,
            "error" if draw(st.integers(0, 9)) == 0 else "unset",
            draw(st.sampled_from(RESOURCES)),
        )
        for i in range(n)
    ]
    return parents, kinds


def _generation(draw):
    stamps = {key: draw(st.none() | st.integers(0, 60)) for key in STAMPS}
    counts = {
        key: draw(st.none() | st.integers(0, 50))
        for key in (semconv.INPUT_TOKENS, semconv.CACHED_TOKENS, semconv.OUTPUT_TOKENS, semconv.ATTEMPTS)
    }
    said = stamps | counts | {semconv.RESPONSE_MODEL: draw(st.sampled_from((None, "small", "large")))}
    return {key: value for key, value in said.items() if value is not None}


@st.composite
def traces(draw, form, number):
    """Draw a trace of a form: mostly inside its parent and one after the other, but not always."""
    parents, kinds = form
    spans, intervals = [], []
    for i, (parent, (stage, name, outcome, status, resource)) in enumerate(zip(parents, kinds, strict=True)):
        low, high = intervals[parent] if i else (0, draw(st.integers(1, 80)))
        slack = draw(st.sampled_from((0, 0, 0, 5))) if i else 0
        start, end = sorted((draw(st.integers(low, high)), draw(st.integers(low, high + slack))))
        intervals.append((start, end))
        attributes = {semconv.STAGE: stage} | ({semconv.OUTCOME: outcome} if outcome else {})
        if parent == ELSEWHERE:
            attributes[semconv.ENTRY] = True
        if stage == "generation":
            attributes |= _generation(draw)
        elif (hold := draw(st.none() | st.integers(0, 60))) is not None:
            attributes[semconv.STREAM_HOLD_NS] = hold
        spans.append(
            SpanRecord(
                f"{number:032x}", f"{i + 1:016x}", None if parent is None else f"{parent + 1:016x}", name,
                START_NS + start, START_NS + end, attributes, status=status, resource=resource, scope=SCOPE,
            )
        )  # fmt: skip
    return Trace(f"{number:032x}", draw(st.permutations(spans)))


@st.composite
def runs(draw):
    """Draw the traces of a few forms, mixed."""
    found = draw(st.lists(forms(), min_size=1, max_size=3))
    picks = draw(st.lists(st.sampled_from(found), min_size=1, max_size=8))
    return [draw(traces(form, number + 1)) for number, form in enumerate(picks)]


def _one_by_one(found):
    collector = Collector(forms=None)
    for trace in found:
        collector.add(trace)
    return compose(collector, None, 95.0)


def _rounded(value):
    """Return a report's data with its floats rounded: sums in another order differ in the last bits."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


@given(runs())
@settings(max_examples=100)
def test_traces_of_one_form_give_what_they_give_one_by_one(found):
    """The long way defines the figures; summing many traces of a form at once changes none of them."""
    together, one_by_one = analyse(found), _one_by_one(found)

    assert _rounded(together.to_dict()) == _rounded(one_by_one.to_dict())
    assert together.patterns == one_by_one.patterns


@given(runs())
@settings(max_examples=100)
def test_lines_taken_apart_as_text_give_what_the_spans_give(found):
    """Columns made of texts, which were decoded once for many spans, hold the same figures."""
    texts = TextDecoder(Decoder())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(otlp_shapes, "_MIN_MISSES", 1)
        patch.setattr(otlp_shapes, "_MIN_ALIKE", 2)
        drafts = [
            texts.drafts(line.encode()) for trace in found for line in otlp_lines.lines(list(trace.spans))
        ]
    together = analyse(list(Window({}).complete(drafts)))

    assert _rounded(together.to_dict()) == _rounded(_one_by_one(found).to_dict())


@given(
    st.lists(st.integers(0, 40), min_size=2, max_size=8, unique=True).map(sorted),
    st.sampled_from((None, ELSEWHERE)),
)
def test_plain_traces_take_the_short_way(times, above):
    """A trace of Hotspan's own with nothing to repair has a form, and the second one like it has the same."""
    collector = Collector()
    for number in (1, 2):
        spans = [("request", above, times[0], times[-1])]
        spans += [("tool", 0, a, b) for a, b in zip(times[::2], times[1::2], strict=False)]
        collector.add(
            Trace(
                f"{number:032x}",
                [
                    SpanRecord(
                        f"{number:032x}", f"{i + 1:016x}", None if parent is None else f"{parent + 1:016x}",
                        f"{stage} {i}", START_NS + a, START_NS + b,
                        {semconv.STAGE: stage, semconv.ENTRY: parent == ELSEWHERE}, scope=SCOPE,
                    )
                    for i, (stage, parent, a, b) in enumerate(spans)
                ],
            )
        )  # fmt: skip
    (form,) = collector.forms.known.values()

    assert form.is_plain
    assert [matched.form for matched in collector._waiting] == [form, form]  # noqa: SLF001 - the short way


@given(st.lists(st.tuples(st.integers(0, 90), *(st.none() | st.integers(0, 90) for _ in STAMPS)), min_size=1))
def test_plain_calls_have_the_phases_of_a_single_one(calls):
    """In columns as one by one: the same phases, the same times, the same sources."""
    durations = [duration for duration, *_ in calls]
    stamps = np.array([[-1 if value is None else value for value in values] for _, *values in calls])
    found, names = plain_phases(np.array(durations), stamps), Names()
    codes = plain_sources(found, stamps, names.code)

    for row, sources, (duration, *values) in zip(found.tolist(), codes.tolist(), calls, strict=True):
        said = {key: value for key, value in zip(STAMPS, values, strict=True) if value is not None}
        span = SpanRecord("", "", None, "", START_NS, START_NS + duration, said)
        expected = phases_of(span, [span], None)
        assert {name: ns for name, ns in zip(PHASES, row, strict=True) if ns >= 0} == expected.ns
        read = {name: names.known()[code] for name, code in zip(PHASES, sources, strict=True) if code >= 0}
        assert read == expected.sources


@pytest.mark.parametrize("key", STAMPS)
def test_phases_rest_on_the_stamps_alone(key):
    """What a row keeps of a call's attributes is all that its phases need."""
    assert key.startswith("hotspan.")
    span = SpanRecord("", "", None, "", 0, 100, dict.fromkeys(STAMPS, 7) | {"other": 3, semconv.CHUNKS: 4})
    kept = span._replace(attributes=dict.fromkeys(STAMPS, 7))

    assert phases_of(span, [span], None) == phases_of(kept, [kept], None)
