"""What a model span tells of its answer: whether it embeds, failed in silence, or was a call at all."""

import pytest

from hotspan.analysis.dialects import makes_no_call, read, translate
from hotspan.tracer import semconv
from hotspan.tracer.record import Scope, SpanRecord
from hotspan.tracer.testing import build_trace

KIND = "openinference.span.kind"
OPERATION = "gen_ai.operation.name"
TYPE = "langfuse.observation.type"
TITAN = "amazon.titan-embed-text-v2:0"
COMPLETES = {OPERATION: "text_completion", "gen_ai.request.model": TITAN}
USAGE = "langfuse.observation.usage_details"
ROLE = {"llm.output_messages.0.message.role": "assistant"}


def span(scope, name, attributes):
    """Return a span of some writer."""
    return SpanRecord("1", "1", None, name, 0, 10, dict(attributes), "client", scope=Scope(scope))


@pytest.mark.parametrize(
    ("scope", "name", "attributes"),
    [
        pytest.param("aws", "x", COMPLETES | {"gen_ai.usage.input_tokens": 3}, id="botocore"),
        pytest.param("aws", "x", COMPLETES | {"gen_ai.usage.output_tokens": 0}, id="openllmetry"),
        pytest.param(
            "openinference.instrumentation.bedrock",
            "bedrock.invoke_model",
            {KIND: "LLM", "llm.model_name": TITAN},
            id="openinference",
        ),
        pytest.param(
            "langfuse-sdk",
            "OpenAI.embeddings",
            {TYPE: "generation", "langfuse.observation.model.name": "e", USAGE: '{"input":3,"output":0}'},
            id="langfuse-by-the-name",
        ),
    ],
)
def test_a_model_call_that_asks_an_embedding_model_is_an_embedding(scope, name, attributes):
    """By its model or its name, where nothing tells of an answer; translated, it still is one."""
    found = span(scope, name, attributes)

    assert read(found) == ("embedding", False)
    assert read(translate([found])[0]).stage == "embedding"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param("chat", {"gen_ai.usage.output_tokens": 4}, id="tokens"),
        pytest.param("chat", {"gen_ai.usage.completion_tokens": 4}, id="tokens-of-old"),
        pytest.param("chat", {"gen_ai.response.finish_reasons": ("stop",)}, id="end"),
        pytest.param("chat", {"output.value": "x"}, id="text"),
        pytest.param("chat", {"gen_ai.request.model": "m"}, id="another-model"),
        pytest.param("answer embedded question", {"gen_ai.request.model": "m"}, id="another-word"),
    ],
)
def test_with_an_answer_it_is_none(name, said):
    """Whoever embeds returns no text; and a model is not one for what it was asked about."""
    assert read(span("aws", name, COMPLETES | said)).stage == "generation"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param(ROLE, True, id="a-role"),
        pytest.param(ROLE | {"llm.output_messages.0.message.content": "x"}, False, id="text"),
        pytest.param(
            ROLE | {"llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "f"},
            False,
            id="a-tool-call",
        ),
    ],
)
def test_a_role_alone_is_no_answer(said, expected):
    """It is written down before the answer comes."""
    found = span("openinference.instrumentation.openai", "chat", {KIND: "LLM"} | said)

    assert makes_no_call(found) is expected


@pytest.mark.parametrize(
    ("scope", "said", "status"),
    [
        pytest.param("pydantic-ai", {OPERATION: "chat", KIND: "LLM", **ROLE}, "ok", id="pydantic-ai"),
        pytest.param(
            "opentelemetry.instrumentation.cohere", {"llm.request.type": "chat"}, "unset", id="cohere"
        ),
    ],
)
def test_a_call_without_an_answer_in_a_run_that_failed_is_what_failed(scope, said, status):
    """The writer ended its span as if nothing had happened; another one, which answered, did not fail.

    run         |------------------| error
    chat          |----|             answered
    chat                 |------|    tells nothing
    """
    trace = build_trace(
        ("r", 0, 90),
        ("c1", 5, 40, "r"),
        ("c2", 50, 85, "r"),
        attributes={"c1": said | {semconv.OUTPUT_TOKENS: 3}, "c2": said},
    )
    run, first, second = (found._replace(scope=Scope(scope), status=status) for found in trace.spans)

    translated = translate([run._replace(status="error"), first, second])

    assert [found.status for found in translated] == ["error", status, "error"]


@pytest.mark.parametrize(
    ("said", "is_cut"),
    [
        pytest.param({"mlflow.spanOutputs": '"<anthropic.Stream object at 0x7f00>"'}, True, id="a-stream"),
        pytest.param({"output.value": "<openai.AsyncStream object at 0x7f00>"}, True, id="an-async-one"),
        pytest.param({"output.value": "<generator object f.<locals>.g at 0x7f00>"}, True, id="a-generator"),
        pytest.param({"langfuse.observation.output": "<async_generator object>"}, True, id="no-address"),
        pytest.param({"output.value": "<anthropic.Message object at 0x7f00>"}, False, id="an-answer"),
        pytest.param({"output.value": "a <generator object> is lazy"}, False, id="a-text"),
    ],
)
def test_a_span_whose_output_is_its_stream_was_cut_short(said, is_cut):
    """It ended when the object was made that the caller then reads."""
    (found,) = translate([span("app", "chat", {OPERATION: "chat"} | said)])

    assert (semconv.CUT_SHORT in found.attributes) is is_cut
