"""An engine whose model's answers the test writes, over real HTTP."""

from __future__ import annotations

import contextlib
import json

from servers import DONE, ScriptedServer, answer, delta, event, message, stream

from hotspan.pipelines.engines import server_engine

MODELS = answer({"object": "list", "data": [{"id": "tiny", "object": "model"}]})
NOT_FOUND = answer({"error": {"message": "no such path"}}, "404 Not Found")
BROKEN = answer({"error": {"message": "the engine is on fire"}}, "500 Internal Server Error")
SPOKEN = stream(event(delta("It is ")), event(delta("so.", finish="stop")), DONE)


def decision(*actions, thought="hm"):
    """The reply of a model that decides to do these (tool, argument) actions."""
    chosen = [{"tool": tool, "argument": argument} for tool, argument in actions]
    return answer(message(json.dumps({"thought": thought, "actions": chosen})))


@contextlib.contextmanager
def scripted_engine(*replies):
    """An engine over a server that plays these replies, one per model call; yields both."""
    # What an engine asks first: which models there are, and whether the server counts tokens (it does not).
    with ScriptedServer([MODELS, NOT_FOUND, *replies]) as server, server_engine(server.url) as engine:
        yield engine, server
