"""What a traced client is to its user: the same object, types, answers and faults."""

from __future__ import annotations

import inspect
import sys
import threading

import openai
import pytest
from openai_drivers import MESSAGES, texts
from servers import (
    DONE,
    END,
    Pause,
    ScriptedServer,
    answer,
    delta,
    event,
    head,
    message,
    piece,
    stream,
    usage,
)

import hotspan
from hotspan.testing import capture
from hotspan.tracer import semconv

HELLO = stream(event(delta("", role="assistant")), event(delta("Hi")), event(delta(finish="stop")), DONE)
CLIENTS = [openai.OpenAI, openai.AsyncOpenAI]


# --- The client --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CLIENTS)
def test_the_client_is_the_same_object(kind):
    """Tracing returns the client itself, of its own type, with methods of the same kind and signature."""
    client = kind(api_key="none")
    before = inspect.signature(client.request), inspect.iscoroutinefunction(client.request)

    assert hotspan.trace_openai(client) is client
    assert type(client) is kind
    assert (inspect.signature(client.request), inspect.iscoroutinefunction(client.request)) == before


def test_tracing_twice_is_tracing_once(connect_openai):
    """A client that is traced again makes one span a call."""
    with capture() as captured, ScriptedServer([answer(message())]) as server:
        driver = connect_openai(server)
        assert hotspan.trace_openai(driver.client) is driver.client
        driver.chat()

    assert len(captured.spans) == 1


def test_resources_that_were_taken_before_are_traced():
    """A `client.chat` that somebody keeps is traced with its client."""
    with capture() as captured, ScriptedServer([answer(message())]) as server:
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
            chat = client.chat
            hotspan.trace_openai(client)
            chat.completions.create(model="tiny", messages=MESSAGES)

    assert len(captured.spans) == 1


@pytest.mark.parametrize("how", ["with_options", "copy"])
def test_copies_of_a_client_are_traced(connect_openai, how):
    """Copies share the connections; each call of each is one span with one attempt."""
    with capture() as captured, ScriptedServer([answer(message())]) as server:
        driver = connect_openai(server)
        other = getattr(driver.client, how)(timeout=5)
        assert type(other) is type(driver.client)
        driver.client, first = other, driver.client
        driver.chat()
        driver.client = other.with_options(max_retries=1)
        driver.chat()
        driver.client = first
        driver.chat()

    assert [span.attributes[semconv.ATTEMPTS] for span in captured.spans] == [1, 1, 1]


def test_an_untraced_client_of_the_same_connections_stays_untraced():
    """Two clients that share an HTTP client: only the one that was asked for is traced."""
    with capture() as captured, ScriptedServer([answer(message())]) as server:
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none") as traced:
            other = traced.with_options(timeout=5)
            hotspan.trace_openai(traced)
            other.chat.completions.create(model="tiny", messages=MESSAGES)

    assert captured.spans == []
    assert "traceparent" not in server.requests[0].headers


def test_an_azure_client_is_named_as_such():
    """Azure's clients are clients; their provider has its own name in the conventions."""
    with capture() as captured, ScriptedServer([answer(message())]) as server:
        with openai.AzureOpenAI(azure_endpoint=server.url, api_key="none", api_version="1") as client:
            hotspan.trace_openai(client).chat.completions.create(model="tiny", messages=MESSAGES)

    assert captured.spans[0].attributes[semconv.PROVIDER] == "azure.ai.openai"
    assert "/deployments/tiny/chat/completions" in server.requests[0].target


@pytest.mark.parametrize("what", [None, openai, object(), openai.OpenAI])
def test_what_is_no_client_is_refused(what):
    """One sentence that says what was expected."""
    with pytest.raises(hotspan.ConfigurationError, match=r"expected an openai\.OpenAI"):
        hotspan.trace_openai(what)


def test_without_the_package_the_extra_is_named(monkeypatch):
    """One sentence that says what to install."""
    monkeypatch.setitem(sys.modules, "openai", None)

    with pytest.raises(hotspan.MissingDependencyError, match=r"hotspan\[openai\]"):
        hotspan.trace_openai(object())


# --- Streams -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", ["with_streaming_response", "stream"])
def test_every_way_to_read_a_stream(connect_openai, read):
    """Raw lines and the helper's events are what they are, and the call is recorded all the same."""
    with capture() as captured, ScriptedServer([HELLO]) as server:
        driver = connect_openai(server)
        if read == "stream":
            beta = hasattr(driver.client.chat.completions, "stream")
            path = "chat.completions.stream" if beta else "beta.chat.completions.stream"
            events = driver.consume(path, model="tiny", messages=MESSAGES)
            assert [e.delta for e in events if e.type == "content.delta"] == ["", "Hi"]
        else:
            lines = driver.read(stream=True)
            assert len([line for line in lines if line.startswith("data:")]) == 4
    (span,) = captured.spans

    assert (span.status, span.attributes[semconv.CHUNKS]) == ("unset", 1)
    assert span.attributes[semconv.FINISH_REASONS] == ["stop"]


@pytest.mark.parametrize("streamed", [True, False])
def test_raw_responses_keep_their_faces(connect_openai, streamed):
    """`with_raw_response` gives headers, status and `parse`, of a stream a `Stream`."""
    reply = HELLO if streamed else answer(message("Hello"), x_request_id="r1")
    with capture() as captured, ScriptedServer([reply]) as server:
        driver = connect_openai(server)
        response, parsed = driver.raw(**({"stream": True} if streamed else {}))
        assert response.status_code == 200
        assert response.headers["content-type"]
        if streamed:
            assert texts(parsed) == ["", "Hi", None]
        else:
            assert (response.request_id, parsed.choices[0].message.content) == ("r1", "Hello")

    assert captured.spans[0].status == "unset"


def test_a_whole_answer_as_a_streaming_response(connect_openai):
    """`with_streaming_response` of a call that is not streamed: its body is read by the user."""
    with capture() as captured, ScriptedServer([answer(message("Hello"))]) as server:
        lines = connect_openai(server).read()

    assert "Hello" in "".join(lines)
    assert captured.spans[0].attributes[semconv.OUTPUT_TOKENS] == 2


def test_parse_is_a_call(connect_openai):
    """`chat.completions.parse` with a pydantic model gives the model."""
    import pydantic  # noqa: PLC0415 - comes with openai

    class Answer(pydantic.BaseModel):
        word: str

    with capture() as captured, ScriptedServer([answer(message('{"word": "yes"}'))]) as server:
        driver = connect_openai(server)
        has_it = hasattr(driver.client.chat.completions, "parse")
        path = "chat.completions.parse" if has_it else "beta.chat.completions.parse"
        parsed = driver.call(path, model="tiny", messages=MESSAGES, response_format=Answer)

    assert parsed.choices[0].message.parsed.word == "yes"
    assert captured.spans[0].attributes[semconv.OUTPUT_TOKENS] == 2


# --- Usage, when it is asked for ---------------------------------------------------------------------------


def test_usage_is_asked_for_and_its_chunk_hidden(connect_openai):
    """`usage=True` asks for counts where the caller does not, and shows only what he asked for."""
    reply = stream(event(delta("a", finish="stop")), event(usage(5, 7)), DONE)
    with capture() as captured, ScriptedServer([reply]) as server:
        driver = connect_openai(server, usage=True)
        assert texts(driver.take()) == ["a"]
        assert driver.take(stream_options={"include_usage": True})[-1].usage.completion_tokens == 7
        driver.take(stream_options={"include_usage": False})
        driver.read(stream=True)
        driver.client = driver.client.with_options(timeout=5)
        assert texts(driver.take()) == ["a"]
    asked = [request.json.get("stream_options") for request in server.requests]

    on, off = {"include_usage": True}, {"include_usage": False}
    assert asked == [on, on, off, None, on]
    assert captured.spans[0].attributes[semconv.OUTPUT_TOKENS] == 7


def test_the_users_own_options_are_not_changed(connect_openai):
    """What the caller passed in is as it was."""
    options, messages = {"continuous_usage_stats": False}, [dict(MESSAGES[0])]
    with capture(), ScriptedServer([HELLO]) as server:
        driver = connect_openai(server, usage=True)
        driver.gather("chat.completions.create", model="t", messages=messages, stream_options=options)

    assert (options, messages) == ({"continuous_usage_stats": False}, MESSAGES)
    assert server.requests[0].json["stream_options"] == {**options, "include_usage": True}


# --- Compressed bodies, hostile arguments ------------------------------------------------------------------


def test_a_compressed_stream_is_read_from_its_items(connect_openai):
    """Bytes that the HTTP client has to unpack first are not read; the items that come of them are."""
    import gzip  # noqa: PLC0415 - of this one test

    events = (event(delta("", role="assistant")), event(delta("Hi")), event(delta(finish="stop")), DONE)
    body = gzip.compress(b"".join(events))
    reply = answer(body, content_encoding="gzip")
    reply[0] = reply[0].replace(b"application/json", b"text/event-stream")
    with capture() as captured, ScriptedServer([reply]) as server:
        assert texts(connect_openai(server).take()) == ["", "Hi", None]
    (span,) = captured.spans

    assert (span.status, span.attributes[semconv.CHUNKS]) == ("unset", 1)


class Hostile:
    """An argument that can neither be shown nor sent."""

    def __repr__(self):
        """Fail."""
        raise RuntimeError


def test_an_argument_that_cannot_be_sent_fails_as_it_would(connect_openai):
    """The client's own complaint, and one error span."""
    with capture() as captured, ScriptedServer([HELLO]) as server:
        driver = connect_openai(server)
        with pytest.raises(TypeError):
            driver.chat(temperature=Hostile())

    assert [span.status for span in captured.spans] == ["error"]
    assert server.requests == []


# --- Without the names that are not public -----------------------------------------------------------------


@pytest.mark.parametrize("streamed", [True, False])
def test_a_client_whose_http_client_is_out_of_reach_is_traced_by_what_it_returns(
    connect_openai, monkeypatch, streamed
):
    """Attempts are then not told apart; the span still covers the stream, its tokens and its end."""
    monkeypatch.setattr("hotspan.tracer.clients.openai._http_client", lambda _client: None)
    last = piece(event(delta(finish="stop")) + DONE)
    held = [head(), piece(event(delta("Hi"))), Pause(0.1), last, END]
    with capture() as captured, ScriptedServer([held if streamed else answer(message())]) as server:
        driver = connect_openai(server)
        if streamed:
            assert texts(driver.take()) == ["Hi", None]
        else:
            assert driver.chat().choices[0].message.content == "Hi"
    (span,) = captured.spans

    assert (span.status, span.attributes[semconv.FINISH_REASONS]) == ("unset", ["stop"])
    assert (span.attributes.get(semconv.CHUNKS), semconv.OUTCOME in span.attributes) == (
        1 if streamed else None,
        False,
    )
    assert span.attributes[semconv.OUTPUT_TOKENS] == (1 if streamed else 2)
    if streamed:
        assert span.duration_ns >= 100_000_000
        assert semconv.TTFT_NS in span.attributes


def test_a_stream_of_another_build_is_traced_by_its_bytes(connect_openai, monkeypatch):
    """Where a stream's iterator cannot be paced, tokens and end are still the body's."""
    monkeypatch.setattr("hotspan.tracer.clients.openai_pace.Pace.take_place", lambda _pace, _stream: False)
    with capture() as captured, ScriptedServer([HELLO]) as server:
        assert texts(connect_openai(server).take()) == ["", "Hi", None]
    (span,) = captured.spans

    assert (span.status, span.attributes[semconv.CHUNKS]) == ("unset", 1)


def test_a_raw_stream_says_how_long_its_consumer_held_it():
    """The pieces of a body that the user reads himself are its items; what he does between them is hold."""
    reply = stream(event(delta("a")), event(delta("b", finish="stop")), DONE)
    with capture() as captured, ScriptedServer([reply]) as server:
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
            create = hotspan.trace_openai(client).chat.completions.with_streaming_response.create
            with create(model="tiny", messages=MESSAGES, stream=True) as response:
                for _ in response.iter_bytes():
                    threading.Event().wait(0.05)
    found = captured.spans[0].attributes

    assert 1 <= found[semconv.STREAM_ITEMS] <= 3
    assert found[semconv.STREAM_HOLD_NS] >= found[semconv.STREAM_ITEMS] * 50_000_000
    assert found[semconv.STREAM_BUSY_NS] + found[semconv.STREAM_HOLD_NS] <= captured.spans[0].duration_ns
