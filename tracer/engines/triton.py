"""Triton Inference Server: spans with events, none of the `gen_ai` names.

    InferRequest      |--HTTP_RECV--…--INFER_RESPONSE_COMPLETE (one per response)--|
      MODEL             |REQUEST_START, QUEUE_START ------------------- REQUEST_END|
        compute                    |COMPUTE_START ------------------- COMPUTE_END|

The queue is from the model's QUEUE_START to its COMPUTE_START.  A stream's first response ends the prefill
and its last one the decode.  One response for the whole answer tells no prefill: all computing is decode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.tracer import semconv
from hotspan.tracer.engines.base import NO_ACCOUNT, NS_PER_US, Account, Engine, Series, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotspan.tracer.record import SpanRecord

_SCOPE: Final = "triton-server"
_COMPUTE: Final = "compute"
_RESPONSE: Final = "INFER_RESPONSE_COMPLETE"
_MIN_STREAMED: Final = 3  # first, last, and the empty one that ends a stream


def _is_span(span: SpanRecord) -> bool:
    return span.scope.name == _SCOPE


def _read_spans(span: SpanRecord, below: Sequence[SpanRecord]) -> Account:
    found = _first_computed(below)
    if found is None:
        return NO_ACCOUNT
    model, queued_ns, started_ns = found
    responses = sorted(_moments(span, _RESPONSE))
    is_stream = len(responses) >= _MIN_STREAMED
    end_ns = responses[-1] if responses else None
    first_ns = responses[0] if is_stream else started_ns
    return Account(
        queue_ns=_since(queued_ns, started_ns),
        prefill_ns=_since(started_ns, first_ns) if is_stream else None,
        decode_ns=None if end_ns is None else _since(first_ns, end_ns),
        request_id=text(model.attributes.get(semconv.TRITON_REQUEST_ID)),
    )


def _first_computed(below: Sequence[SpanRecord]) -> tuple[SpanRecord, int, int] | None:
    """Return the model that computed first, when it was queued, and when it began; `None`: none did.

    An ensemble computes nothing itself; a model that calls another has the other's queue in its computing.
    """
    by_id = {span.span_id: span for span in below}
    found = []
    for compute in below:
        model = by_id.get(compute.parent_id or "")
        if compute.name != _COMPUTE or model is None:
            continue
        queued, started = _moments(model, "QUEUE_START"), _moments(compute, "COMPUTE_START")
        if queued and started:
            found.append((started[0], model, queued[0]))
    if not found:
        return None
    started_ns, model, queued_ns = min(found, key=lambda item: item[0])
    return model, queued_ns, started_ns


def _moments(span: SpanRecord, name: str) -> list[int]:
    # An event before its span's start carries no time of its own: some are stamped with the clock's zero.
    return [event.time_ns for event in span.events if event.name == name and event.time_ns >= span.start_ns]


def _since(start_ns: int, end_ns: int) -> int | None:
    return end_ns - start_ns if end_ns >= start_ns else None


ENGINE: Final = Engine(
    name="triton",
    is_span=_is_span,
    read_spans=_read_spans,
    series={
        "nv_inference_pending_request_count": Series("waiting", "gauge"),
        "nv_inference_request_success": Series("requests", "sum"),
        "nv_inference_queue_duration_us": Series("queue", "sum", NS_PER_US),
        "nv_inference_compute_infer_duration_us": Series("decode", "sum", NS_PER_US),
    },
    metrics_option="--metrics-port, and the sampler that port",
)
