"""The openai client, traced, against a real vLLM server: its calls and the server's spans are one trace."""

import json
import threading

import openai
import pytest

import hotspan
from hotspan.testing import capture
from hotspan.tracer import semconv

pytest.importorskip("vllm")

from hotspan.pipelines.engines import vllm_engine

pytestmark = [pytest.mark.integration, pytest.mark.rag]

ASK = [{"role": "user", "content": "What is a list? " * 20}]
PHASES = (semconv.ENGINE_QUEUE_S, semconv.ENGINE_PREFILL_S, semconv.ENGINE_DECODE_S)
SCHEMA = {
    "type": "object",
    "properties": {"query": {"type": "string", "maxLength": 8}},
    "required": ["query"],
    "additionalProperties": False,
}
PATIENCE_S = 60


@pytest.fixture(scope="module")
def vllm():
    """A running server whose spans come to us."""
    with hotspan.receiver() as receiver, vllm_engine(otlp_endpoint=receiver.endpoint) as engine:
        yield engine


@pytest.fixture
def client(vllm):
    """A traced client of that server."""
    base_url = vllm.base_url.rstrip("/").removesuffix("/v1") + "/v1"
    with openai.OpenAI(base_url=base_url, api_key="none", max_retries=0) as client:
        yield hotspan.trace_openai(client)


def spans_of(captured, n):
    """Return the spans once there are `n`: the server sends its own some time after its answer."""
    tick = threading.Event()
    for _ in range(PATIENCE_S * 20):
        if len(captured.spans) >= n:
            return captured.spans
        tick.wait(0.05)
    pytest.fail(f"{len(captured.spans)} of {n} spans came")
    return []


def joined(captured, n_calls):
    """Return each call with the server's span for it; there must be one for every call."""
    spans = spans_of(captured, 2 * n_calls)
    served = {span.parent_id: span for span in spans if span.name == semconv.VLLM_SPAN_NAME}
    calls = [span for span in spans if span.name != semconv.VLLM_SPAN_NAME]
    assert set(served) == {call.span_id for call in calls}
    assert len(calls) == n_calls
    return [(call, served[call.span_id]) for call in calls]


def test_a_streamed_chat_and_the_servers_span(client):
    """The server's span hangs below the call, its phases fit into it, and both count the same tokens."""
    with capture() as captured:
        answered = client.chat.completions.create(
            model="tiny",
            messages=ASK,
            max_tokens=16,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = list(answered)
        ((call, served),) = joined(captured, 1)

    assert chunks[-1].usage.completion_tokens == call.attributes[semconv.OUTPUT_TOKENS]
    assert served.trace_id == call.trace_id
    assert served.attributes["gen_ai.usage.completion_tokens"] == call.attributes[semconv.OUTPUT_TOKENS]
    assert 0 < sum(served.attributes[phase] for phase in PHASES) * 1e9 <= call.duration_ns
    ordered = [semconv.TTFB_NS, semconv.TTFT_NS, semconv.LAST_TOKEN_NS]
    assert [call.attributes[key] for key in ordered] == sorted(call.attributes[key] for key in ordered)


def test_usage_when_it_is_asked_for(vllm):
    """With `usage=True` the server counts, the chunk stays hidden, and nothing is estimated."""
    base_url = vllm.base_url.rstrip("/").removesuffix("/v1") + "/v1"
    with capture() as captured, openai.OpenAI(base_url=base_url, api_key="none") as plain:
        client = hotspan.trace_openai(plain, usage=True)
        for chunk in client.chat.completions.create(model="tiny", messages=ASK, max_tokens=8, stream=True):
            assert chunk.choices
        ((call, served),) = joined(captured, 1)

    assert call.attributes[semconv.INPUT_TOKENS] == served.attributes["gen_ai.usage.prompt_tokens"]
    assert semconv.TOKENS_ESTIMATED not in call.attributes


def test_every_kind_of_call_joins(client):
    """Whole and streamed, chat, legacy and responses, structured output: all are joined."""
    with capture() as captured:
        client.chat.completions.create(model="tiny", messages=ASK, max_tokens=8)
        list(client.completions.create(model="tiny", prompt="A list", max_tokens=8, stream=True))
        list(client.responses.create(model="tiny", input="A list", max_output_tokens=8, stream=True))
        client.responses.create(model="tiny", input="A list", max_output_tokens=8)
        structured = client.chat.completions.create(
            model="tiny",
            messages=ASK,
            max_tokens=60,
            stream=True,
            response_format={"type": "json_schema", "json_schema": {"name": "search", "schema": SCHEMA}},
        )
        text = "".join(chunk.choices[0].delta.content or "" for chunk in structured)
        calls = [call for call, _ in joined(captured, 5)]

    assert list(json.loads(text)) == ["query"]
    assert {call.status for call in calls} == {"unset"}
    assert {call.attributes[semconv.STAGE] for call in calls} == {"generation"}
    streamed = [call for call in calls if call.attributes[semconv.REQUEST_STREAM]]
    assert len(streamed) == 3
    assert all(call.attributes[semconv.TTFT_NS] > 0 for call in streamed)


def test_the_phases_of_every_call_add_up(client):
    """Queue, prefill and decode are the server's, and the phases of all calls sum to what they took."""
    with capture() as captured:
        for _ in range(4):
            with hotspan.request("ask"):
                list(client.chat.completions.create(model="tiny", messages=ASK, max_tokens=12, stream=True))
        spans = spans_of(captured, 12)
    traces = {span.trace_id: [] for span in spans}
    for span in spans:
        traces[span.trace_id].append(span)
    report = hotspan.analyse([hotspan.Trace(key, found) for key, found in traces.items()])
    generation = report.generation

    assert (generation.n_calls, generation.status["ok"]) == (4, 4)
    assert all(generation.phases_ns[phase] is not None for phase in ("queue", "prefill", "decode"))
    calls = [span for span in spans if span.name == "chat tiny"]
    mean_ns = sum(call.duration_ns for call in calls) / len(calls)
    assert sum(value or 0 for value in generation.phases_ns.values()) == pytest.approx(mean_ns)


def test_a_refusal_is_the_clients_own_exception(client):
    """A prompt over the context: the client's exception with the server's words, one error span."""
    with capture() as captured:
        with pytest.raises(openai.BadRequestError, match="context length"):
            client.chat.completions.create(
                model="tiny", messages=[{"role": "user", "content": "word " * 5000}], max_tokens=5
            )
    (span,) = captured.spans

    assert (span.status, span.attributes[semconv.HTTP_STATUS]) == ("error", 400)
