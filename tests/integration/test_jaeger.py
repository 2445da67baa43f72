"""Both reference pipelines on a real vLLM, read back from a real Jaeger."""

import subprocess
import sys

import pytest

import hotspan

pytestmark = [pytest.mark.integration, pytest.mark.rag]

N_QUESTIONS, N_TASKS = 3, 2
RAG_STAGES = {"request", "embedding", "retrieval", "rerank", "context_assembly", "generation"}
DEMO_S = 600


@pytest.fixture(scope="module")
def recorded(jaeger, tmp_path_factory):
    """The spans of one demo run, from its file, by span id."""
    pytest.importorskip("vllm")
    path = tmp_path_factory.mktemp("demo") / "demo.jsonl"
    counts = ["--questions", str(N_QUESTIONS), "--agent-requests", str(N_TASKS)]
    demo = ["demo", "--engine", "vllm", "--otlp", jaeger.http, "--file", path, *counts]
    done = subprocess.run(
        [sys.executable, "-m", "hotspan", *demo], capture_output=True, text=True, timeout=DEMO_S, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return {span.span_id: span for trace in hotspan.load(path) for span in trace.spans}


@pytest.fixture(scope="module")
def traces(jaeger, recorded):
    """The same run as Jaeger has it: for each trace its spans by span id."""
    found = jaeger.traces("hotspan-demo", len(recorded))
    return [{span["spanID"]: span for span in spans} for spans in found.values()]


def stage(span):
    """Return a span's stage, or None."""
    return span["tags"].get("hotspan.stage")


def ancestors(trace, span):
    """Return the spans above one, the nearest first."""
    above = []
    while (span := trace.get(span["parent"])) is not None:
        above.append(span)
    return above


def with_stage(trace, wanted):
    """Return the spans of a stage."""
    return [span for span in trace.values() if stage(span) == wanted]


def engine_spans(trace):
    """Return what vLLM itself wrote."""
    return [span for span in trace.values() if span["operationName"] == "llm_request"]


def is_agent(trace):
    """Return whether a trace is an agent's request."""
    return bool(with_stage(trace, "agent"))


def test_jaeger_has_what_the_file_has(recorded, traces):
    """The same spans, under the same parents, with the same names and durations."""
    in_jaeger = {span_id: span for trace in traces for span_id, span in trace.items()}

    assert in_jaeger.keys() == recorded.keys()
    for span_id, span in in_jaeger.items():
        record = recorded[span_id]
        assert (span["operationName"], span["parent"]) == (record.name, record.parent_id)
        assert abs(span["duration"] * 1000 - record.duration_ns) < 2000  # Jaeger's are microseconds


def test_every_trace_is_one_request(traces):
    """Each trace is a tree under a single root, the request; none misses a parent."""
    assert len(traces) == N_QUESTIONS + N_TASKS
    assert sum(map(is_agent, traces)) == N_TASKS
    for trace in traces:
        (root,) = [span for span in trace.values() if span["parent"] is None]
        assert stage(root) == "request"
        assert all(span["parent"] in trace for span in trace.values() if span is not root)


def test_a_rag_request_has_its_five_stages(traces):
    """Embedding, retrieval, rerank, context assembly and generation run once each, below the request."""
    for trace in traces:
        if not is_agent(trace):
            assert {stage(span) for span in trace.values()} - {None} == RAG_STAGES
            assert all(len(with_stage(trace, wanted)) == 1 for wanted in RAG_STAGES)


def test_an_agent_request_has_model_calls_and_tools(traces):
    """Three to ten model calls below the agent, tools among them."""
    for trace in filter(is_agent, traces):
        (agent,) = with_stage(trace, "agent")
        calls = with_stage(trace, "generation")
        assert 3 <= len(calls) <= 10
        assert all(agent in ancestors(trace, call) for call in calls)
        assert with_stage(trace, "tool")


def test_a_generation_says_how_it_went(traces):
    """Model, tokens and the time to the first token arrive as attributes of the right type."""
    for trace in traces:
        for call in with_stage(trace, "generation"):
            tags = call["tags"]
            assert tags["gen_ai.operation.name"] == "chat"
            assert tags["openinference.span.kind"] == "LLM"
            assert tags["gen_ai.request.model"]
            assert tags["gen_ai.usage.input_tokens"] > 0
            assert tags["gen_ai.usage.output_tokens"] > 0
            assert "hotspan.generation.tokens_estimated" not in tags
            if tags.get("gen_ai.request.stream"):
                assert 0 < tags["hotspan.generation.ttft_ns"] <= call["duration"] * 1000


def test_the_engines_span_hangs_below_its_generation(traces):
    """Each model call has vLLM's own span below it, and each of vLLM's spans is below a call."""
    for trace in traces:
        calls = with_stage(trace, "generation")
        engine = engine_spans(trace)
        above = [
            next(s["spanID"] for s in ancestors(trace, span) if stage(s) == "generation") for span in engine
        ]
        assert sorted(above) == sorted(call["spanID"] for call in calls)
        for span in engine:
            assert span["service"] == "vllm"
            assert span["tags"]["gen_ai.latency.time_in_queue"] >= 0
            assert span["tags"]["gen_ai.latency.time_in_model_prefill"] > 0
            assert span["tags"]["gen_ai.latency.time_in_model_decode"] >= 0
