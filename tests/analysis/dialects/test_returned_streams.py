"""A model call whose span ended when its stream was made lasts as long as the span that reads it."""

from __future__ import annotations

import pytest

import hotspan
from hotspan.analysis.dialects import translate
from hotspan.tracer import semconv
from hotspan.tracer.record import Scope, Trace
from hotspan.tracer.testing import build_trace

MS = 1_000_000
LLAMA_INDEX = "llamaindex.opentelemetry.tracer"


def trace_of(*spans, scopes=None, attributes=None):
    """Return a trace of LlamaIndex's own spans; times are in milliseconds."""
    timed = [(name, start * MS, end * MS, *parent) for name, start, end, *parent in spans]
    trace = build_trace(*timed, attributes=attributes)
    written = [span._replace(scope=Scope((scopes or {}).get(span.name, LLAMA_INDEX))) for span in trace.spans]
    return Trace(trace.trace_id, written)


def test_a_step_that_reads_a_stream_waits_for_the_model():
    """The agent's step makes the stream at once, and reads it until it ends.

    run     |------------------------------|
    step     |---------------------------|
    chat        |--|
    """
    trace = trace_of(
        ("FunctionAgent.run", 0, 200),
        ("BaseWorkflowAgent.run_agent_step", 5, 190, "FunctionAgent.run"),
        ("OpenAI._prepare_chat_with_tools", 6, 8, "BaseWorkflowAgent.run_agent_step"),
        ("OpenAI.astream_chat", 10, 12, "BaseWorkflowAgent.run_agent_step"),
        ("FunctionTool.acall", 192, 198, "FunctionAgent.run"),
    )
    report = hotspan.analyse([trace])
    (row,) = (row for row in report.stages if row.stage == "generation")

    assert row.duration_ns.p50 == 180 * MS
    assert row.critical_path_ratio == pytest.approx(180 / 200)
    assert any("ended before their first chunk came: 1" in line for line in report.evidence.warnings)


@pytest.mark.parametrize(
    ("around", "said", "scope", "end"),
    [
        pytest.param("Refine.get_response", {}, LLAMA_INDEX, 190, id="reads"),
        pytest.param("Refine.get_response", {}, "app", 12, id="of-another-writer"),
        pytest.param("FunctionTool.acall", {}, LLAMA_INDEX, 12, id="a-stage"),
        pytest.param("x", {"hotspan.stage": "mine"}, LLAMA_INDEX, 12, id="the-users-stage"),
    ],
)
def test_what_reads_a_stream(around, said, scope, end):
    """A span of the same writer's that says no stage; it is not the request itself."""
    trace = trace_of(
        ("root", 0, 200),
        (around, 5, 190, "root"),
        ("OpenAI.stream_chat", 10, 12, around),
        scopes={around: scope},
        attributes={around: said},
    )
    (chat,) = (span for span in translate(trace.spans) if span.name == "OpenAI.stream_chat")

    assert chat.end_ns == end * MS


def test_the_innermost_span_of_the_call_is_the_one_that_goes_on():
    """`stream` around `stream_chat` is one call; those around it end with it."""
    trace = trace_of(
        ("root", 0, 200),
        ("Refine.get_response", 5, 190, "root"),
        ("OpenAI.stream", 9, 13, "Refine.get_response"),
        ("OpenAI.stream_chat", 10, 12, "OpenAI.stream"),
    )
    (row,) = (row for row in hotspan.analyse([trace]).stages if row.stage == "generation")

    assert (row.n_calls, row.duration_ns.p50) == (1, 181 * MS)


@pytest.mark.parametrize(
    "spans",
    [
        pytest.param([("x", 5, 190, "root"), ("y", 50, 60, "x")], id="something-follows"),
        pytest.param([("x", 5, 11, "root")], id="it-was-over"),
        pytest.param([("x", 11, 190, "root")], id="it-began-later"),
    ],
)
def test_a_call_that_nothing_can_have_read(spans):
    """It stays as short as it was written, and is known to be cut short."""
    trace = trace_of(("root", 0, 200), *spans, ("OpenAI.stream_chat", 10, 12, "x"))
    (chat,) = (span for span in translate(trace.spans) if span.name == "OpenAI.stream_chat")

    assert (chat.end_ns, semconv.CUT_SHORT in chat.attributes) == (12 * MS, True)


def test_a_call_that_was_answered_whole_is_not_cut_short():
    """`achat` returns the answer."""
    trace = trace_of(("root", 0, 200), ("x", 5, 190, "root"), ("OpenAI.achat", 10, 120, "x"))
    (chat,) = (span for span in translate(trace.spans) if span.name == "OpenAI.achat")

    assert (chat.end_ns, semconv.CUT_SHORT in chat.attributes) == (120 * MS, False)


def test_a_loop_of_parents_ends():
    """Nothing is outermost there."""
    trace = trace_of(("A.stream_chat", 0, 2), ("B.stream_chat", 1, 3))
    ids = [span.span_id for span in trace.spans]
    looped = [span._replace(parent_id=other) for span, other in zip(trace.spans, reversed(ids), strict=True)]

    assert len(translate(looped)) == 2
