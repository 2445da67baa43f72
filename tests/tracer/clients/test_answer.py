"""The state machine of one answer: deltas, merged tool calls, errors; bytes in, no I/O."""

from __future__ import annotations

from typing import Any

import pytest
from servers import DONE, delta, event, message, usage

from hotspan.tracer.clients.answer import Answer, completion, decode_json, error_message
from hotspan.tracer.generation import TokenClock


def read(*events: Any, **options: Any) -> Answer:
    """Return the answer after these events, one nanosecond apart, and the end of the body."""
    answer = Answer(TokenClock(0, framed=True), **options)
    for at_ns, item in enumerate(events):
        answer.feed(at_ns, item if isinstance(item, bytes) else event(item))
    answer.end(len(events))
    return answer


def test_an_answer_is_cut_into_deltas_and_put_together():
    """Deltas carry what the chunks carry, in order; the role and the usage are no deltas."""
    answer = read(
        delta("", role="assistant"), delta("Hel"), delta("lo"), delta(finish="stop"), usage(4, 2), DONE
    )

    assert [(d.text, d.finish_reason) for d in answer.deltas] == [("Hel", None), ("lo", None), ("", "stop")]
    assert (answer.text, answer.finish_reason, answer.over) == ("Hello", "stop", True)
    assert answer.usage["completion_tokens"] == 2


def test_a_usage_chunk_is_shown_to_who_asked_for_it():
    """The chunk that only carries usage is a delta for a consumer who asked for usage himself."""
    answer = read(delta("a", finish="stop"), usage(4, 1), DONE, hide_usage=False)

    assert answer.deltas[-1].raw["usage"]["prompt_tokens"] == 4
    assert answer.deltas[-1].text == ""


def test_only_the_first_answer_is_put_together():
    """With n > 1 each delta says which answer it belongs to, and `text` is the first one's."""
    answer = read(delta("a"), delta("B", index=1), delta("b"), DONE)

    assert answer.text == "ab"
    assert [d.choice for d in answer.deltas] == [0, 1, 0]


def test_nothing_after_the_end_is_read():
    """Events after [DONE] or after an error are no part of the answer."""
    assert read(delta("a"), DONE, delta("b")).text == "a"
    failed = read(delta("a"), {"error": {"message": "no"}}, delta("b"), DONE)
    assert (failed.text, failed.error, failed.tokens.status) == ("a", "no", "error")


def test_a_whole_answer_to_a_streamed_request_is_one_delta():
    """A server that ignores `stream` and sends JSON is read all the same."""
    answer = Answer(TokenClock(0, framed=True))
    data = event(message("Hello"), prefix=b"").strip()
    answer.feed(1, data[:10])
    answer.feed(2, data[10:])
    answer.end(3)

    assert [(d.text, d.finish_reason) for d in answer.deltas] == [("Hello", "stop")]
    assert (answer.tokens.status, answer.tokens.is_whole, answer.tokens.n_chunks) == ("ok", True, 0)


@pytest.mark.parametrize(
    ("fragments", "expected"),
    [
        pytest.param(
            [
                {"index": 1, "id": "b", "function": {"name": "g", "arguments": ""}},
                {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x"'}},
                {"index": 1, "function": {"arguments": "{}"}},
                {"index": 0, "function": {"arguments": ": 1}"}},
            ],
            [("b", "g", "{}"), ("a", "f", '{"x": 1}')],
            id="interleaved-by-index",
        ),
        pytest.param(
            [
                {"id": "a", "function": {"name": "f", "arguments": "{"}},
                {"function": {"arguments": "}"}},
                {"id": "b", "function": {"name": "g", "arguments": "{}"}},
            ],
            [("a", "f", "{}"), ("b", "g", "{}")],
            id="without-index",
        ),
        pytest.param(
            [{"index": 0, "id": "a", "function": {"name": "f", "arguments": {"x": 1}}}],
            [("a", "f", '{"x": 1}')],
            id="arguments-as-object",
        ),
        pytest.param([{"index": 0, "id": "a", "function": None}], [("a", "", "")], id="no-function"),
    ],
)
def test_tool_call_fragments_are_merged(fragments, expected):
    """Fragments of parallel tool calls find their call by index, or by their ids where there is no index."""
    answer = read(*(delta(tool_calls=[f]) for f in fragments), DONE)

    calls = [(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in answer.tool_calls]
    assert calls == expected


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        pytest.param(b"data: {broken\n\n", "{broken", id="half-json"),
        pytest.param(b"data: 7\n\n", "7", id="no-object"),
        pytest.param(b"event: error\ndata: out of memory\n\n", "out of memory", id="named-error-text"),
        pytest.param(
            b'event: error\ndata: {"error": {"message": "oom"}}\n\n', "oom", id="named-error-object"
        ),
        pytest.param(b'data: {"error": "oom"}\n\n', "oom", id="error-text"),
        pytest.param(b'data: {"error": {"code": 500}}\n\n', "500", id="error-without-message"),
    ],
)
def test_an_event_that_is_an_error_or_no_chunk_fails_the_answer(bad, said):
    """What is no chunk is an error that quotes what came."""
    answer = read(delta("a"), bad)

    assert said in answer.error
    assert answer.tokens.status == "error"
    assert [d.text for d in answer.deltas] == ["a"]


def test_odd_json_is_still_json():
    """NaN and lone surrogates, which strict parsers refuse, are read; a broken text is not."""
    assert decode_json(b'{"a": NaN}')["a"] != 0
    assert decode_json(b'{"a": "\\ud83d"}') == {"a": "\ud83d"}
    assert decode_json(b"{") is None
    assert decode_json(b"\xff") is None


def test_engine_figures_are_kept_as_they_came():
    """VLLM's `metrics` and llama.cpp's `timings` are there for whoever wants them."""
    answer = read(
        delta("a", finish="stop"),
        {**usage(4, 1), "metrics": {"queue_time_ms": 3}, "timings": {"cache_n": 2}},
        DONE,
    )

    assert answer.metrics == {"queue_time_ms": 3}
    assert answer.timings == {"cache_n": 2}


def test_a_whole_body_becomes_a_completion():
    """The parts of a response that users ask for are attributes; the rest is in `raw`."""
    tokens = TokenClock(0)
    calls = [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    body = message(None, finish="tool_calls", tool_calls=calls, reasoning_content="hm")

    found = completion(event(body, prefix=b""), tokens, 9)

    assert (found.text, found.reasoning, found.finish_reason) == ("", "hm", "tool_calls")
    assert found.tool_calls == calls
    assert found.raw == body
    assert tokens.usage.output_tokens == 2
    assert tokens.n_chunks == 0


@pytest.mark.parametrize("body", [b"", b"<html>busy</html>", b"[]", b'{"error": "busy"}'])
def test_a_body_that_is_no_answer_is_a_complaint(body):
    """HTML, nothing, or an error with status 200 is returned as what the server said."""
    assert isinstance(completion(body, TokenClock(0), 1), str)


def test_error_messages_are_short_and_on_one_line():
    """A server's own words are quoted, not its whole page."""
    assert error_message({"error": {"message": "a\n  b"}}) == "a b"
    assert len(error_message({"error": "x" * 10_000})) < 400
    assert error_message({"id": "x"}) is None
