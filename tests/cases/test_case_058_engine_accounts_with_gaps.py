"""Case 058: names differ by version, attributes are missing, and `metrics` may be null."""

from __future__ import annotations

import pytest
from servers import DONE, ScriptedServer, delta, event, stream, usage

from hotspan.analysis import analyse
from hotspan.testing import capture
from hotspan.tracer import semconv
from hotspan.tracer.clients.llm import LLMClient
from hotspan.tracer.record import SpanRecord, Trace

MESSAGES = [{"role": "user", "content": "Hi"}]
FULL = {"queue_time_ms": 0.5, "time_to_first_token_ms": 1.0, "generation_time_ms": 0.25}


def report_of(last_chunk, *, engine_attributes=None):
    """Return the report of one streamed call, and of the engine's span below it."""
    body = [event(item) for item in (delta("a"), delta("b", finish="stop"), last_chunk)]
    with capture() as captured, ScriptedServer([stream(*body, DONE)]) as server:
        with LLMClient(server.url, model="tiny") as client:
            list(client.stream(MESSAGES))
    call = captured.spans[0]
    spans = [call]
    if engine_attributes is not None:
        server_span = SpanRecord(
            call.trace_id, "e" * 16, call.span_id, "llm_request", 5, 6, engine_attributes, "server"
        )
        spans.append(server_span)
    return analyse([Trace(call.trace_id, spans)])


@pytest.mark.parametrize(
    ("metrics", "engine"),
    [
        pytest.param(None, None, id="null-metrics"),
        pytest.param({}, None, id="empty-metrics"),
        pytest.param({"queue_time_ms": None, "time_to_first_token_ms": None}, None, id="null-fields"),
        pytest.param(None, {"gen_ai.latency.time_in_model_forward": 0.2}, id="names-of-another-version"),
        pytest.param(None, {"gen_ai.usage.prompt_tokens": 5}, id="a-pooling-request"),
        pytest.param(
            None, {semconv.ENGINE_QUEUE_S: None, semconv.ENGINE_DECODE_S: "no"}, id="null-attributes"
        ),
    ],
)
def test_without_an_account_the_clients_own_measures_stand(metrics, engine):
    """Absent is null, never 0; the wait for the first token is one phase, and the sum is exact."""
    generation = report_of(usage(5, 2) | {"metrics": metrics}, engine_attributes=engine).generation

    assert [generation.phases_ns[name] for name in ("queue", "prefill", "server_before_engine")] == [None] * 3
    assert generation.phases_ns["first_token_wait"] is not None
    assert generation.phase_sources["decode"] == {"client": 1}


def test_an_account_with_a_gap_is_used_as_far_as_it_goes():
    """Queue and prefill without a decode: the client's own decode stands beside them."""
    last = usage(5, 2) | {"metrics": {"queue_time_ms": 0.001, "time_to_first_token_ms": 0.002}}
    generation = report_of(last).generation

    assert (generation.phases_ns["queue"], generation.phases_ns["prefill"]) == (1000, 2000)
    assert generation.phase_sources["decode"] == {"client": 1}


def test_a_whole_account_is_used():
    """The same call with everything in its last chunk."""
    sources = report_of(usage(5, 2) | {"metrics": FULL}).generation.phase_sources

    assert sources["queue"] == sources["prefill"] == sources["decode"] == {"response's metrics": 1}
