"""TensorRT-LLM: one span per request, with the queue and no prefill.

Queue, time to first token and end-to-end time all start at the request's arrival, so that prefill and decode
are their differences.  Read from its sources; no such server has been run against this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.tracer import semconv
from hotspan.tracer.engines.base import NS_PER_S, Account, Engine, Series, duration_ns, less, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotspan.tracer.record import SpanRecord

_KEYS: Final = frozenset({semconv.ENGINE_QUEUE_S, semconv.ENGINE_TTFT_S, semconv.ENGINE_E2E_S})


def _is_span(span: SpanRecord) -> bool:
    return not _KEYS.isdisjoint(span.attributes)


def _read_spans(span: SpanRecord, _below: Sequence[SpanRecord]) -> Account:
    said = span.attributes
    queue = duration_ns(said.get(semconv.ENGINE_QUEUE_S))
    first = duration_ns(said.get(semconv.ENGINE_TTFT_S))
    return Account(
        queue_ns=queue,
        prefill_ns=less(first, queue),
        decode_ns=less(duration_ns(said.get(semconv.ENGINE_E2E_S)), first),
        undivided_ns=first if queue is None else None,
        request_id=text(said.get(semconv.ENGINE_REQUEST_ID)),
    )


ENGINE: Final = Engine(
    name="trtllm",
    is_span=_is_span,
    read_spans=_read_spans,
    series={
        "trtllm_num_requests_running": Series("running", "gauge"),
        "trtllm_num_requests_waiting": Series("waiting", "gauge"),
        "trtllm_kv_cache_utilization": Series("kv_cache_usage", "gauge"),
        "trtllm_request_success": Series("requests", "sum"),
        "trtllm_request_queue_time_seconds": Series("queue", "histogram", NS_PER_S),
        "trtllm_request_prefill_time_seconds": Series("prefill", "histogram", NS_PER_S),
        "trtllm_request_decode_time_seconds": Series("decode", "histogram", NS_PER_S),
        "trtllm_prompt_tokens": Series("prompt_tokens", "sum"),
        "trtllm_generation_tokens": Series("output_tokens", "sum"),
    },
    metrics_paths=("/prometheus/metrics",),
    metrics_option="return_perf_metrics: true",
)
