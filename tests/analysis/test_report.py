"""One drawn request, and every figure of its report."""

from __future__ import annotations

import json

import pytest

from hotspan.analysis import analyse
from hotspan.analysis.engine import BY_REQUEST_ID, BY_TRACE
from hotspan.tracer import semconv
from hotspan.tracer.record import Resource, SpanRecord, Trace
from hotspan.tracer.testing import build_trace

MS = 1_000_000
SHARES = ("stage", "calls", "busy_ms", "wall_ms", "self_ms", "critical_path_ms", "critical_path_ratio")


def _ms(*spans):
    return [(name, start * MS, end * MS, *parent) for name, start, end, *parent in spans]


#  request    |---------------------------------------------|   0 - 100
#  embed        |-----|                                          5 - 20
#  search             |--------|                                20 - 40
#   POST                |----|                                  24 - 36    no stage: search's time
#  check              |----|                                    20 - 30    tool, beside search
#  answer                        |-----------------------|      45 - 95
RAG = _ms(
    ("request", 0, 100),
    ("embed", 5, 20, "request"),
    ("search", 20, 40, "request"),
    ("POST", 24, 36, "search"),
    ("check", 20, 30, "request"),
    ("answer", 45, 95, "request"),
)
STAGES = {
    "request": "request",
    "embed": "embedding",
    "search": "retrieval",
    "check": "tool",
    "answer": "generation",
}


def _rag(trace_id="1", attributes=None):
    return build_trace(*RAG, stages=STAGES, attributes=attributes, trace_id=trace_id)


def test_every_stage_has_its_calls_busy_wall_self_and_critical_path_time():
    """The drawing above, by hand."""
    found = analyse([_rag()]).to_dict()

    assert [tuple(row[key] for key in SHARES) for row in found["stages"]] == [
        ("request", 1, 100, 100, 15, None, None),
        ("generation", 1, 50, 50, 50, 50, pytest.approx(0.5)),
        ("retrieval", 1, 20, 20, 20, 20, pytest.approx(0.2)),
        ("embedding", 1, 15, 15, 15, 15, pytest.approx(0.15)),
        ("tool", 1, 10, 10, 10, 0, 0),
    ]
    assert found["unattributed"] == {"critical_path_ms": 15, "critical_path_ratio": pytest.approx(0.15)}


def test_a_report_is_json_with_every_key_of_the_contract():
    """Times in ms, nothing that JSON cannot hold, null for what there is not."""
    found = json.loads(json.dumps(analyse([_rag()]).to_dict(), allow_nan=False))

    assert found["schema"] == "hotspan.report/1"
    assert set(found) >= {"evidence", "request", "stages", "unattributed", "generation", "amplification"}
    assert set(found) >= {"what_if", "findings"}
    assert found["request"]["duration_ms"]["p50"] == 100
    assert found["generation"]["ttft_ms"] is None
    assert found["generation"]["phases_ms"]["queue"] is None
    assert set(found["evidence"]) >= {
        "files", "spans", "traces", "requests", "partial_traces", "dropped_spans", "duplicate_spans",
        "orphan_spans", "twin_spans", "late_spans", "invalid_spans", "unfinished_spans", "engine_spans",
        "sampled", "overhead", "warnings",
    }  # fmt: skip


def test_an_empty_input_has_an_empty_report():
    """No traces: zeros for counts, null for everything that would need one."""
    found = analyse([]).to_dict()

    assert found["request"] == {
        "n": 0,
        "errors": 0,
        "cancelled": 0,
        "error_ratio": None,
        "error_ratio_weighted": False,
        "duration_ms": None,
        "duration_with_failures_ms": {},
    }
    assert found["stages"] == []
    assert found["unattributed"]["critical_path_ratio"] is None
    assert found["amplification"]["model_calls"] is None


def test_calls_per_request_counts_the_requests_without_any():
    """Three requests, calls in one of them: a mean of a third and a median of none."""
    plain = [
        build_trace(("request", 0, 10 * MS), stages={"request": "request"}, trace_id=str(n)) for n in (2, 3)
    ]

    (row,) = [row for row in analyse([_rag(), *plain]).stages if row.stage == "retrieval"]

    assert row.calls_per_request.mean == pytest.approx(1 / 3)
    assert (row.calls_per_request.p50, row.calls_per_request.max) == (0, 1)


def test_only_successes_enter_percentiles_and_the_others_are_counted():
    """A failed and a cancelled request stand beside the figures, not in them."""
    ok, failed, cancelled = (_rag(str(n)) for n in (1, 2, 3))
    failed = Trace(
        "2", [s._replace(status="error") if s.name in {"request", "answer"} else s for s in failed.spans]
    )
    cancelled = Trace(
        "3",
        [
            s._replace(attributes={**s.attributes, semconv.OUTCOME: "cancelled"})
            if s.name == "request"
            else s
            for s in cancelled.spans
        ],
    )

    report = analyse([ok, failed, cancelled])

    assert (report.request.n, report.request.n_errors, report.request.n_cancelled) == (3, 1, 1)
    assert report.request.duration_ns.n == 1
    assert report.generation.status == {"ok": 2, "error": 1, "truncated": 0, "cancelled": 0, "abandoned": 0}
    (generation,) = [row for row in report.stages if row.stage == "generation"]
    assert (generation.n_calls, generation.n_errors, generation.duration_ns.n) == (3, 1, 2)


def test_a_trace_without_any_stage_is_no_request():
    """An engine writes its own start-up as a trace: evidence, not a 42-second request."""
    start_up = build_trace(
        ("Overall Loading", 0, 42_000 * MS), ("Load model", 0, 9 * MS, "Overall Loading"), trace_id="2"
    )

    report = analyse([_rag(), start_up])

    assert (report.evidence.n_traces, report.evidence.n_requests, report.evidence.n_unstaged_traces) == (
        2,
        1,
        1,
    )
    assert report.request.duration_ns.max == 100 * MS
    assert sum(row.n_calls for row in report.stages) == 5


def test_a_root_that_names_no_stage_is_the_request():
    """A web framework's span above the stages is the request; its own time is unattributed."""
    stages = {name: stage for name, stage in STAGES.items() if name != "request"}

    report = analyse([build_trace(*RAG, stages=stages)])

    assert report.stages[0].stage == "request"
    assert report.unattributed.critical_path_ns == 15 * MS


ENGINE = {
    semconv.ENGINE_QUEUE_S: 0.005,
    semconv.ENGINE_PREFILL_S: 0.010,
    semconv.ENGINE_DECODE_S: 0.030,
    semconv.ENGINE_REQUEST_ID: "chatcmpl-7",
}


def _engine_span(trace_id, parent_id, **extra):
    vllm = Resource({semconv.SERVICE_NAME: "vllm"})
    return SpanRecord(
        trace_id,
        "e1",
        parent_id,
        "llm_request",
        10**12,
        10**12 + 50 * MS,
        {**ENGINE, **extra},
        "server",
        resource=vllm,
    )


def test_an_engine_span_below_the_call_divides_it():
    """Joined by trace context, it is evidence: no call, no late span, and the phases sum to the call."""
    attributes = {"answer": {semconv.TTFT_NS: 20 * MS, semconv.LAST_TOKEN_NS: 49 * MS}}
    client = _rag(attributes=attributes)

    found = analyse([Trace("1", [*client.spans, _engine_span("1", "answer")])])

    assert (found.evidence.n_engine_spans, found.evidence.n_engine_joined) == (1, 1)
    assert found.evidence.n_late_spans == 0
    phases = {name: ns / MS for name, ns in found.generation.phases_ns.items() if ns is not None}
    engine = {"server_before_engine": 5, "queue": 5, "prefill": 10, "decode": 30}
    assert phases == {**engine, "stream_overhead": 0, "unattributed": 0}
    assert found.generation.phase_sources["queue"] == {BY_TRACE: 1}
    assert found.evidence.services == ("vllm",)
    (row,) = [row for row in found.stages if row.stage == "generation"]
    assert sum(phase.critical_path_ratio for phase in row.phases) == pytest.approx(row.critical_path_ratio)


@pytest.mark.parametrize("engine_first", [True, False])
def test_an_engine_span_in_another_trace_is_joined_by_the_request_id(engine_first):
    """A client that sent no traceparent still knows the id of the answer."""
    client = _rag(attributes={"answer": {semconv.RESPONSE_ID: "chatcmpl-7"}})
    engine = Trace("2", [_engine_span("2", None)])

    found = analyse([engine, client] if engine_first else [client, engine])

    assert (found.evidence.n_engine_joined, found.evidence.n_requests) == (1, 1)
    assert found.generation.phase_sources["queue"] == {BY_REQUEST_ID: 1}
    assert found.generation.phases_ns["decode"] == 30 * MS


def test_the_account_of_a_failed_attempt_is_not_the_answers():
    """Two attempts, the engine knows only of the first: the second has no account."""
    trace = build_trace(
        *_ms(("call", 0, 100), ("try1", 0, 40, "call"), ("try2", 50, 100, "call")),
        stages={"call": "generation", "try1": "generation", "try2": "generation"},
    )

    found = analyse([Trace("1", [*trace.spans, _engine_span("1", "try1")])])

    assert found.evidence.n_engine_joined == 1
    assert found.generation.phases_ns["queue"] is None
    assert (found.generation.n_calls, found.generation.n_attempts) == (1, 2)


def test_latencies_tokens_and_speed_come_from_the_calls_that_succeeded():
    """Usage is summed, speeds are per call, and an estimate is said to be one."""
    attributes = {
        "answer": {
            semconv.TTFB_NS: 8 * MS,
            semconv.TTFT_NS: 10 * MS,
            semconv.TTFA_NS: 12 * MS,
            semconv.LAST_TOKEN_NS: 46 * MS,
            semconv.CHUNK_GAPS_NS: (9 * MS, 9 * MS, 18 * MS),
            semconv.INPUT_TOKENS: 100,
            semconv.CACHED_TOKENS: 64,
            semconv.OUTPUT_TOKENS: 10,
            semconv.TOKENS_ESTIMATED: True,
            semconv.ENGINE: "transformers",
            semconv.RESPONSE_MODEL: "tiny",
        }
    }

    report = analyse([_rag(attributes=attributes)])
    found = report.to_dict()["generation"]

    assert [found[key]["p50"] for key in ("ttfb_ms", "ttft_ms", "time_to_first_answer_ms")] == [8, 10, 12]
    assert (found["tpot_ms"]["p50"], found["output_tokens_per_s"]["p50"]) == (4, 250)
    assert (found["chunk_gap_ms"]["n"], found["chunk_gap_ms"]["max"]) == (3, 18)
    assert found["tokens"] == {
        "prompt": 100, "cached_prompt": 64, "output": 10, "reasoning": None, "estimated": True,
        "prompt_calls": 1, "output_calls": 1,
    }  # fmt: skip
    assert report.evidence.engines == ("transformers",)
    assert report.evidence.models == ("tiny",)


def test_an_answer_in_one_piece_is_set_against_the_engines_account():
    """One call of which the engine says 20 + 5 ms to the first token and 15 ms of decoding; one without."""
    spans = _ms(("request", 0, 100), ("chat", 0, 50, "request"), ("llm_request", 0, 40, "chat"))
    stages = {"request": "request", "chat": "generation"}
    client = {semconv.BUFFERED: True, semconv.TTFT_NS: 45 * MS, semconv.LAST_TOKEN_NS: 45 * MS}
    engine = {
        semconv.ENGINE_QUEUE_S: 0.02,
        semconv.ENGINE_PREFILL_S: 0.005,
        semconv.ENGINE_DECODE_S: 0.015,
    }
    seen = build_trace(*spans, stages=stages, attributes={"chat": client, "llm_request": engine})
    blind = build_trace(*spans[:2], stages=stages, attributes={"chat": client}, trace_id="2")

    found = analyse([seen, blind]).generation

    assert (found.n_buffered, found.n_buffered_decoded) == (2, 1)
    assert found.buffered_ttft_ns == 45 * MS
    assert found.buffered_engine_wait_ns == 25 * MS
    assert found.buffered_decode_ns == 15 * MS


def test_a_phase_percentile_is_over_the_calls_that_have_the_phase():
    """Of four calls one connected, in 10 ms: that is its p50; only the mean spreads it over all four."""
    attributes = {semconv.TTFT_NS: 30 * MS, semconv.LAST_TOKEN_NS: 50 * MS}
    connected = attributes | {semconv.CONNECT_NS: 10 * MS, semconv.SEND_OFFSET_NS: 10 * MS}
    traces = [
        _rag(str(number), {"answer": attributes if number > 1 else connected}) for number in range(1, 5)
    ]

    row = next(row for row in analyse(traces).stages if row.stage == "generation")
    found = {phase.name: phase for phase in row.phases}

    assert (found["connect"].n_calls, found["decode"].n_calls) == (1, 4)
    assert (found["connect"].p50_ns, found["connect"].p95_ns) == (10 * MS, 10 * MS)
    assert found["connect"].mean_ns == 2.5 * MS
    assert sum(phase.mean_ns for phase in row.phases) == row.duration_ns.mean


@pytest.mark.parametrize(
    "zero",
    [
        pytest.param({semconv.TPOT_NS: 0.0}, id="stated"),
        pytest.param(
            {semconv.TTFT_NS: 9 * MS, semconv.LAST_TOKEN_NS: 9 * MS, semconv.OUTPUT_TOKENS: 9}, id="stamps"
        ),
    ],
)
def test_a_time_per_token_of_0_is_unknown_in_both_figures(zero):
    """TPOT and output speed are of the same calls, and their p50 agree; here between 2 ms and 6 ms."""
    known = [_rag(str(ms), {"answer": {semconv.TPOT_NS: ms * 1e6}}) for ms in (2, 6)]

    found = analyse([*known, _rag("1", {"answer": zero})]).generation

    assert (found.tpot_ns.n, found.output_tokens_per_s.n) == (2, 2)
    assert (found.tpot_ns.p50, found.output_tokens_per_s.p50) == (4 * MS, 250)


def test_the_writers_measure_of_its_own_cost_is_set_against_the_requests():
    """1 µs a span, 6 spans, a request of 100 ms: 0.006 %."""
    resource = Resource({semconv.OVERHEAD_NS: 1000, semconv.SAMPLE_RATIO: 0.5})
    spans = [span._replace(resource=resource) for span in _rag().spans]

    found = analyse([Trace("1", spans)]).to_dict()["evidence"]

    share = pytest.approx(6e-5)
    assert found["overhead"] == {"per_span_us": 1.0, "per_chunk_us": None, "share_ratio": share}
    assert (found["sampled"], found["sample_ratio"]) == (True, 0.5)


@pytest.mark.parametrize("key", [semconv.STREAM_ITEMS, semconv.CHUNKS])
def test_chunks_of_streams_cost_too(key):
    """1 µs a span, half a µs a chunk, 6 spans and 100 chunks in 100 ms: 0.056 %."""
    resource = Resource({semconv.OVERHEAD_NS: 1000, semconv.CHUNK_OVERHEAD_NS: 500})
    spans = [span._replace(resource=resource) for span in _rag("1", {"answer": {key: 100}}).spans]

    found = analyse([Trace("1", spans)]).to_dict()["evidence"]["overhead"]

    assert found == {"per_span_us": 1.0, "per_chunk_us": 0.5, "share_ratio": pytest.approx(56e-5)}


#  agent |--------------------------------------------------|   0 - 100
#  plan    |-----|                                              10 - 30    prompt 100
#  tool           |----|                                        30 - 40
#  ask a                |--------|                              40 - 60    prompt 150
#  ask b                |------|                                40 - 55    prompt 160, beside a
#  answer                         |-----------------------|     60 - 95    prompt 300
AGENT = _ms(
    ("agent", 0, 100),
    ("plan", 10, 30, "agent"),
    ("tool", 30, 40, "agent"),
    ("ask a", 40, 60, "agent"),
    ("ask b", 40, 55, "agent"),
    ("answer", 60, 95, "agent"),
)


def test_amplification_is_that_of_the_requests_that_ran_an_agent():
    """Four calls, three of them in a row; what was sent again is estimated by the prompts' lengths."""
    calls = ("plan", "ask a", "ask b", "answer")
    prompts = {"plan": 100, "ask a": 150, "ask b": 160, "answer": 300}
    attributes = {
        name: {semconv.INPUT_TOKENS: n, semconv.CACHED_TOKENS: n // 2} for name, n in prompts.items()
    }
    stages = {"agent": "agent", "tool": "tool", **dict.fromkeys(calls, "generation")}

    found = analyse([build_trace(*AGENT, stages=stages, attributes=attributes), _rag("2")]).amplification

    assert (found.n_requests, found.is_agent) == (1, True)
    assert (found.model_calls.mean, found.attempts.mean, found.sequential_depth.mean) == (4, 4, 3)
    assert found.parallelism == pytest.approx(90 / 75)
    assert found.prompt_tokens_resent_ratio == pytest.approx((100 + 150 + 160) / 710)
    assert found.cached_prompt_ratio == pytest.approx(0.5)
    assert found.time_amplification.mean == pytest.approx(75 / 20)


def test_without_an_agent_amplification_is_one_per_call():
    """Only RAG requests: each has one call, and nothing was sent again."""
    found = analyse([_rag()]).amplification

    assert (found.n_requests, found.is_agent) == (1, False)
    assert (found.model_calls.mean, found.time_amplification.mean) == (1, 1)
    assert found.prompt_tokens_resent_ratio is None


def test_what_a_count_of_the_evidence_says_is_no_warning_too():
    """The renderers put counts into words: the same fact is printed once."""
    spans = _ms(("request", 0, 100), ("chat", 0, 50, "request"), ("llm_request", 0, 40, "chat"))
    stages = {"request": "request", "chat": "generation"}
    attributes = {
        "chat": {semconv.TTFT_NS: 20 * MS, semconv.LAST_TOKEN_NS: 40 * MS},
        "llm_request": {semconv.ENGINE_PREFILL_S: 3.0, semconv.ENGINE_DECODE_S: 3.0},
    }

    evidence = analyse([build_trace(*spans, stages=stages, attributes=attributes)]).evidence

    assert (evidence.n_engine_clipped, evidence.warnings) == (1, ())
