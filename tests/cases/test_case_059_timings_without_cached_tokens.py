"""Case 059: llama.cpp's `timings` leave out the cached prompt tokens, and ride in a chunk without choices."""

from __future__ import annotations

import json

import pytest
from servers import DONE, ScriptedServer, delta, event, stream

from hotspan.analysis import analyse
from hotspan.testing import capture
from hotspan.tracer.clients.llm import LLMClient
from hotspan.tracer.record import Trace

TIMINGS = {
    "cache_n": 236,
    "prompt_n": 1,
    "prompt_ms": 30.958,
    "prompt_per_token_ms": 30.958,
    "prompt_per_second": 32.301,
    "predicted_n": 35,
    "predicted_ms": 661.064,
    "predicted_per_token_ms": 18.887,
    "predicted_per_second": 52.944,
}
MESSAGES = [{"role": "user", "content": "Hi"}]


@pytest.mark.parametrize(
    "usage",
    [
        pytest.param(None, id="timings-alone"),
        pytest.param(
            {
                "prompt_tokens": 237,
                "completion_tokens": 35,
                "prompt_tokens_details": {"cached_tokens": 236},
            },
            id="beside-usage",
        ),
    ],
)
def test_the_prompt_has_all_its_tokens_and_no_rate_is_made_of_one(usage):
    """237 prompt tokens, 236 of them cached; the 32 tokens/s of the one that was computed are nowhere."""
    last = {"choices": [], "timings": TIMINGS} | ({"usage": usage} if usage else {})
    events = [event(item) for item in (delta("a"), delta("b", finish="length"), last)]
    with capture() as captured, ScriptedServer([stream(*events, DONE)]) as server:
        with LLMClient(server.url, model="tiny") as client:
            list(client.stream(MESSAGES))
    report = analyse([Trace("1", captured.spans)])

    tokens = report.generation.tokens
    assert (tokens.prompt, tokens.cached_prompt, tokens.output) == (237, 236, 35)
    assert "32.3" not in json.dumps(report.to_dict())
    assert report.generation.phase_sources["prefill"] == {"response's timings": 1}
