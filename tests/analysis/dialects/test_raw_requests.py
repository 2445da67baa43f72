"""LiteLLM's callback: raw requests below a span of the application, which it wrote the last call onto."""

import pytest

from hotspan.analysis import analyse
from hotspan.analysis.dialects import read, translate
from hotspan.tracer import semconv
from hotspan.tracer.record import Scope, Trace
from hotspan.tracer.testing import build_trace

RAW = "raw_gen_ai_request"
WRITTEN = {
    "gen_ai.operation.name": "chat",
    "llm.request.type": "completion",
    "gen_ai.request.model": "tiny",
    "gen_ai.usage.input_tokens": 10,
    "gen_ai.usage.output_tokens": 8,
}
EMBED = {"llm.None.model": "emb", "llm.None.input": "['a text']", "llm.None.encoding_format": "float"}
RANK = {"llm.None.model": "rr", "llm.None.results": "[{'index': 0}]", "llm.None.usage": "{'total_tokens': 5}"}
CHAT = {
    "llm.openai.model": "tiny",
    "llm.openai.id": "chatcmpl-1",
    "llm.openai.messages": "[{'role': 'user'}]",
    "llm.openai.usage": "{'completion_tokens': 8, 'prompt_tokens': 10, 'total_tokens': 18}",
}


def written(host, *requests, host_scope="app", host_name="POST /ask"):
    """Return a trace of a span with attributes, and raw requests one after another below it."""
    names = [f"{RAW} {number}" for number in range(len(requests))]
    trace = build_trace(
        (host_name, 0, 100),
        *((name, 10 * number, 10 * number + 9, host_name) for number, name in enumerate(names)),
        attributes={host_name: host, **dict(zip(names, requests, strict=True))},
    )
    return [
        span._replace(scope=Scope(host_scope))
        if span.name == host_name
        else span._replace(scope=Scope("litellm"), name=RAW)
        for span in trace.spans
    ]


@pytest.mark.parametrize(
    ("fields", "stage"),
    [
        pytest.param(EMBED, "embedding", id="embedding"),
        pytest.param(RANK, "rerank", id="rerank"),
        pytest.param(CHAT, "generation", id="chat"),
        pytest.param({"llm.openai.input": "hi", "llm.openai.output": "[]"}, "generation", id="responses-api"),
        pytest.param({}, "generation", id="a-stream-tells-nothing"),
    ],
)
def test_what_a_raw_request_was_for_is_told_by_its_fields(fields, stage):
    """The provider's own fields, whatever the provider is called."""
    *_, request = translate(written(WRITTEN, CHAT, fields))

    assert read(request).stage == stage


def test_calls_below_an_applications_span_are_counted_there():
    """The application's span is the request around its calls, and not the last of them."""
    report = analyse([Trace("1", written(WRITTEN, EMBED, RANK, CHAT, CHAT))])

    assert {row.stage: row.n_calls for row in report.stages} == {
        "request": 1,
        "embedding": 1,
        "rerank": 1,
        "generation": 2,
    }
    assert (report.generation.tokens.prompt, report.generation.tokens.output) == (20, 16)


def test_the_only_request_below_a_span_has_what_was_written_onto_it():
    """A stream's raw request is empty; the model and the tokens are on the span around it."""
    host, request = translate(written(WRITTEN, {}))

    assert host.attributes == {}
    assert request.attributes[semconv.REQUEST_MODEL] == "tiny"
    assert request.attributes[semconv.OUTPUT_TOKENS] == 8


def test_the_only_request_is_not_what_a_call_without_one_wrote():
    """A chat that failed has no raw request: the embedding before it stays one."""
    _, request = translate(written(WRITTEN, EMBED))

    assert read(request).stage == "embedding"
    assert semconv.OUTPUT_TOKENS not in request.attributes


@pytest.mark.parametrize(("kind", "stage"), [("embedding", "embedding"), ("completion", "generation")])
def test_a_raw_request_below_litellms_own_span_is_the_same_call(kind, stage):
    """`litellm_request` says what it was, and has the tokens."""
    said = WRITTEN | {"llm.request.type": kind}
    spans = written(said, {}, host_scope="litellm", host_name="litellm_request")
    report = analyse([Trace("1", spans)])

    assert {row.stage: row.n_calls for row in report.stages} == {stage: 1}


def test_a_span_that_says_its_stage_keeps_what_was_written():
    """Only what LiteLLM made look like a call is taken back."""
    kept = {"hotspan.stage": "agent", "gen_ai.agent.name": "a", "gen_ai.operation.name": "invoke_agent"}

    host, *_ = translate(written(kept, CHAT, CHAT))

    assert host.attributes == kept


@pytest.mark.parametrize(
    ("kind", "inside", "stages"),
    [
        pytest.param("internal", [], {"generation"}, id="a-span-around-the-call-alone-is-the-call"),
        pytest.param("internal", [("retrieve", 0, 20, "answer")], {"request", "retrieval"}, id="a-pipeline"),
        pytest.param("server", [], set(), id="a-server"),
    ],
)
def test_calls_without_raw_requests_are_missed_and_not_made_up(kind, inside, stages):
    """With content switched off, LiteLLM leaves what it wrote onto the application's span alone."""
    said = WRITTEN | {"litellm.call_id": "1"}
    trace = build_trace(("answer", 0, 100), *inside, attributes={"answer": said})
    spans = [span._replace(scope=Scope("app"), kind=kind) for span in trace.spans]
    report = analyse([Trace("1", spans)])

    assert {row.stage for row in report.stages} == stages
    missed = any("a library wrote its model calls onto" in warning for warning in report.evidence.warnings)
    assert missed is ("generation" not in stages)
