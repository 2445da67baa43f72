"""SGLang: a tree of stage spans per request, `meta_info` in responses that are not streamed.

Its `time_in_model_prefill` *includes* the queue, and `time_in_queue` is never set: the two are told apart by
the stage spans alone.  Without these (a low trace level) both are one, undivided.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from hotspan.tracer import semconv
from hotspan.tracer.engines.base import (
    NO_ACCOUNT,
    NS_PER_S,
    Account,
    Engine,
    Series,
    between,
    duration_ns,
    less,
    plus,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotspan.tracer.record import SpanRecord

_SCOPE: Final = "sglang server"
_ROOT_MODULE: Final = ("module", "sglang::request")
_QUEUE: Final = frozenset({"prefill_waiting"})
_PREFILL: Final = frozenset({"prefill_forward"})  # its chunks lie inside it
_DECODE: Final = frozenset({"decode_waiting", "decode_forward"})


def _is_span(span: SpanRecord) -> bool:
    key, value = _ROOT_MODULE
    return span.scope.name == _SCOPE or span.attributes.get(key) == value


def _read_spans(span: SpanRecord, below: Sequence[SpanRecord]) -> Account:
    said = span.attributes
    queue, prefill = _spent(below, _QUEUE), _spent(below, _PREFILL)
    both = None if prefill is not None else duration_ns(said.get(semconv.ENGINE_PREFILL_S))
    decode = _spent(below, _DECODE)
    return Account(
        queue_ns=None if both is not None else queue,
        prefill_ns=prefill,
        decode_ns=duration_ns(said.get(semconv.ENGINE_DECODE_S)) if decode is None else decode,
        undivided_ns=both,
        request_id=text(said.get(semconv.ENGINE_REQUEST_ID)),
    )


def _spent(below: Sequence[SpanRecord], names: frozenset[str]) -> int | None:
    return plus(*(span.duration_ns for span in below if span.name in names))


def _read_response(meta_info: object) -> Account:
    if not isinstance(meta_info, Mapping):
        return NO_ACCOUNT
    first = duration_ns(meta_info.get("first_token_latency"))
    return Account(
        queue_ns=duration_ns(meta_info.get("queue_time")),
        prefill_ns=between(meta_info.get("prefill_finished_time"), meta_info.get("forward_entry_time")),
        # Both latencies start at the request's arrival: their difference is the decode.
        decode_ns=less(duration_ns(meta_info.get("e2e_latency")), first),
        request_id=text(meta_info.get("id")),
    )


ENGINE: Final = Engine(
    name="sglang",
    is_span=_is_span,
    read_spans=_read_spans,
    response_field="meta_info",
    read_response=_read_response,
    series={
        "sglang:num_running_reqs": Series("running", "gauge"),
        "sglang:num_queue_reqs": Series("waiting", "gauge"),
        "sglang:token_usage": Series("kv_cache_usage", "gauge"),
        "sglang:num_requests": Series("requests", "sum"),
        "sglang:queue_time_seconds": Series("queue", "histogram", NS_PER_S),
        "sglang:per_stage_req_latency_seconds": Series(
            "prefill", "histogram", NS_PER_S, only=("stage", "prefill_forward")
        ),
        "sglang:prompt_tokens": Series("prompt_tokens", "sum"),
        "sglang:generation_tokens": Series("output_tokens", "sum"),
        "sglang:cached_tokens": Series("cache_hits", "sum"),
    },
    metrics_option="--enable-metrics",
)
