"""Tokens, models and first chunks under other writers' names."""

import pytest

from hotspan.analysis.dialects.first_token import first_of, is_unbelievable
from hotspan.analysis.dialects.usage import model_of, usage_of
from hotspan.tracer import semconv
from hotspan.tracer.record import Event, SpanRecord

MS = 1_000_000
START = 1_700_000_000_000_000_000
CHUNK, TOKEN = semconv.FIRST_CHUNK_NS, semconv.TTFT_NS
IN, OUT, CACHED = semconv.INPUT_TOKENS, semconv.OUTPUT_TOKENS, semconv.CACHED_TOKENS


def span(attributes=(), events=(), length_ms=300):
    """Return a model call that starts at START."""
    return SpanRecord(
        "1", "1", None, "chat", START, START + length_ms * MS, dict(attributes), events=tuple(events)
    )


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"gen_ai.usage.prompt_tokens": 9, "gen_ai.usage.completion_tokens": 2}, {IN: 9, OUT: 2}),
        ({"llm.token_count.prompt": 9, "llm.token_count.completion": 2.0}, {IN: 9, OUT: 2}),
        ({"llm.token_count.prompt_details.cache_read": 4}, {CACHED: 4}),
        ({"gen_ai.usage.input_tokens": "1840"}, {IN: 1840}),
        ({"ai.usage.inputTokens": 9, "ai.usage.promptTokens": 8}, {IN: 9}),
        (
            {"langfuse.observation.usage_details": '{"completion_tokens": 2, "prompt_tokens": 9, "x": null}'},
            {IN: 9, OUT: 2},
        ),
        ({"langfuse.observation.usage_details": '{"input": 12}'}, {IN: 12}),
        ({"mlflow.chat.tokenUsage": '{"input_tokens": 9, "output_tokens": 2}'}, {IN: 9, OUT: 2}),
        (
            {"langsmith.metadata.usage_metadata": '{"input_tokens": 9, "details": {"cache_read": 4}}'},
            {IN: 9, CACHED: 4},
        ),
        (
            {"genkit:output": '{"message": {}, "usage": {"inputTokens": 9, "outputTokens": 2}}'},
            {IN: 9, OUT: 2},
        ),
        ({"langfuse.observation.usage_details": "{broken"}, {}),
        ({"langfuse.observation.usage_details": "[1]"}, {}),
        ({"llm.token_count.prompt": True, "llm.token_count.completion": -1}, {}),
        ({"llm.token_count.prompt": float("nan"), "llm.token_count.completion": float("inf")}, {}),
    ],
)
def test_tokens(attributes, expected):
    """Each spelling is read; what is no count is none."""
    assert dict(usage_of(attributes)) == expected


def test_tokens_under_the_conventions_name_stay():
    """Where the convention's own key has a number, no other one is asked."""
    assert dict(usage_of({IN: 1, "llm.token_count.prompt": 2})) == {}


@pytest.mark.parametrize(
    ("attributes", "model"),
    [
        ({"llm.model_name": "m"}, "m"),
        ({"genkit:name": "vendor/m"}, "vendor/m"),
        ({"embedding.model_name": "m"}, "m"),
        ({"langfuse.observation.model.name": "m"}, "m"),
        ({"mlflow.llm.model": '"m"'}, "m"),
        ({"llm.model_name": "m", "gen_ai.request.model": "n"}, None),
        ({}, None),
    ],
)
def test_models(attributes, model):
    """A model's name is read from the vendors' keys where the convention's has none."""
    assert model_of(attributes) == model


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        pytest.param({"gen_ai.response.time_to_first_chunk": 0.09}, {CHUNK: 90 * MS}, id="seconds"),
        pytest.param({"gen_ai.client.operation.time_to_first_chunk": 0.09}, {CHUNK: 90 * MS}, id="client"),
        pytest.param({"gen_ai.server.time_to_first_token": 90}, {TOKEN: 90 * MS}, id="whole-milliseconds"),
        pytest.param({"gen_ai.server.time_to_first_token": 0.09}, {TOKEN: 90 * MS}, id="fraction-of-seconds"),
        pytest.param({"gen_ai.response.time_to_first_token": 0.09}, {TOKEN: 90 * MS}, id="token-in-seconds"),
        pytest.param({"gen_ai.response.time_to_first_token": 90 * MS}, {TOKEN: 90 * MS}, id="ns-by-size"),
        pytest.param({"gen_ai.response.time_to_first_token": 150}, {TOKEN: 150 * MS}, id="ms-by-size"),
        pytest.param({"gen_ai.response.time_to_first_token": 90.5}, {TOKEN: 90_500_000}, id="ms-fraction"),
        pytest.param({"gen_ai.server.time_to_first_token": 90 * MS}, {TOKEN: 90 * MS}, id="server-in-ns"),
        pytest.param({"gen_ai.server.time_to_first_token": 90.5}, {TOKEN: 90_500_000}, id="server-fraction"),
        pytest.param({"gen_ai.response.time_to_first_token": 400}, {}, id="no-unit-fits"),
        pytest.param({"gen_ai.response.time_to_first_token": 0.5}, {}, id="half-a-second-is-no-half-ms"),
        pytest.param({"ttft_ms": 1e9}, {}, id="longer-than-the-call"),
        pytest.param({"ttft_ms": 1e308, "gen_ai.response.time_to_first_chunk": 1e308}, {}, id="absurd"),
        pytest.param({"ttft_ms": 10**400}, {}, id="no-float-is-as-large"),
        pytest.param({"ttft_ms": 300.4}, {TOKEN: 300 * MS}, id="rounded-to-behind-the-end"),
        pytest.param(
            {"ttft_ms": 1e9, "gen_ai.response.time_to_first_token": 0.09}, {TOKEN: 90 * MS}, id="two"
        ),
        pytest.param(
            {"langfuse.observation.completion_start_time": "2023-11-14T22:14:20Z"}, {}, id="after-the-end"
        ),
        pytest.param({"ai.response.msToFirstChunk": 90.5}, {CHUNK: 90_500_000}, id="vercel"),
        pytest.param({"ttft_ms": 90}, {TOKEN: 90 * MS}, id="milliseconds"),
        pytest.param(
            {"langfuse.observation.completion_start_time": '"2023-11-14T22:13:20.090000Z"'},
            {CHUNK: 90 * MS},
            id="quoted-iso-time",
        ),
        pytest.param(
            {"langfuse.observation.completion_start_time": "2023-11-14T22:13:19Z"}, {}, id="before-the-start"
        ),
        pytest.param({"langfuse.observation.completion_start_time": "soon"}, {}, id="no-time"),
        pytest.param({"ttft_ms": -1, "gen_ai.response.time_to_first_chunk": float("nan")}, {}, id="none"),
        pytest.param({"ttft_ms": b"90", "gen_ai.server.time_to_first_token": True}, {}, id="other-types"),
        pytest.param({"ttft_ms": "90"}, {TOKEN: 90 * MS}, id="as-text"),
        pytest.param({"gen_ai.server.time_to_first_token": "90"}, {TOKEN: 90 * MS}, id="whole-as-text"),
        pytest.param({"ttft_ms": "soon", "gen_ai.response.time_to_first_chunk": "nan"}, {}, id="other-texts"),
        pytest.param({"ttft_ms": "1e999", "gen_ai.response.time_to_first_chunk": "-1"}, {}, id="no-duration"),
    ],
)
def test_the_first_chunk_or_token_in_an_attribute(attributes, expected):
    """A chunk is never taken for a token, and the unit is the writer's."""
    assert dict(first_of(span(attributes))) == expected


@pytest.mark.parametrize("name", semconv.CHUNK_EVENTS)
def test_the_first_of_the_chunk_events(name):
    """The first event counts, also behind the end of a span that ended when the stream was made."""
    events = [Event(name, START + at * MS) for at in (90, 95)]

    assert dict(first_of(span(events=events, length_ms=20))) == {CHUNK: 90 * MS}


def test_a_token_after_the_end_of_its_call_is_not_believed():
    """Of an event, too; one that no attribute contradicts is left out, and known to be."""
    late = span(events=[Event("first_token", START + 400 * MS)])

    assert dict(first_of(late)) == {}
    assert is_unbelievable(late)
    assert not is_unbelievable(span({"ttft_ms": 90}))


def langchain_chunk(at_ms, token, message="{}"):
    """Return the event that MLflow writes of each chunk of a LangChain model's stream."""
    said = {"token": token, "chunk": f'{{"kwargs": {{"message": {{"kwargs": {message}}}}}}}'}
    return Event("new_token", START + at_ms * MS, said)


@pytest.mark.parametrize(
    ("token", "message"),
    [
        pytest.param("Hi", '{"content": "Hi"}', id="text"),
        pytest.param("", '{"tool_call_chunks": [{"name": "search"}]}', id="tool-call"),
        pytest.param("", '{"content": [{"type": "reasoning"}]}', id="blocks"),
        pytest.param("", '{"additional_kwargs": {"reasoning_content": "Hm"}}', id="reasoning"),
    ],
)
def test_langchains_chunks_tell_the_first_token(token, message):
    """The first chunk bears the role alone."""
    events = [
        langchain_chunk(5, "", '{"content": "", "tool_calls": []}'),
        langchain_chunk(90, token, message),
    ]

    assert dict(first_of(span(events=events))) == {CHUNK: 5 * MS, TOKEN: 90 * MS}


@pytest.mark.parametrize("message", ["{", "3", '{"content": 3, "additional_kwargs": []}'])
def test_langchains_chunk_of_any_shape_bears_no_token(message):
    """What is no message is passed over."""
    assert dict(first_of(span(events=[langchain_chunk(5, "", message)]))) == {CHUNK: 5 * MS}


def mlflow_chunk(at_ms, text):
    """Return MLflow's event of one chunk of a stream."""
    return Event(f"mlflow.chunk.item.{at_ms}", START + at_ms * MS, {"mlflow.chunk.value": text})


@pytest.mark.parametrize(
    "delta", ['{"content": "Hi"}', '{"reasoning_content": "Hm"}', '{"tool_calls": [{"index": 0}]}']
)
def test_chunks_that_are_in_the_events_tell_the_first_token(delta):
    """MLflow writes each chunk down: the first that bears a token is known, and is not the first."""
    events = [
        mlflow_chunk(5, '{"choices": [{"delta": {"role": "assistant", "content": ""}}]}'),
        mlflow_chunk(90, f'{{"choices": [{{"delta": {delta}}}]}}'),
        mlflow_chunk(95, "{broken"),
    ]

    assert dict(first_of(span(events=events))) == {CHUNK: 5 * MS, TOKEN: 90 * MS}


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"choices": 3}', '{"choices": [{"delta": 1}]}', '{"choices": []}']
)
def test_a_chunk_of_any_shape_bears_no_token(text):
    """What is no chunk of a chat is passed over."""
    assert dict(first_of(span(events=[mlflow_chunk(5, text)]))) == {CHUNK: 5 * MS}


@pytest.mark.parametrize(
    ("attributes", "events"),
    [
        ({"gen_ai.response.time_to_first_token": 0.0}, ()),
        ({"gen_ai.server.time_to_first_token": 0}, ()),
        ({"ttft_ms": 0}, ()),
        ({"ttft_ms": "0"}, ()),
        ({"gen_ai.response.time_to_first_chunk": 0.0}, ()),
        ({"gen_ai.client.operation.time_to_first_chunk": 0}, ()),
        ({"ai.response.msToFirstChunk": 0}, ()),
        ({"langfuse.observation.completion_start_time": "2023-11-14T22:13:20Z"}, ()),
        ({}, (Event("gen_ai.content.completion.chunk", START),)),
        ({}, (Event("first_token", START),)),
    ],
)
def test_nothing_comes_after_0_ms(attributes, events):
    """Writers say 0 of what they did not see; it is not believed, and counted as that."""
    assert dict(first_of(span(attributes, events))) == {}
    assert is_unbelievable(span(attributes, events))
