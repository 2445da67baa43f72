"""Case 046: a wrapper asks for usage, and the user's loop meets a chunk without choices."""

from __future__ import annotations

import openai
import pytest
from servers import DONE, ScriptedServer, delta, event, stream, usage

import hotspan
from hotspan.testing import capture
from hotspan.tracer import semconv

MESSAGES = [{"role": "user", "content": "Hi"}]
REPLY = stream(event(delta("a")), event(delta("b", finish="stop")), event(usage(5, 2)), DONE)
WITHOUT = stream(event(delta("a")), event(delta("b", finish="stop")), DONE)


@pytest.mark.parametrize(
    ("asks", "reply", "sent", "estimated"),
    [
        pytest.param(False, WITHOUT, None, True, id="by-default"),
        pytest.param(True, REPLY, {"include_usage": True}, None, id="when-asked"),
    ],
)
def test_the_users_loop_meets_no_chunk_that_he_did_not_ask_for(asks, reply, sent, estimated):
    """`chunk.choices[0]` holds in every chunk, whether usage is asked for by us or by nobody."""
    with capture() as captured, ScriptedServer([reply]) as server:
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
            hotspan.trace_openai(client, usage=asks)
            answered = client.chat.completions.create(model="tiny", messages=MESSAGES, stream=True)
            assert [chunk.choices[0].delta.content for chunk in answered] == ["a", "b"]
    found = captured.spans[0].attributes

    assert server.requests[0].json.get("stream_options") == sent
    assert (found[semconv.OUTPUT_TOKENS], found.get(semconv.TOKENS_ESTIMATED)) == (2, estimated)
