"""Public defects around usage: where it rides, how often it counts, who sees it."""

from __future__ import annotations

import gc

import pytest
from servers import DONE, ScriptedServer, answer, delta, event, message, stream, usage

from hotspan.testing import capture
from hotspan.tracer import semconv
from hotspan.tracer.clients.llm import LLMClient

MESSAGES = [{"role": "user", "content": "Hi"}]


def attributes_of(*events: object, **options: object) -> dict:
    """Return the attributes of one streamed call that was answered with these events."""
    body = [item if isinstance(item, bytes) else event(item) for item in events]
    with capture() as captured, ScriptedServer([stream(*body)]) as server:
        with LLMClient(server.url, model="tiny", **options) as client:
            list(client.stream(MESSAGES))
    return dict(captured.spans[0].attributes)


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(usage(5, 7), id="empty-choices"),
        pytest.param({"usage": {"prompt_tokens": 5, "completion_tokens": 7}}, id="no-choices"),
        pytest.param({**delta(), "usage": {"prompt_tokens": 5, "completion_tokens": 7}}, id="with-choices"),
    ],
)
def test_case_041_042_usage_is_found_in_any_chunk(last):
    """Usage counts in a chunk with empty, missing or full choices, and null usage elsewhere is nothing."""
    found = attributes_of(
        {**delta("a"), "usage": None}, {**delta("b", finish="stop"), "usage": None}, last, DONE
    )

    assert (found[semconv.INPUT_TOKENS], found[semconv.OUTPUT_TOKENS]) == (5, 7)


def test_case_042_several_finish_reasons():
    """With n > 1 every answer's finish reason is kept, and their token times stay apart."""
    found = attributes_of(
        delta("a"),
        delta("A", index=1),
        delta("b", finish="stop"),
        delta("B", index=1, finish="length"),
        usage(5, 4),
        DONE,
    )

    assert found[semconv.FINISH_REASONS] == ["stop", "length"]
    assert found[semconv.CHUNKS] == 4


def test_case_044_a_stream_ends_once():
    """Exhausting, closing twice and dropping a stream make one span with its usage once."""
    with (
        capture() as captured,
        ScriptedServer([stream(event(delta("a", finish="stop")), event(usage(5, 1)), DONE)]) as server,
    ):
        with LLMClient(server.url, model="tiny") as client:
            answered = client.stream(MESSAGES)
            list(answered)
            answered.close()
            answered.close()
            assert list(answered) == []
            del answered
            gc.collect()

    assert [span.attributes[semconv.OUTPUT_TOKENS] for span in captured.spans] == [1]


def test_case_046_the_usage_chunk_is_hidden_from_who_did_not_ask():
    """Usage is asked for by this client, and the chunk with no choices reaches only a consumer who asked."""
    reply = stream(event(delta("a", finish="stop")), event(usage(5, 1)), DONE)
    with ScriptedServer([reply]) as server, LLMClient(server.url, model="tiny") as client:
        hidden = client.stream(MESSAGES)
        assert [d.raw["choices"][0]["finish_reason"] for d in hidden] == ["stop"]
        assert hidden.usage["completion_tokens"] == 1
        shown = list(client.stream(MESSAGES, stream_options={"include_usage": True}))
        assert shown[-1].raw["usage"]["completion_tokens"] == 1
        with LLMClient(server.url, model="tiny", usage=False) as plain:
            list(plain.stream(MESSAGES))

    assert [request.json.get("stream_options") for request in server.requests] == [
        {"include_usage": True},
        {"include_usage": True},
        None,
    ]


LLAMA_TIMINGS = {
    "prompt_n": 1,
    "cache_n": 236,
    "prompt_ms": 31.0,
    "prompt_per_second": 32.2,
    "predicted_n": 4,
}


def test_case_059_timings_leave_out_cached_tokens():
    """llama.cpp's `prompt_n` is without the cached tokens: the prompt is both, and no rate is made of it."""
    found = attributes_of(
        delta("a"), delta(finish="stop"), {"choices": [], "timings": LLAMA_TIMINGS}, DONE, usage=False
    )

    assert (found[semconv.INPUT_TOKENS], found[semconv.CACHED_TOKENS], found[semconv.OUTPUT_TOKENS]) == (
        237,
        236,
        4,
    )
    assert not [key for key in found if "per_second" in key]


def test_case_059_timings_of_a_whole_answer():
    """The same object in an answer that was not streamed is kept raw, and its usage goes before it."""
    with capture() as captured, ScriptedServer([answer({**message(), "timings": LLAMA_TIMINGS})]) as server:
        with LLMClient(server.url, model="tiny") as client:
            completion = client.chat(MESSAGES)

    assert completion.timings == LLAMA_TIMINGS
    assert captured.spans[0].attributes[semconv.INPUT_TOKENS] == 5
