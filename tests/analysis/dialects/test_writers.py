"""Files without scopes: who wrote a trace, by what its spans look like together."""

import pytest

from hotspan.analysis import analyse
from hotspan.analysis.dialects import read
from hotspan.analysis.dialects.writers import with_writers
from hotspan.tracer.record import Scope, Trace
from hotspan.tracer.testing import build_trace

MS = 1_000_000
FAMILY = "openinference.instrumentation"


def of(kind, **said):
    """Return the attributes of a span of OpenInference's, where `__` stands for a dot."""
    return {"openinference.span.kind": kind} | {key.replace("__", "."): value for key, value in said.items()}


RUN = (
    ("ask", 0, 400),
    ("writer", 10, 390, "ask"),
    ("turn", 20, 380, "writer"),
    ("generation", 30, 370, "turn"),
)
SAID = {
    "ask": of("AGENT"),
    "writer": of("AGENT", agent__name="writer", graph__node__id="writer"),
    "turn": of("CHAIN"),
    "generation": of("LLM", llm__model_name="m", llm__token_count__completion=3),
}


def written(*spans, scope="", attributes, failed=()):
    """Return a trace of one writer, in milliseconds."""
    timed = [(name, start * MS, end * MS, *parent) for name, start, end, *parent in spans]
    trace = build_trace(*timed, attributes=attributes)
    spans = [
        span._replace(scope=Scope(scope), status="error" if span.name in failed else "ok")
        for span in trace.spans
    ]
    return Trace(trace.trace_id, spans)


@pytest.mark.parametrize("scope", [f"{FAMILY}.openai_agents", ""], ids=["with-its-scope", "without"])
def test_the_agents_sdk_is_known_without_its_scope(scope):
    """Its outermost span is written as an agent too, and stays OK when the run fails."""
    report = analyse([written(*RUN, scope=scope, attributes=SAID, failed={"generation"})])
    rows = {row.stage: row.n_calls for row in report.stages}

    assert (rows["agent"], rows["generation"]) == (1, 1)
    assert report.request.n_errors == 1


@pytest.mark.parametrize("scope", [f"{FAMILY}.llama_index", ""], ids=["with-its-scope", "without"])
def test_llama_index_is_known_without_its_scope(scope):
    """The spans around a call that failed are OK: they ended before."""
    trace = written(
        ("Engine.query", 0, 400),
        ("Model.stream_chat", 10, 30, "Engine.query"),
        scope=scope,
        attributes={"Engine.query": of("CHAIN"), "Model.stream_chat": of("LLM", llm__model_name="m")},
        failed={"Model.stream_chat"},
    )

    assert analyse([trace]).request.n_errors == 1


@pytest.mark.parametrize(
    ("changed", "stage"),
    [
        pytest.param({"writer": of("AGENT")}, "agent", id="no-agent-has-a-node"),
        pytest.param({"generation": of("LLM")}, "agent", id="nothing-said-but-the-kind"),
        pytest.param({}, None, id="all-signs"),
    ],
)
def test_every_sign_is_needed(changed, stage):
    """An agent without a name, written by hand, is one."""
    (root, *_) = with_writers(list(written(*RUN, attributes=SAID | changed).spans))

    assert read(root).stage == stage


def test_signs_of_two_are_those_of_none():
    """Two libraries in one trace: whose span is whose cannot be told."""
    both = (*RUN, ("Model.chat", 40, 50, "generation"))
    spans = list(written(*both, attributes=SAID | {"Model.chat": of("LLM", llm__model_name="m")}).spans)

    assert [span.scope.name for span in with_writers(spans)] == [""] * len(both)


def test_what_has_a_scope_keeps_it():
    """A span of the application's own, beside those that lost theirs."""
    spans = list(written(*RUN, attributes=SAID).spans)
    spans[2] = spans[2]._replace(scope=Scope("app"))
    family = f"{FAMILY}.openai_agents"

    assert [span.scope.name for span in with_writers(spans)] == [family, family, "app", family]
