"""Case 060: a "queue wait" of 131 ms while latency rose by 135 s: the rest hid in another stage."""

from __future__ import annotations

from hotspan.analysis import analyse
from hotspan.tracer import semconv
from hotspan.tracer.record import SpanRecord, Trace
from hotspan.tracer.testing import build_trace

S = 1_000_000_000


def test_what_the_engines_queue_does_not_explain_is_a_row_of_its_own():
    """The engine's queue is its own scheduler's; the wait before it is shown beside it, and they add up."""
    #  |-- 0.2 send --|---------------- 135 before the engine -----|0.131 queue|-- 1 prefill --|- 3.669 -|
    stamps = {semconv.REQUEST_WRITE_NS: S // 5, semconv.TTFT_NS: 136_331_000_000}
    stamps[semconv.LAST_TOKEN_NS] = 140 * S
    trace = build_trace(("chat", 0, 140 * S), stages={"chat": "generation"}, attributes={"chat": stamps})
    said = {
        semconv.ENGINE_QUEUE_S: 0.131,
        semconv.ENGINE_PREFILL_S: 1.0,
        semconv.ENGINE_DECODE_S: 3.669,
    }
    call = trace.spans[0]
    served = SpanRecord(call.trace_id, "e" * 16, call.span_id, "llm_request", 0, 5 * S, said, "server")

    phases = analyse([Trace(call.trace_id, [call, served])]).generation.phases_ns

    assert phases["queue"] == 131_000_000
    assert phases["server_before_engine"] == 135 * S
    assert sum(ns or 0 for ns in phases.values()) == 140 * S
