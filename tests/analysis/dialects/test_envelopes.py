"""Agents' runs that are written as an empty span beside what they did."""

import pytest

from hotspan.analysis import analyse
from hotspan.analysis.dialects import translate
from hotspan.tracer.record import Scope, Trace
from hotspan.tracer.testing import build_trace

MS = 1_000_000
OPERATION = "gen_ai.operation.name"
LANGCHAIN = "opentelemetry.instrumentation.langchain"
RUN = {OPERATION: "invoke_agent", "gen_ai.agent.name": "helper"}
ATTRIBUTES = {
    "invoke_agent helper": RUN,
    "m1": {OPERATION: "chat"},
    "m2": {OPERATION: "chat"},
    "tool": {"traceloop.span.kind": "tool"},
}


def spans(*beside, work=(2, 98), scope=LANGCHAIN):
    """Return a run of 100 ms, and the span beside it that holds two model calls and a tool."""
    start, end = work
    trace = build_trace(
        ("ask", 0, 110 * MS),
        ("invoke_agent helper", 0, 100 * MS, "ask"),
        ("execute_task helper", start * MS, end * MS, "ask"),
        ("m1", 10 * MS, 30 * MS, "execute_task helper"),
        ("tool", 30 * MS, 40 * MS, "execute_task helper"),
        ("m2", 40 * MS, 90 * MS, "execute_task helper"),
        *beside,
        attributes=ATTRIBUTES,
    )
    return [span._replace(scope=Scope(scope)) for span in trace.spans]


def test_what_an_empty_run_did_is_put_below_it():
    """The path goes through the model calls, and not through the run in which nothing happens."""
    report = analyse([Trace("1", spans())])

    assert {row.stage: row.n_calls for row in report.stages if row.stage != "request"} == {
        "agent": 1,
        "generation": 2,
        "tool": 1,
    }
    assert report.unattributed.critical_path_ratio == pytest.approx(30 / 110)
    assert next(row.critical_path_ns for row in report.stages if row.stage == "generation") == 70 * MS


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(spans(work=(2, 80)), id="it-takes-a-part-alone"),
        pytest.param(spans(work=(2, 105)), id="it-goes-on"),
        pytest.param(spans(scope="app"), id="another-writer"),
        pytest.param(spans(("m3", 10 * MS, 20 * MS, "invoke_agent helper")), id="the-run-is-not-empty"),
        pytest.param(
            spans(("execute_task b", 1 * MS, 99 * MS, "ask"), ("c", 10 * MS, 20 * MS, "execute_task b")),
            id="several-could-be-it",
        ),
    ],
)
def test_another_span_stays_where_it_is(written):
    """What only runs at the same time is not what the agent did."""
    assert [span.parent_id for span in translate(written)] == [span.parent_id for span in written]
