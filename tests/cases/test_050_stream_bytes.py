"""Public defects in reading a stream's bytes: cuts, spellings, errors inside, endings."""

from __future__ import annotations

import itertools

import pytest
from servers import DONE, END, Close, Reset, ScriptedServer, Step, delta, event, head, piece, stream, usage

import hotspan
from hotspan.testing import capture
from hotspan.tracer import semconv
from hotspan.tracer.clients.answer import Answer
from hotspan.tracer.clients.llm import LLMClient
from hotspan.tracer.generation import TokenClock

MESSAGES = [{"role": "user", "content": "Hi"}]
WORDS = "你好 世界 🙂 naïve"


def test_case_050_characters_cut_at_a_chunk_border():
    """A body in segments of one byte gives the exact text, without a replacement character."""
    body = b"".join(event(delta(c)) for c in WORDS) + event(delta(finish="stop")) + DONE
    with ScriptedServer([[head(), *(piece(body[i : i + 1]) for i in range(len(body))), END]]) as server:
        with LLMClient(server.url, model="tiny") as client:
            answer = client.stream(MESSAGES)
            list(answer)

    assert answer.text == WORDS


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_case_051_reads_are_not_events(newline):
    """Any two cuts of a body give the same three chunks, stamped with the reads that completed them."""
    body = b"".join(
        event(delta(w, finish=f), newline=newline) for w, f in (("a", None), ("b", None), ("c", "stop"))
    )
    for first, second in itertools.combinations(range(0, len(body) + 1, 7), 2):
        answer = Answer(TokenClock(0, framed=True))
        for stamp_ns, data in enumerate((body[:first], body[first:second], body[second:])):
            answer.feed(stamp_ns, data)
        answer.end(3)
        assert answer.text == "abc"
        assert sum(answer.tokens.attributes().get(semconv.CHUNK_GAPS_NS, [])) <= 2


def test_case_051_events_of_one_read_share_a_stamp():
    """Two events that came in one segment have a gap of exactly zero, and that is no fault."""
    first, rest = event(delta("a")), event(delta("b")) + event(delta("c"))
    with (
        capture() as captured,
        ScriptedServer([stream(first, rest, event(delta("d", finish="stop")), DONE)]) as server,
    ):
        with LLMClient(server.url, model="tiny") as client:
            for _ in client.stream(MESSAGES):
                pass
    gaps = captured.spans[0].attributes.get(semconv.CHUNK_GAPS_NS, [0])

    assert 0 in gaps
    assert captured.spans[0].status == "unset"


@pytest.mark.parametrize("prefix", [b"data:", b"data: "])
def test_case_053_data_with_and_without_a_space(prefix):
    """The space after `data:` is optional, and content that begins with "data" stays whole."""
    reply = stream(event(delta("data: x", finish="stop"), prefix=prefix), event(b"[DONE]", prefix=prefix))
    with ScriptedServer([reply]) as server, LLMClient(server.url, model="tiny") as client:
        answer = client.stream(MESSAGES)
        list(answer)

    assert (answer.text, answer.status) == ("data: x", "ok")


@pytest.mark.parametrize(
    ("error", "name"),
    [
        pytest.param(event({"error": {"message": "out of memory", "code": 500}}), "500", id="object"),
        pytest.param(event({"error": "out of memory"}), "StreamError", id="text"),
        pytest.param(
            b"event: error\n" + event({"message": "out of memory", "object": "error"}),
            "StreamError",
            id="named",
        ),
        pytest.param(b"event: error\ndata: out of memory\n\n", "StreamError", id="named-plain"),
    ],
)
def test_case_054_an_error_inside_a_200_is_an_error(error, name):
    """The tokens before the error are delivered, then it is raised; the span is an error with its TTFT."""
    with (
        capture() as captured,
        ScriptedServer([stream(event(delta("a")), event(delta("b")), error, DONE)]) as server,
    ):
        with LLMClient(server.url, model="tiny") as client:
            answer = client.stream(MESSAGES)
            seen = []
            with pytest.raises(hotspan.StreamError, match="out of memory"):
                seen.extend(d.text for d in answer)
    span = captured.spans[0]

    assert (answer.text, answer.status) == ("ab", "error")
    assert (span.status, span.attributes[semconv.ERROR_TYPE]) == ("error", name)
    assert semconv.TTFT_NS in span.attributes


def whole(*body: bytes) -> list[Step]:
    """Return a reply whose HTTP framing is right, whatever its events are."""
    return stream(*body)


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(whole(event(delta("a")), event(delta("b"))), id="ends-properly"),
        pytest.param(whole(event(delta("a")), event(delta("b")), event(usage(5, 2))), id="ends-with-usage"),
        pytest.param([head(), piece(event(delta("a")) + event(delta("b"))), Close()], id="connection-closed"),
        pytest.param(
            [head(), piece(event(delta("a")) + event(delta("b"))), b"5\r\nda", Close()], id="closed-in-chunk"
        ),
        pytest.param(
            [head(), piece(event(delta("a")) + event(delta("b")) + b"data: {"), Reset()], id="reset"
        ),
    ],
)
def test_case_055_a_stream_that_just_stops_is_truncated(reply):
    """Without a finish reason and without [DONE] the answer is truncated: raised, and no success."""
    with capture() as captured, ScriptedServer([reply]) as server:
        with LLMClient(server.url, model="tiny") as client:
            answer = client.stream(MESSAGES)
            with pytest.raises(hotspan.StreamError):
                list(answer)
    span = captured.spans[0]

    assert answer.status == "truncated"
    assert (span.status, span.attributes[semconv.OUTCOME]) == ("error", "truncated")


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(whole(event(delta("a", finish="stop"))), id="finish-reason-only"),
        pytest.param(whole(event(delta("a")), DONE), id="done-only"),
        pytest.param(whole(event(delta("a", finish="stop")), b"data: [DONE]"), id="done-without-empty-line"),
        pytest.param([head(), piece(event(delta("a", finish="stop"))), Close()], id="closed-after-the-end"),
    ],
)
def test_case_055_an_end_of_either_kind_is_an_end(reply):
    """A finish reason or [DONE] completes an answer, however the connection ends."""
    with capture() as captured, ScriptedServer([reply]) as server:
        with LLMClient(server.url, model="tiny") as client:
            answer = client.stream(MESSAGES)
            list(answer)

    assert (answer.text, answer.status) == ("a", "ok")
    assert captured.spans[0].status == "unset"


def test_case_105_a_200_without_a_token_is_no_success():
    """An empty stream is truncated, and has no TTFT that could flatter the others."""
    with capture() as captured, ScriptedServer([stream()]) as server:
        with LLMClient(server.url, model="tiny") as client, pytest.raises(hotspan.StreamError):
            list(client.stream(MESSAGES))

    assert captured.spans[0].status == "error"
    assert semconv.TTFT_NS not in captured.spans[0].attributes
