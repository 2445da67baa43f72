"""Case 022: a wrapper lacks what the stream has, or keeps its connection."""

from __future__ import annotations

import httpx
import openai
import pytest
from servers import DONE, AwaitClose, ScriptedServer, delta, event, head, piece, stream

import hotspan
from hotspan.testing import capture
from hotspan.tracer import semconv

MESSAGES = [{"role": "user", "content": "Hi"}]
ENDLESS = [head(), piece(event(delta("a")) + event(delta("b"))), AwaitClose()]
WHOLE = stream(event(delta("a")), event(delta("b", finish="stop")), DONE)
ONE_CONNECTION = httpx.Limits(max_connections=1, max_keepalive_connections=1)


def ask(client, **options):
    """Ask for a streamed chat."""
    return client.chat.completions.create(model="tiny", messages=MESSAGES, stream=True, **options)


@pytest.mark.parametrize("is_raw", [True, False])
def test_a_closed_stream_gives_its_connection_back(is_raw):
    """With a pool of one, closing after one chunk lets the next request through; headers stay readable."""
    with capture() as captured, ScriptedServer([ENDLESS, WHOLE]) as server:
        http = httpx.Client(limits=ONE_CONNECTION, timeout=5)
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", http_client=http) as client:
            hotspan.trace_openai(client)
            if is_raw:
                response = client.chat.completions.with_raw_response.create(
                    model="tiny", messages=MESSAGES, stream=True
                )
                assert response.headers["content-type"] == "text/event-stream"
                answered = response.parse()
            else:
                answered = ask(client)
            assert isinstance(answered, openai.Stream)
            assert answered.response.headers["content-type"] == "text/event-stream"
            assert next(answered).choices[0].delta.content == "a"
            answered.close()
            assert answered.response.is_closed
            assert len(list(ask(client))) == 2
    left, good = captured.spans

    assert left.attributes[semconv.OUTCOME] == "abandoned"
    assert semconv.OUTCOME not in good.attributes


async def test_a_closed_asynchronous_stream_gives_its_connection_back():
    """The same for the asynchronous client, as a context manager."""
    with capture() as captured, ScriptedServer([ENDLESS, WHOLE]) as server:
        http = httpx.AsyncClient(limits=ONE_CONNECTION, timeout=5)
        client = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", http_client=http)
        async with hotspan.trace_openai(client):
            async with await ask(client) as answered:
                assert isinstance(answered, openai.AsyncStream)
                assert (await anext(answered)).choices[0].delta.content == "a"
            assert len([chunk async for chunk in await ask(client)]) == 2

    assert [span.attributes.get(semconv.OUTCOME) for span in captured.spans] == ["abandoned", None]


def test_connections_are_used_again_as_by_the_bare_client():
    """Five streams after each other open as many connections as they do untraced."""
    opened = []
    for trace in (hotspan.trace_openai, lambda client: client):
        with capture(), ScriptedServer([WHOLE]) as server:
            with trace(openai.OpenAI(base_url=f"{server.url}/v1", api_key="none")) as client:
                for _ in range(5):
                    list(ask(client))
            opened.append(server.n_connections)

    assert opened[0] == opened[1]
