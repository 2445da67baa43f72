"""What reads a model's stream beside the call is part of the call."""

from __future__ import annotations

import pytest

import hotspan
from hotspan.analysis.dialects import translate
from hotspan.tracer.record import Scope, Trace
from hotspan.tracer.testing import build_trace

MS = 1_000_000
CHAT = {"gen_ai.operation.name": "chat"}


def trace_of(*spans, attributes=None, scopes=None):
    """Return a trace; times are in milliseconds, and `chat` is a model call."""
    timed = [(name, start * MS, end * MS, *parent) for name, start, end, *parent in spans]
    trace = build_trace(*timed, attributes={"chat": CHAT} | (attributes or {}))
    written = [
        span._replace(scope=Scope((scopes or {}).get(span.name, "langfuse-sdk"))) for span in trace.spans
    ]
    return Trace(trace.trace_id, written)


def test_the_request_waits_for_the_model_and_not_for_the_parser():
    """As LangChain writes `retriever | model | parser`: the parser ends last.

    rag       |------------------------------|
    retrieve  |-----|
    chat             |--------------------|
    parser              |------------------|
    """
    trace = trace_of(
        ("rag", 0, 204), ("retrieve", 0, 20, "rag"), ("chat", 20, 200, "rag"), ("parser", 30, 202, "rag")
    )
    report = hotspan.analyse([trace])
    halved = {change.change: change.request_p50_change_ratio for change in report.what_if}
    shares = {row.stage: row.critical_path_ratio for row in report.stages}

    assert shares["generation"] == pytest.approx(180 / 204)
    assert (report.unattributed.critical_path_ratio, report.evidence.n_late_spans) == (
        pytest.approx(4 / 204),
        0,
    )
    assert halved["generation x0.5"] == pytest.approx(-90 / 204)


@pytest.mark.parametrize(
    ("start", "end", "said", "scope", "parent"),
    [
        pytest.param(30, 202, {}, "langfuse-sdk", "chat", id="reads"),
        pytest.param(20, 199, {}, "langfuse-sdk", "chat", id="from-the-start"),
        pytest.param(30, 150, {}, "langfuse-sdk", "rag", id="ended-before"),
        pytest.param(30, 300, {}, "langfuse-sdk", "rag", id="went-on"),
        pytest.param(10, 200, {}, "langfuse-sdk", "rag", id="began-before"),
        pytest.param(200, 203, {}, "langfuse-sdk", "rag", id="after-the-call"),
        pytest.param(30, 202, {"gen_ai.operation.name": "execute_tool"}, "langfuse-sdk", "rag", id="a-stage"),
        pytest.param(30, 202, {}, "app", "rag", id="of-another-writer"),
    ],
)
def test_what_only_reads_a_stream(start, end, said, scope, parent):
    """It is the call's own writer's, says no stage, begins within the call and ends nearly with it."""
    trace = trace_of(
        ("rag", 0, 300),
        ("chat", 20, 200, "rag"),
        ("other", start, end, "rag"),
        attributes={"other": said},
        scopes={"other": scope},
    )
    names = {span.span_id: span.name for span in trace.spans}
    (found,) = (span for span in translate(trace.spans) if span.name == "other")

    assert names[found.parent_id] == parent
    assert found.end_ns == min(end, 200 if parent == "chat" else end) * MS


def test_a_reader_below_the_call_is_not_late():
    """MLflow writes LangChain's parser below the model's call, and it ends after it."""
    trace = trace_of(
        ("rag", 0, 210), ("chat", 20, 200, "rag"), ("parser", 30, 202, "chat"), ("upper", 31, 203, "chat")
    )
    report = hotspan.analyse([trace])

    assert (report.evidence.n_late_spans, report.unattributed.critical_path_ns) == (0, 30 * MS)


def test_what_has_spans_of_its_own_does_more_than_read():
    """It stays where it was."""
    trace = trace_of(
        ("rag", 0, 300), ("chat", 20, 200, "rag"), ("other", 30, 200, "rag"), ("x", 40, 50, "other")
    )
    before = {span.name: span.parent_id for span in trace.spans}

    assert {span.name: span.parent_id for span in translate(trace.spans)} == before


def test_a_stage_by_hand_holds_what_it_says():
    """Beside Hotspan's own stages nothing is moved."""
    said = CHAT | {"hotspan.stage": "generation"}
    trace = trace_of(
        ("rag", 0, 300), ("chat", 20, 200, "rag"), ("x", 30, 202, "rag"), attributes={"chat": said}
    )

    assert [span.parent_id for span in translate(trace.spans)] == [span.parent_id for span in trace.spans]


def test_each_of_two_streams_has_its_reader():
    """Two chains in parallel: the call that ended with it is the one that was read."""
    trace = trace_of(
        ("rag", 0, 300),
        ("chat", 20, 200, "rag"),
        ("slow", 20, 280, "rag"),
        ("r1", 30, 201, "rag"),
        ("r2", 30, 281, "rag"),
        attributes={"slow": CHAT},
    )
    names = {span.span_id: span.name for span in trace.spans}
    found = {span.name: names.get(span.parent_id) for span in translate(trace.spans)}

    assert (found["r1"], found["r2"]) == ("chat", "slow")
