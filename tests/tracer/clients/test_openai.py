"""`trace_openai` over real sockets: what is recorded of each kind of call, and what is sent."""

from __future__ import annotations

import openai
import pytest
from openai_drivers import texts
from servers import (
    DONE,
    END,
    Pause,
    ScriptedServer,
    answer,
    at_once,
    delta,
    event,
    head,
    message,
    piece,
    stream,
    usage,
)

from hotspan.testing import capture
from hotspan.tracer import semconv

HELLO = stream(
    event(delta("", role="assistant")), event(delta("Hel")), event(delta("lo", finish="stop")), DONE
)
VECTORS = answer(
    {
        "object": "list",
        "model": "mini",
        "data": [{"object": "embedding", "index": 0, "embedding": [0.5, -1.5]}],
        "usage": {"prompt_tokens": 3, "total_tokens": 3},
    }
)
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "tiny",
    "status": "completed",
    "output": [
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Hello", "annotations": []}],
        }
    ],
    "parallel_tool_calls": False,
    "tool_choice": "auto",
    "tools": [],
    "usage": {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens": 6,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 15,
    },
}

FAILED = {**RESPONSE, "status": "failed", "error": {"code": "server_error", "message": "no"}}
CUT = {**RESPONSE, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}


def response_events(*events: dict) -> list:
    """Return the reply that streams these events of the Responses API."""
    return stream(*(b"event: " + e["type"].encode() + b"\n" + event(e) for e in events))


# --- Kinds of calls ----------------------------------------------------------------------------------------


def test_a_streamed_chat(connect_openai):
    """One generation span with the request, the server, the tokens' times and the way of consuming."""
    with capture() as captured, ScriptedServer([HELLO]) as server:
        chunks = connect_openai(server).take(temperature=0.5, max_tokens=7)
    (span,) = captured.spans
    found = span.attributes

    assert texts(chunks) == ["", "Hel", "lo"]
    assert (span.name, span.kind, span.status) == ("chat tiny", "client", "unset")
    assert found[semconv.STAGE] == "generation"
    assert found[semconv.PROVIDER] == "openai-compatible"
    assert (found[semconv.REQUEST_STREAM], found[semconv.REQUEST_MAX_TOKENS]) == (True, 7)
    assert (found[semconv.SERVER_ADDRESS], found[semconv.SERVER_PORT]) == ("127.0.0.1", server.port)
    assert (found[semconv.ATTEMPTS], found[semconv.HTTP_STATUS]) == (1, 200)
    assert (found[semconv.CHUNKS], found[semconv.STREAM_ITEMS]) == (2, 3)
    assert found[semconv.TOKENS_ESTIMATED] is True
    assert found[semconv.FINISH_REASONS] == ["stop"]
    assert (found[semconv.RESPONSE_ID], found[semconv.RESPONSE_MODEL]) == ("chatcmpl-1", "tiny")
    ordered = [semconv.HEADERS_NS, semconv.TTFB_NS, semconv.TTFT_NS, semconv.LAST_TOKEN_NS]
    assert [found[key] for key in ordered] == sorted(found[key] for key in ordered)
    assert found[semconv.SEND_OFFSET_NS] + found[semconv.LAST_TOKEN_NS] <= span.duration_ns
    assert found[semconv.STREAM_BUSY_NS] + found[semconv.STREAM_HOLD_NS] <= span.duration_ns


def test_a_whole_chat(connect_openai):
    """An answer that was not streamed has usage, and no token times."""
    with capture() as captured, ScriptedServer([answer(message("Hello"))]) as server:
        answered = connect_openai(server).chat()
    (span,) = captured.spans

    assert answered.choices[0].message.content == "Hello"
    assert span.attributes[semconv.REQUEST_STREAM] is False
    assert (span.attributes[semconv.INPUT_TOKENS], span.attributes[semconv.OUTPUT_TOKENS]) == (5, 2)
    assert span.attributes[semconv.HEADERS_NS] > 0
    assert not {semconv.TTFT_NS, semconv.TPOT_NS, semconv.STREAM_ITEMS} & set(span.attributes)


def test_embeddings_are_of_the_embedding_stage(connect_openai):
    """An embedding call is its own stage, with its tokens and without its vectors."""
    with capture() as captured, ScriptedServer([VECTORS]) as server:
        answered = connect_openai(server).call("embeddings.create", model="mini", input=["x"])
    (span,) = captured.spans

    assert answered.data[0].embedding == [0.5, -1.5]
    assert (span.name, span.attributes[semconv.STAGE]) == ("embeddings mini", "embedding")
    assert span.attributes[semconv.OPERATION] == "embeddings"
    assert span.attributes[semconv.INPUT_TOKENS] == 3
    assert not {semconv.OUTPUT_TOKENS, semconv.REQUEST_STREAM} & set(span.attributes)


@pytest.mark.parametrize(
    ("given", "n_texts"),
    [
        pytest.param("a text", 1, id="text"),
        pytest.param(["a", "b", "c"], 3, id="texts"),
        pytest.param([1, 2, 3], 1, id="tokens-of-one"),
        pytest.param([[1, 2], [3]], 2, id="tokens-of-two"),
    ],
)
def test_an_embedding_call_says_how_many_texts_it_has(connect_openai, given, n_texts):
    """Calls of many texts are not to be taken for texts sent one by one; a list of numbers is one text."""
    with capture() as captured, ScriptedServer([VECTORS]) as server:
        connect_openai(server).call("embeddings.create", model="mini", input=given)

    assert captured.spans[0].attributes[semconv.BATCH_SIZE] == n_texts


@pytest.mark.parametrize("streamed", [True, False])
def test_legacy_completions(connect_openai, streamed):
    """Text completions carry their text on the choice itself."""
    body = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "tiny"}
    whole = {**body, "choices": [{"index": 0, "text": "ab", "finish_reason": "stop", "logprobs": None}]}
    chunks = [
        {**body, "choices": [{"index": 0, "text": t, "finish_reason": f, "logprobs": None}]}
        for t, f in (("a", None), ("b", None), ("c", None), ("", "stop"))
    ]
    reply = stream(*map(event, chunks), DONE) if streamed else answer(whole)
    with capture() as captured, ScriptedServer([reply]) as server:
        driver = connect_openai(server)
        if streamed:
            assert len(driver.gather("completions.create", model="tiny", prompt="x")) == 4
        else:
            assert driver.call("completions.create", model="tiny", prompt="x").choices[0].text == "ab"
    (span,) = captured.spans

    assert span.name == "text_completion tiny"
    assert span.attributes.get(semconv.CHUNKS) == (3 if streamed else None)
    assert span.attributes[semconv.FINISH_REASONS] == ["stop"]


def test_a_whole_response(connect_openai):
    """The Responses API's usage, with its cached and reasoning parts."""
    with capture() as captured, ScriptedServer([answer(RESPONSE)]) as server:
        answered = connect_openai(server).call("responses.create", model="tiny", input="Hi")
    found = captured.spans[0].attributes

    assert answered.output_text == "Hello"
    assert (captured.spans[0].name, found[semconv.STAGE]) == ("chat tiny", "generation")
    keys = (semconv.INPUT_TOKENS, semconv.CACHED_TOKENS, semconv.OUTPUT_TOKENS, semconv.REASONING_TOKENS)
    assert [found[key] for key in keys] == [9, 4, 6, 2]
    assert found[semconv.FINISH_REASONS] == ["stop"]


RESPONSE_EVENTS = [
    {"type": "response.created", "sequence_number": 0, "response": {**RESPONSE, "status": "in_progress"}},
    {
        "type": "response.reasoning_text.delta",
        "sequence_number": 1,
        "item_id": "r",
        "output_index": 0,
        "content_index": 0,
        "delta": "so",
    },
    *(
        {
            "type": "response.output_text.delta",
            "sequence_number": n,
            "item_id": "m",
            "output_index": 1,
            "content_index": 0,
            "delta": text,
            "logprobs": [],
        }
        for n, text in ((2, "Hel"), (3, "lo"))
    ),
    {"type": "response.completed", "sequence_number": 4, "response": RESPONSE},
]


def test_a_streamed_response(connect_openai):
    """Reasoning and text deltas are tokens; the last event has usage and says that the answer is whole."""
    early, late = response_events(*RESPONSE_EVENTS[:2]), response_events(*RESPONSE_EVENTS[2:])
    reply = [*early[:-1], Pause(0.05), *late[1:]]
    with capture() as captured, ScriptedServer([reply]) as server:
        driver = connect_openai(server)
        for _ in range(2):  # the first one makes the client build its classes, for longer than the pause
            events = driver.gather("responses.create", model="t", input="x")
    span = captured.spans[1]
    found = span.attributes

    assert events[-1].type == "response.completed"
    assert (span.status, found[semconv.FINISH_REASONS], found[semconv.OUTPUT_TOKENS]) == (
        "unset",
        ["stop"],
        6,
    )
    assert (found[semconv.CHUNKS], found[semconv.STREAM_ITEMS]) == (3, 5)
    assert found[semconv.TTFA_NS] >= max(50_000_000, found[semconv.TTFT_NS])


@pytest.mark.parametrize(
    ("last", "status", "name"),
    [
        pytest.param({"type": "response.failed", "response": FAILED}, "error", "server_error", id="failed"),
        pytest.param(
            {"type": "response.failed", "response": {**FAILED, "error": None}},
            "error",
            "finish_reason",
            id="failed-without-a-name",
        ),
        pytest.param({"type": "error", "code": "x", "message": "no"}, "error", "x", id="error"),
        pytest.param({"type": "response.incomplete", "response": CUT}, "unset", None, id="token-limit"),
    ],
)
def test_a_response_that_failed_is_an_error(connect_openai, last, status, name):
    """A stream that ends well and says that the model failed is no success; one cut by a limit is."""
    reply = response_events(RESPONSE_EVENTS[0], {"sequence_number": 1, **last})
    with capture() as captured, ScriptedServer([reply]) as server:
        connect_openai(server).gather("responses.create", model="t", input="x")

    assert captured.spans[0].status == status
    assert captured.spans[0].attributes.get(semconv.ERROR_TYPE) == name


def test_a_whole_response_that_failed_has_the_servers_name(connect_openai):
    """The client returns it as any other; the span is an error by the code in it."""
    with capture() as captured, ScriptedServer([answer(FAILED)]) as server:
        connect_openai(server).call("responses.create", model="t", input="x")

    assert captured.spans[0].status == "error"
    assert captured.spans[0].attributes[semconv.ERROR_TYPE] == "server_error"


def test_other_requests_are_left_alone(connect_openai):
    """Listing models is no model call."""
    listing = answer(
        {"object": "list", "data": [{"id": "tiny", "object": "model", "created": 1, "owned_by": "x"}]}
    )
    with capture() as captured, ScriptedServer([listing]) as server:
        assert connect_openai(server).call("models.retrieve", model="tiny") is not None

    assert captured.spans == []
    assert "traceparent" not in server.requests[0].headers


# --- Token times -------------------------------------------------------------------------------------------


def test_the_role_is_no_token(connect_openai):
    """TTFB is the role's chunk, TTFT the first text's, in one clock."""
    reply = [
        head(),
        piece(event(delta("", role="assistant"))),
        Pause(0.05),
        piece(event(delta("a", finish="stop"))),
    ]
    with capture() as captured, ScriptedServer([[*reply, piece(DONE), END]]) as server:
        connect_openai(server).take()
    found = captured.spans[0].attributes

    assert found[semconv.TTFT_NS] >= max(50_000_000, found[semconv.TTFB_NS])


def test_tokens_that_came_in_one_read_share_one_stamp(connect_openai):
    """An answer in one segment is flagged as buffered, not reported as a brilliant speed."""
    words = [event(delta(w)) for w in "abcdef"]
    with (
        capture() as captured,
        ScriptedServer([at_once(*words, event(delta(finish="stop")), DONE)]) as server,
    ):
        connect_openai(server).take()
    found = captured.spans[0].attributes

    assert found[semconv.BUFFERED] is True
    assert (found[semconv.CHUNKS], found[semconv.TTFT_NS]) == (6, found[semconv.LAST_TOKEN_NS])
    assert semconv.TPOT_NS not in found


def test_usage_in_the_last_chunk_counts(connect_openai):
    """A user who asks for usage sees its chunk, and the span has its counts."""
    reply = stream(event(delta("a", finish="stop")), event(usage(5, 7)), DONE)
    with capture() as captured, ScriptedServer([reply]) as server:
        chunks = connect_openai(server).take(stream_options={"include_usage": True})

    assert (chunks[-1].choices, chunks[-1].usage.completion_tokens) == ([], 7)
    assert captured.spans[0].attributes[semconv.OUTPUT_TOKENS] == 7


def test_a_call_to_nowhere_is_an_error(connect_openai):
    """No connection: the client's own exception, and an error span without an HTTP status."""
    with ScriptedServer([HELLO]) as server:
        pass
    with capture() as captured:
        with pytest.raises(openai.APIConnectionError):
            connect_openai(server).chat()
    (span,) = captured.spans

    assert (span.status, span.attributes[semconv.ERROR_TYPE]) == ("error", "APIConnectionError")
    assert semconv.HTTP_STATUS not in span.attributes
