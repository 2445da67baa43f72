"""Whatever the spans say, the rules and patterns neither fail nor say what is not a number."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from made_traces import MS, Call, request

from hotspan.analysis import analyse, parse_where, select
from hotspan.analysis.words import percent, significant
from hotspan.exporters.reports import console, csv, markdown
from hotspan.exporters.reports.screen import Screen
from hotspan.tracer import semconv

KEYS = (
    semconv.TTFT_NS,
    semconv.LAST_TOKEN_NS,
    semconv.INPUT_TOKENS,
    semconv.OUTPUT_TOKENS,
    semconv.CACHED_TOKENS,
    semconv.STREAM_HOLD_NS,
    semconv.BUFFERED,
    semconv.ATTEMPTS,
    semconv.BACKOFF_NS,
    semconv.HTTP_STATUS,
    semconv.ERROR_TYPE,
    semconv.OUTCOME,
    semconv.REQUEST_MODEL,
    semconv.OPENINFERENCE_INPUT,
    semconv.OPENINFERENCE_OUTPUT,
    semconv.TOOL_ARGUMENTS,
    semconv.HONEYCOMB_SAMPLE_RATE,
    semconv.ENGINE_QUEUE_S,
)
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-10, 400 * MS),
    st.floats(),
    st.sampled_from(["", "429", "ok", "truncated", "cancelled", "\x1b[2J"]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=1),
)
attributes = st.dictionaries(st.sampled_from(KEYS), values, max_size=6)
stages = st.sampled_from(
    ["generation", "embedding", "retrieval", "rerank", "tool", "agent", "step", "own", None]
)
calls = st.builds(
    lambda stage, name, start, length, found, status: Call(
        stage, name, start, start + length, found, status=status
    ),
    stages,
    st.sampled_from("ab"),
    st.integers(-5, 300),
    st.integers(0, 300),
    attributes,
    st.sampled_from(["unset", "error"]),
)
runs = st.lists(st.lists(calls, max_size=5), min_size=1, max_size=12)


@settings(max_examples=30, deadline=None)
@given(runs, st.integers(0, 400), attributes)
def test_a_report_of_any_run_is_finite_and_can_be_rendered(found, duration, said):
    """JSON without NaN, every format, every part; a finding has figures and a next step."""
    traces = [
        request(k, duration, *spans, at=100 * k, attributes=said) for k, spans in enumerate(found, start=1)
    ]

    report = analyse(traces, by="name", tail=90)

    json.dumps(report.to_dict(), allow_nan=False)
    for finding in report.findings:
        assert finding.evidence["against"] or finding.id == "evidence-thin"
        assert finding.next_step
    texts = (
        console.render(report, Screen(), tail=True),
        markdown.render(report, tail=True),
        csv.render(report),
    )
    for text in texts:
        assert "\x1b" not in text
        assert "nan" not in text.split()
    shares = [row.critical_path_ratio or 0.0 for row in report.stages]
    assert sum(shares) + (report.unattributed.critical_path_ratio or 0.0) <= 1 + 1e-9


@settings(max_examples=30, deadline=None)
@given(runs, st.sampled_from(["stage=generation", "request.duration>100ms", "name=a|b", "outcome!=ok"]))
def test_any_part_of_any_run_adds_up(found, where):
    """Rows, `unattributed` and `not selected` are the whole, whatever was selected."""
    traces = [request(k, 300, *spans, at=100 * k) for k, spans in enumerate(found, start=1)]

    report = analyse(select(traces, parse_where([where])))

    if report.request.n:
        shares = [row.critical_path_ratio or 0.0 for row in report.stages]
        rest = [report.unattributed.critical_path_ratio, report.selection.other_ratio]
        assert abs(sum(shares) + sum(share or 0.0 for share in rest) - 1) < 1e-9
    console.render(report, Screen())


@given(st.floats(0, 1), st.floats(1e-12, 1e12))
def test_figures_in_words_are_short(ratio, value):
    """Three digits that say something, no exponent."""
    assert percent(ratio).endswith(" %")
    assert "e" not in significant(value)
