"""Public defects in what counts as a token and when it came; bytes as the server sent them, exact stamps."""

from __future__ import annotations

import time
from typing import Any

import pytest
from servers import DONE, Pause, ScriptedServer, at_once, delta, event, message, stream, usage
from servers import answer as reply

from hotspan.testing import capture
from hotspan.tracer import semconv
from hotspan.tracer.clients.answer import Answer
from hotspan.tracer.clients.llm import LLMClient
from hotspan.tracer.generation import TokenClock

MS = 1_000_000
MESSAGES = [{"role": "user", "content": "Hi"}]


def replay(*events: tuple[float, Any], end_ms: float | None = None) -> dict[str, Any]:
    """Return the attributes of a stream whose events came at so many ms after the send, times in ms."""
    answer = Answer(TokenClock(0, framed=True))
    for at_ms, item in events:
        answer.feed(round(at_ms * MS), item if isinstance(item, bytes) else event(item))
    answer.end(round((end_ms or events[-1][0]) * MS))
    found = dict(answer.tokens.attributes())
    for key, value in found.items():
        if key.endswith("_ns") and key != semconv.CHUNK_GAPS_NS:
            found[key] = value / MS
    found[semconv.CHUNK_GAPS_NS] = [gap / MS for gap in found.get(semconv.CHUNK_GAPS_NS, [])]
    found["status"] = answer.tokens.status
    return found


def test_case_030_a_role_chunk_is_no_token():
    """TTFB is the role chunk's time, TTFT the first word's, and no gap begins before the first word."""
    found = replay(
        (5, delta("", role="assistant")),
        (100, delta("")),
        (214, delta("Hi")),
        (230, delta("!", finish="stop")),
        (231, DONE),
    )

    assert found[semconv.TTFB_NS] == 5
    assert found[semconv.TTFT_NS] == 214
    assert found[semconv.CHUNK_GAPS_NS] == [16]


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content"])
def test_case_031_reasoning_is_tokens_but_no_answer(key):
    """Thinking counts for TTFT and TPOT, in both spellings; the first answer token is timed apart."""
    found = replay(
        (50, delta(**{key: "hm"})),
        (475, delta(**{key: "so"})),
        (900, delta("Yes", finish="stop")),
        (901, usage(5, 3, completion_tokens_details={"reasoning_tokens": 2})),
        (902, DONE),
    )

    assert (found[semconv.TTFT_NS], found[semconv.TTFA_NS]) == (50, 900)
    assert found[semconv.TPOT_NS] == 425
    assert (found[semconv.OUTPUT_TOKENS], found[semconv.REASONING_TOKENS]) == (3, 2)


def test_case_032_a_turn_of_tool_calls_has_a_ttft():
    """The first fragment of a tool call is the first token; that there is no answer token is no fault."""
    found = replay(
        (5, delta(role="assistant")),
        (60, delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}])),
        (80, delta(tool_calls=[{"index": 0, "function": {"arguments": "{}"}}])),
        (81, delta(finish="tool_calls")),
        (81, DONE),
    )

    assert found[semconv.TTFT_NS] == 60
    assert semconv.TTFA_NS not in found
    assert found[semconv.LAST_TOKEN_NS] == 80
    assert found["status"] == "ok"


def test_case_033_ttft_is_the_first_delta_not_the_last():
    """Later deltas leave TTFT alone."""
    assert (
        replay((100, delta("a")), (200, delta("b")), (300, delta("c", finish="stop")))[semconv.TTFT_NS] == 100
    )


def test_case_034_no_token_is_no_ttft():
    """A stream without a token has no TTFT: not zero, not a time before the send."""
    found = replay((5, delta(role="assistant")), (40, delta(finish="stop")), (41, usage(5, 0)), (41, DONE))

    for key in (semconv.TTFT_NS, semconv.TTFA_NS, semconv.TPOT_NS, semconv.LAST_TOKEN_NS, semconv.CHUNKS):
        assert key not in found
    assert found[semconv.TTFB_NS] == 5


def test_case_035_an_answer_in_one_read_is_called_buffered():
    """When everything came in one segment, there is a TTFT, and no speed is claimed from gaps of zero."""
    body = [event(delta(word)) for word in "abcd"] + [event(delta(finish="stop")), event(usage(5, 4)), DONE]
    with capture() as captured, ScriptedServer([at_once(*body)]) as server:
        with LLMClient(server.url, model="tiny") as client:
            assert [d.text for d in client.stream(MESSAGES) if d.text] == list("abcd")
    found = captured.spans[0].attributes

    assert found[semconv.BUFFERED] is True
    assert (
        found[semconv.TTFT_NS]
        == found[semconv.TTFB_NS]
        == found[semconv.LAST_TOKEN_NS]
        == found[semconv.HEADERS_NS]
    )
    assert semconv.TPOT_NS not in found
    assert semconv.CHUNK_GAPS_NS not in found


def test_case_036_the_usage_chunk_is_outside_the_decode_window():
    """A usage chunk long after the last word moves neither last token nor TPOT; reasoning is not added."""
    found = replay(
        (10, delta("a")),
        (30, delta("b", finish="stop")),
        (280, usage(5, 2, completion_tokens_details={"reasoning_tokens": 1})),
        (280, DONE),
    )

    assert found[semconv.LAST_TOKEN_NS] == 30
    assert found[semconv.TPOT_NS] == 20
    assert found[semconv.OUTPUT_TOKENS] == 2


def test_case_036_any_success_status_is_a_success():
    """An answer with status 201 is an answer."""
    with capture() as captured, ScriptedServer([reply(message(), "201 Created")]) as server:
        with LLMClient(server.url, model="tiny") as client:
            assert client.chat(MESSAGES).text == "Hi"

    assert captured.spans[0].status == "unset"


def test_case_037_chunks_are_not_tokens():
    """Ten chunks of three tokens: gaps are per chunk, TPOT is per token, under different names."""
    found = replay(
        *((100 + 45 * i, delta("abc", finish="stop" if i == 9 else None)) for i in range(10)),
        (510, usage(5, 30)),
        (510, DONE),
    )

    assert found[semconv.CHUNK_GAPS_NS] == [45] * 9
    assert found[semconv.TPOT_NS] == pytest.approx(405 / 29)
    assert (found[semconv.CHUNKS], found[semconv.OUTPUT_TOKENS]) == (10, 30)


@pytest.mark.parametrize(
    ("n_tokens", "tpot_ms"),
    [pytest.param(0, None, id="none"), pytest.param(1, None, id="one"), pytest.param(2, 25, id="two")],
)
def test_case_039_tpot_needs_two_tokens(n_tokens, tpot_ms):
    """TPOT is null for fewer than two tokens; for two it is the second's time after the first."""
    tokens = [(100 + 25 * i, delta("x")) for i in range(n_tokens)]
    found = replay(*tokens, (300, delta(finish="stop")), (300, usage(5, n_tokens)), (301, DONE))

    assert found.get(semconv.TPOT_NS) == tpot_ms


def test_case_039_a_whole_answer_has_no_tpot():
    """A call that was not streamed has no token times at all."""
    with capture() as captured, ScriptedServer([reply(message())]) as server:
        with LLMClient(server.url, model="tiny") as client:
            client.chat(MESSAGES)
    found = captured.spans[0].attributes

    assert not {semconv.TTFT_NS, semconv.TPOT_NS, semconv.CHUNK_GAPS_NS, semconv.CHUNKS} & set(found)
    assert found[semconv.OUTPUT_TOKENS] == 2


def test_case_040_the_server_counts_its_tokens():
    """Blanks are tokens; the count is the server's, or marked as estimated, never made from the text."""
    spaces = [(10 * i, delta(" ")) for i in range(1, 8)]
    counted = replay(*spaces, (80, delta(finish="stop")), (80, usage(5, 7)), (80, DONE))
    guessed = replay(*spaces, (80, delta(finish="stop")), (80, DONE))

    assert counted[semconv.OUTPUT_TOKENS] == 7
    assert semconv.TOKENS_ESTIMATED not in counted
    assert (guessed[semconv.OUTPUT_TOKENS], guessed[semconv.TOKENS_ESTIMATED]) == (7, True)


def test_case_045_usage_that_disagrees_is_marked():
    """A server that counts 0 tokens for one chunk gives no TPOT, no error, and a mark."""
    found = replay((10, delta("x", finish="length")), (11, usage(5, 0)), (11, DONE))

    assert found[semconv.OUTPUT_TOKENS] == 0
    assert found[semconv.USAGE_DISAGREES] is True
    assert semconv.TPOT_NS not in found


def test_case_029_a_streamed_call_starts_when_it_is_sent():
    """The span of a streamed call begins before its first chunk and is as long as the stream."""
    steps = [Pause(0.2), event(delta("a")), Pause(0.1), event(delta("b", finish="stop")), DONE]
    with capture() as captured, ScriptedServer([stream(*steps)]) as server:
        with LLMClient(server.url, model="tiny") as client:
            begun = time.perf_counter_ns()
            list(client.stream(MESSAGES))
            took_ns = time.perf_counter_ns() - begun
    span = captured.spans[0]

    assert 300 * MS <= span.duration_ns <= took_ns
    assert 200 * MS <= span.attributes[semconv.TTFT_NS] < span.attributes[semconv.LAST_TOKEN_NS]
    assert span.attributes[semconv.LAST_TOKEN_NS] >= 300 * MS
