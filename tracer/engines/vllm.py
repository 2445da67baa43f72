"""vLLM: one span per request, `metrics` in the response, Prometheus histograms.

The span keeps queue, prefill and decode apart, on the engine's monotonic clock.  Its time to first token and
its end-to-end time start at *arrival*, on the wall clock, and are not used beside them.  The response's
`time_to_first_token_ms` starts when the request is *scheduled*: it is the prefill.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from hotspan.tracer import semconv
from hotspan.tracer.engines.base import (
    NO_ACCOUNT,
    NS_PER_MS,
    NS_PER_S,
    Account,
    Engine,
    Series,
    count,
    duration_ns,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotspan.tracer.record import SpanRecord


_KEYS: Final = frozenset({semconv.ENGINE_PREFILL_S, semconv.ENGINE_DECODE_S, semconv.ENGINE_INFERENCE_S})


def _is_span(span: SpanRecord) -> bool:
    return span.name == semconv.VLLM_SPAN_NAME or not _KEYS.isdisjoint(span.attributes)


def _read_spans(span: SpanRecord, _below: Sequence[SpanRecord]) -> Account:
    said = span.attributes
    return Account(
        queue_ns=duration_ns(said.get(semconv.ENGINE_QUEUE_S)),
        prefill_ns=duration_ns(said.get(semconv.ENGINE_PREFILL_S)),
        decode_ns=duration_ns(said.get(semconv.ENGINE_DECODE_S)),
        request_id=text(said.get(semconv.ENGINE_REQUEST_ID)),
    )


def _read_response(metrics: object) -> Account:
    if not isinstance(metrics, Mapping):
        return NO_ACCOUNT
    drafts = metrics.get("speculative_decoding")
    drafts = drafts if isinstance(drafts, Mapping) else {}
    return Account(
        queue_ns=duration_ns(metrics.get("queue_time_ms"), NS_PER_MS),
        prefill_ns=duration_ns(metrics.get("time_to_first_token_ms"), NS_PER_MS),
        decode_ns=duration_ns(metrics.get("generation_time_ms"), NS_PER_MS),
        n_drafted=count(drafts.get("num_draft_tokens")),
        n_accepted=count(drafts.get("num_accepted_draft_tokens")),
    )


ENGINE: Final = Engine(
    name="vllm",
    is_span=_is_span,
    read_spans=_read_spans,
    response_field="metrics",
    read_response=_read_response,
    series={
        "vllm:num_requests_running": Series("running", "gauge"),
        "vllm:num_requests_waiting": Series("waiting", "gauge"),
        "vllm:kv_cache_usage_perc": Series("kv_cache_usage", "gauge"),
        "vllm:gpu_cache_usage_perc": Series("kv_cache_usage", "gauge"),  # before 0.10
        "vllm:request_success": Series("requests", "sum"),
        "vllm:request_queue_time_seconds": Series("queue", "histogram", NS_PER_S),
        "vllm:request_prefill_time_seconds": Series("prefill", "histogram", NS_PER_S),
        "vllm:request_decode_time_seconds": Series("decode", "histogram", NS_PER_S),
        "vllm:prompt_tokens": Series("prompt_tokens", "sum"),
        "vllm:generation_tokens": Series("output_tokens", "sum"),
        "vllm:prefix_cache_queries": Series("cache_queries", "sum"),
        "vllm:prefix_cache_hits": Series("cache_hits", "sum"),
        "vllm:num_preemptions": Series("preemptions", "sum"),
        "vllm:spec_decode_num_draft_tokens": Series("drafted", "sum"),
        "vllm:spec_decode_num_accepted_tokens": Series("accepted", "sum"),
    },
)
