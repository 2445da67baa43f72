"""Both clients over real sockets: what they send, what they return, and what their span says.

The two clients share their logic; each test here runs on both.
"""

from __future__ import annotations

import json

import httpx
import pytest
from drivers import ENDLESS, HELLO, MESSAGES, texts
from servers import (
    DONE,
    ScriptedServer,
    answer,
    delta,
    event,
    head,
    message,
    stream,
)

import hotspan
from hotspan.testing import capture
from hotspan.tracer import semconv
from hotspan.tracer.clients.llm import AsyncLLMClient, LLMClient

# --- Answers -----------------------------------------------------------------------------------------------


def test_a_stream_gives_deltas_and_then_the_whole(connect):
    """Deltas come in order without the empty ones; text, usage, finish reason and status follow."""
    with ScriptedServer([HELLO]) as server:
        deltas, answered = connect(server.url).take(max_tokens=7, temperature=0.5)

    assert texts(deltas) == ["Hel", "lo"]
    assert (answered.text, answered.finish_reason, answered.status) == ("Hello", "stop", "ok")
    assert answered.usage["completion_tokens"] == 2
    assert server.requests[0].target == "/v1/chat/completions"
    assert server.requests[0].json == {
        "model": "tiny",
        "messages": MESSAGES,
        "max_tokens": 7,
        "temperature": 0.5,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_whole_answer(connect):
    """`chat` returns the answer's parts."""
    with ScriptedServer([answer(message())]) as server:
        found = connect(server.url, api_key="k", headers={"X-Team": "a"}).chat(stop=["\n"])

    assert (found.text, found.finish_reason, found.status) == ("Hi", "stop", "ok")
    assert found.usage["prompt_tokens"] == 5
    assert server.requests[0].json == {"model": "tiny", "messages": MESSAGES, "stop": ["\n"]}
    assert server.requests[0].headers["authorization"] == "Bearer k"
    assert server.requests[0].headers["x-team"] == "a"


def test_a_server_that_does_not_stream_is_read_all_the_same(connect):
    """One JSON object in answer to a streamed request is one delta."""
    with ScriptedServer([answer(message("Hello"))]) as server:
        deltas, answered = connect(server.url).take()

    assert (texts(deltas), answered.status) == (["Hello"], "ok")


def test_a_compressed_stream_is_read(connect):
    """A server that compresses although nobody asked is understood."""
    import gzip  # noqa: PLC0415 - only here

    body = gzip.compress(event(delta("Hi", finish="stop")) + DONE)
    reply = [head(length=len(body), content_encoding="gzip") + body]
    with ScriptedServer([reply]) as server:
        deltas, _ = connect(server.url).take()

    assert texts(deltas) == ["Hi"]


def test_the_model_is_asked_for_once(connect):
    """Without a model the server's first one is used, and what serves it is known from then on."""
    models = answer({"data": [{"id": "first", "owned_by": "vllm"}, {"id": "second"}]})
    with capture() as captured, ScriptedServer([models, HELLO]) as server:
        driver = connect(server.url, model=None)
        driver.take()
        driver.take()

    assert [r.target for r in server.requests] == [
        "/v1/models",
        "/v1/chat/completions",
        "/v1/chat/completions",
    ]
    assert server.requests[1].json["model"] == "first"
    assert [s.name for s in captured.spans] == ["chat first", "chat first"]
    assert captured.spans[0].attributes[semconv.ENGINE] == "vllm"


@pytest.mark.parametrize(
    "reply", [answer({"data": []}), answer({}), answer(b"<html>"), answer({"error": "no"}, "404 Not Found")]
)
def test_no_model_to_be_had_is_an_error(connect, reply):
    """A server without a list of models asks the user to name one."""
    with ScriptedServer([reply]) as server, pytest.raises(hotspan.EngineError, match=r"/v1"):
        connect(server.url, model=None).chat()


def test_a_user_s_own_http_client_is_used_and_left_open():
    """`http_client` is used for every request and stays the caller's to close."""
    with ScriptedServer([HELLO]) as server, httpx.Client(headers={"X-Mine": "1"}, trust_env=False) as mine:
        with LLMClient(server.url, model="tiny", http_client=mine) as client:
            assert texts(client.stream(MESSAGES)) == ["Hel", "lo"]
        assert not mine.is_closed
    assert server.requests[0].headers["x-mine"] == "1"


def test_an_asynchronous_http_client_is_refused_by_the_blocking_one():
    """Handing the wrong kind of HTTP client in is an error that says so, not a hanging call."""
    with pytest.raises(hotspan.ConfigurationError, match=r"httpx\.Client"):
        LLMClient("http://h", http_client=httpx.AsyncClient())


@pytest.mark.parametrize("kind", [LLMClient, AsyncLLMClient])
@pytest.mark.parametrize("options", [{"max_retries": -1}])
def test_options_that_cannot_be_meant_are_refused(kind, options):
    """A wrong option is an error at construction."""
    with pytest.raises(hotspan.ConfigurationError):
        kind("http://h", **options)


def test_stream_is_no_option_of_the_body(connect):
    """Whether an answer is streamed is said by the method."""
    with pytest.raises(hotspan.ConfigurationError, match="stream"):
        connect("http://127.0.0.1:1").chat(stream=True)


# --- The span ----------------------------------------------------------------------------------------------


def test_the_span_says_what_was_asked_and_answered(connect):
    """Every attribute of a streamed call is explained by the request and the answer."""
    with capture() as captured, ScriptedServer([HELLO]) as server:
        connect(server.url).take(max_tokens=7, temperature=0.5)
    (span,) = captured.spans
    found = dict(span.attributes)

    assert (span.name, span.kind, span.status) == ("chat tiny", "client", "unset")
    assert (found.pop(semconv.SERVER_ADDRESS), found.pop(semconv.SERVER_PORT)) == ("127.0.0.1", server.port)
    for key in (
        semconv.CONNECT_NS,
        semconv.REQUEST_WRITE_NS,
        semconv.TTFB_NS,
        semconv.TTFT_NS,
        semconv.TPOT_NS,
    ):
        assert found.pop(key, 0) >= 0
    for key in (semconv.SEND_OFFSET_NS, semconv.HEADERS_NS, semconv.TTFA_NS, semconv.LAST_TOKEN_NS):
        assert 0 <= found.pop(key) <= span.duration_ns
    for key in (semconv.STREAM_BUSY_NS, semconv.STREAM_HOLD_NS):
        assert 0 <= found.pop(key) <= span.duration_ns
    for key in (semconv.TIME_TO_FIRST_CHUNK, semconv.CHUNK_GAPS_NS, semconv.BUFFERED):
        found.pop(key, None)
    assert found == {
        semconv.STAGE: "generation",
        semconv.OPENINFERENCE_KIND: "LLM",
        semconv.OPERATION: "chat",
        semconv.PROVIDER: "openai-compatible",
        semconv.REQUEST_MODEL: "tiny",
        semconv.REQUEST_STREAM: True,
        semconv.REQUEST_MAX_TOKENS: 7,
        semconv.REQUEST_TEMPERATURE: 0.5,
        semconv.ATTEMPTS: 1,
        semconv.HTTP_STATUS: 200,
        semconv.STREAM_ITEMS: 2,
        semconv.CHUNKS: 2,
        semconv.INPUT_TOKENS: 5,
        semconv.OUTPUT_TOKENS: 2,
        semconv.RESPONSE_ID: "chatcmpl-1",
        semconv.RESPONSE_MODEL: "tiny",
        semconv.FINISH_REASONS: ["stop"],
    }


def test_the_server_s_span_becomes_a_child_of_the_call_s(connect):
    """The request carries the call's own `traceparent`, and the call is a child of the caller's stage."""
    with capture() as captured, ScriptedServer([HELLO]) as server:
        driver = connect(server.url)
        with hotspan.request("ask"):
            driver.take()
    call, root = captured.spans

    assert (call.name, call.parent_id) == ("chat tiny", root.span_id)
    assert server.requests[0].headers["traceparent"] == f"00-{call.trace_id}-{call.span_id}-01"


def test_a_stream_belongs_to_where_it_was_asked_for():
    """A stream that is handed out and consumed later is a child of the stage that asked for it."""
    with (
        capture() as captured,
        ScriptedServer([HELLO]) as server,
        LLMClient(server.url, model="tiny") as client,
    ):
        with hotspan.request("ask"):
            answered = client.stream(MESSAGES)
        list(answered)
    root, call = captured.spans

    assert call.parent_id == root.span_id


def test_what_the_consumer_opens_is_no_child_of_the_call():
    """Between two deltas the consumer's own stage is current, not the call's span."""
    with (
        capture() as captured,
        ScriptedServer([HELLO]) as server,
        LLMClient(server.url, model="tiny") as client,
    ):
        with hotspan.request("ask"):
            for _ in client.stream(MESSAGES):
                with hotspan.stage("show"):
                    pass
    root = captured.spans[-1]

    assert {s.parent_id for s in captured.spans if s.name == "show"} == {root.span_id}


@pytest.mark.parametrize("wanted", [False, True])
def test_content_is_recorded_only_when_asked_for(connect, wanted):
    """No word of prompt or answer is in the span, unless content is captured."""
    reply = stream(event(delta("canary-answer", finish="stop")), DONE)
    refusal = answer({"error": {"message": "canary-reason"}}, "400 Bad Request")
    with capture(capture_content=wanted) as captured, ScriptedServer([reply, refusal]) as server:
        driver = connect(server.url)
        driver.take()
        with pytest.raises(hotspan.EngineError, match="canary-reason"):
            driver.chat()
    written = json.dumps([repr(span) for span in captured.spans])

    for canary in ("canary-answer", "canary-reason"):
        assert (canary in written) is wanted


def test_a_call_works_where_nothing_is_traced(connect):
    """Without tracing the client is a client: answers, statuses and errors are the same."""
    with ScriptedServer([HELLO, ENDLESS, answer({"error": "no"}, "500 Oops")]) as server:
        driver = connect(server.url)
        assert driver.take()[1].status == "ok"
        assert driver.take(1)[1].status == "abandoned"
        with pytest.raises(hotspan.EngineError):
            driver.chat()
