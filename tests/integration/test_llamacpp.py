"""A real llama.cpp server: what it says of itself divides every call, and its queue is seen."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import hotspan
from hotspan.analysis.engine import BY_HEADERS, BY_RESPONSE
from hotspan.testing import capture
from hotspan.tracer import semconv

pytest.importorskip("xllamacpp")
pytest.importorskip("gguf")

from tests.integration.llamacpp import LlamaCpp

pytestmark = [pytest.mark.integration]

ASK = [{"role": "user", "content": "What is a list? " * 5}]
BY_TIMINGS = BY_RESPONSE + "timings"
N_SLOTS, N_CALLERS = 2, 6


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with two slots and a model that takes some milliseconds a token."""
    with LlamaCpp(tmp_path_factory.mktemp("llamacpp"), n_slots=N_SLOTS, width=512, n_layers=8) as running:
        yield running


def report_of(captured):
    """Return the report of what was captured."""
    traces = {}
    for span in captured.spans:
        traces.setdefault(span.trace_id, []).append(span)
    return hotspan.analyse([hotspan.Trace(key, spans) for key, spans in traces.items()])


def assert_every_call_is_accounted_for(captured):
    """Every call's phases are whole, and divided by the server's own words."""
    report = report_of(captured)
    generation = report.generation
    mean_ns = sum(span.duration_ns for span in captured.spans) / len(captured.spans)
    assert generation.status["ok"] == len(captured.spans)
    assert sum(ns or 0 for ns in generation.phases_ns.values()) == pytest.approx(mean_ns)
    for phase in ("prefill", "decode"):
        assert generation.phase_sources[phase] == {BY_TIMINGS: len(captured.spans)}
    assert report.evidence.engines == ("llamacpp",)
    return generation


def test_streamed_and_whole_answers_have_the_servers_account(server):
    """`timings` ride in the last chunk, or on the answer; nearly all of a call is explained."""
    with capture() as captured:
        with hotspan.LLMClient(server.url, model="tiny") as client:
            assert "".join(delta.text for delta in client.stream(ASK, max_tokens=24))
        with hotspan.LLMClient(server.url, model="tiny") as client:
            assert client.chat(ASK, max_tokens=24).timings["predicted_n"] == 24
    generation = assert_every_call_is_accounted_for(captured)

    engine_ns = sum(generation.phases_ns[phase] for phase in ("prefill", "decode"))
    assert engine_ns > 0.5 * sum(ns or 0 for ns in generation.phases_ns.values())


def test_the_openai_client_reads_the_same_account(server):
    """The same fields, taken from the bytes as they pass by."""
    openai = pytest.importorskip("openai")
    with capture() as captured, openai.OpenAI(base_url=f"{server.url}/v1", api_key="none") as plain:
        traced = hotspan.trace_openai(plain)
        for chunk in traced.chat.completions.create(model="tiny", messages=ASK, max_tokens=8, stream=True):
            assert chunk.id
        traced.chat.completions.create(model="tiny", messages=ASK, max_tokens=8)
    sources = report_of(captured).generation.phase_sources

    assert sources["prefill"] == sources["decode"] == {BY_TIMINGS: 2}


def test_a_prompt_in_the_cache_keeps_all_its_tokens(server):
    """Sent again, nearly all of it is cached: the prompt is as long, and the prefill short."""
    with capture() as captured:
        for _ in range(2):
            with hotspan.LLMClient(server.url, model="tiny") as client:
                client.chat([{"role": "user", "content": "Something new: " + "abc " * 40}], max_tokens=2)
    first, second = captured.spans

    assert first.attributes[semconv.INPUT_TOKENS] == second.attributes[semconv.INPUT_TOKENS] > 160
    assert second.attributes[semconv.CACHED_TOKENS] > 150
    assert second.attributes[semconv.ACCOUNT_PREFILL_NS] < first.attributes[semconv.ACCOUNT_PREFILL_NS]


def test_a_server_that_is_full_shows_its_queue(server, tmp_path):
    """More streams than slots: the wait is in `queue`, as long as from the request's write to the prefill."""
    hotspan.configure(file=tmp_path / "run.jsonl")
    ready = threading.Barrier(N_CALLERS)

    def ask(n):
        ready.wait(30)
        with hotspan.LLMClient(server.url, model="tiny") as client, hotspan.request("ask"):
            list(client.stream([{"role": "user", "content": f"{n}: " + ASK[0]["content"]}], max_tokens=40))

    with hotspan.sample_engine(server.url, interval_s=0.02):
        with ThreadPoolExecutor(N_CALLERS) as pool:
            list(pool.map(ask, range(N_CALLERS)))
    hotspan.flush()
    report = hotspan.analyse(hotspan.load(tmp_path / "run.jsonl"))
    calls = [
        s for t in hotspan.load(tmp_path / "run.jsonl") for s in t.spans if semconv.TTFT_NS in s.attributes
    ]
    (engine,) = report.telemetry.engines
    phases = report.generation.phases_ns

    assert report.generation.phase_sources["queue"] == {BY_HEADERS: N_CALLERS}
    waits_ns = [
        max(0, said[semconv.TTFT_NS] - said[semconv.REQUEST_WRITE_NS] - said[semconv.ACCOUNT_PREFILL_NS])
        for said in (call.attributes for call in calls)
    ]
    assert phases["queue"] == pytest.approx(sum(waits_ns) / N_CALLERS, rel=0.25)
    assert phases["queue"] > phases["prefill"]
    assert phases["server_before_engine"] < 0.25 * phases["queue"]
    assert engine.waiting.max >= 1
    assert engine.running.max == N_SLOTS
    # What the endpoint counted is what the answers said; it counts prompts that it read together once.
    said_ns = {
        key: sum(s.attributes[key] for s in calls)
        for key in (semconv.ACCOUNT_PREFILL_NS, semconv.ACCOUNT_DECODE_NS)
    }
    assert engine.decode_ns == pytest.approx(said_ns[semconv.ACCOUNT_DECODE_NS], rel=0.02)
    assert 0 < engine.prefill_ns <= 1.02 * said_ns[semconv.ACCOUNT_PREFILL_NS]
    assert engine.output_tokens == N_CALLERS * 40
