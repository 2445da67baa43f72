"""`trace_openai` over real sockets: what is sent, below which span, and how much of it is kept."""

from __future__ import annotations

import openai
import pytest
from openai_drivers import MESSAGES, Blocking, texts
from servers import DONE, ScriptedServer, answer, delta, event, message, stream

import hotspan
from hotspan.testing import capture
from hotspan.tracer import semconv

HELLO = stream(
    event(delta("", role="assistant")), event(delta("Hel")), event(delta("lo", finish="stop")), DONE
)


def test_the_request_is_the_same_but_for_the_traces_headers(connect_openai):
    """Body, path and headers are those of the bare client; `traceparent` names the call's span."""
    with capture() as captured, ScriptedServer([HELLO]) as server:
        driver = connect_openai(server)
        driver.take(seed=1, stream_options={"include_usage": False}, extra_headers={"x-mine": "1"})
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as bare:
            list(
                bare.chat.completions.create(
                    model="tiny",
                    messages=MESSAGES,
                    stream=True,
                    seed=1,
                    stream_options={"include_usage": False},
                    extra_headers={"x-mine": "1"},
                )
            )
    traced, untraced = server.requests
    span = captured.spans[0]

    assert (traced.method, traced.target, traced.body) == (untraced.method, untraced.target, untraced.body)
    assert traced.headers["traceparent"] == f"00-{span.trace_id}-{span.span_id}-01"
    ours = set(traced.headers) - set(untraced.headers)
    assert ours == {"traceparent"}
    stays = [name for name in untraced.headers if not name.startswith(("x-stainless", "user-agent"))]
    assert [traced.headers[name] for name in stays] == [untraced.headers[name] for name in stays]


def test_a_traceparent_of_the_users_own_stays(connect_openai):
    """What the caller sends is not replaced."""
    own = f"00-{'a' * 32}-{'b' * 16}-00"
    with capture(), ScriptedServer([answer(message())]) as server:
        connect_openai(server).chat(extra_headers={"traceparent": own})

    assert server.requests[0].headers["traceparent"] == own


def test_a_call_is_a_child_of_the_current_stage():
    """In a request the call is its child, streamed or not: the tree has the same shape."""
    with capture() as captured, ScriptedServer([HELLO, answer(message())]) as server:
        driver = Blocking(server.url)
        for ask in (driver.take, driver.chat):
            with hotspan.request("ask"):
                ask()
        driver.close()

    _assert_children(captured.spans)


async def test_an_awaited_call_is_a_child_of_the_current_stage():
    """The same in a coroutine."""
    with capture() as captured, ScriptedServer([HELLO, answer(message())]) as server:
        client = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none")
        async with hotspan.trace_openai(client):
            for streamed in (True, False):
                async with hotspan.request("ask"):
                    answered = await client.chat.completions.create(
                        model="tiny", messages=MESSAGES, stream=streamed
                    )
                    if streamed:
                        assert len([chunk async for chunk in answered]) == 3

    _assert_children(captured.spans)


def _assert_children(spans):
    calls = [span for span in spans if span.name == "chat tiny"]
    requests = [span for span in spans if span.name != "chat tiny"]
    assert len(requests) == 2
    assert [call.parent_id for call in calls] == [request.span_id for request in requests]


def test_nothing_is_done_while_tracing_is_off(connect_openai, monkeypatch):
    """Without tracing there is no span, no header, and the same answer."""
    monkeypatch.setenv("HOTSPAN_DISABLED", "true")
    with ScriptedServer([HELLO]) as server:
        assert texts(connect_openai(server).take()) == ["", "Hel", "lo"]

    assert "traceparent" not in server.requests[0].headers


@pytest.mark.parametrize("keep", [True, False])
def test_content_is_kept_only_when_asked_for(connect_openai, keep):
    """Prompt and answer are in the span only with `capture_content`."""
    with (
        capture(capture_content=keep) as captured,
        ScriptedServer([HELLO, answer(message("Hello"))]) as server,
    ):
        driver = connect_openai(server)
        driver.take()
        driver.chat()

    for span in captured.spans:
        assert ("Hi" in str(span.attributes.get(semconv.INPUT_MESSAGES))) is keep
        assert ("Hello" in str(span.attributes.get(semconv.OUTPUT_MESSAGES))) is keep
