"""Retries inside one model call: the HTTP spans below it, each an attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotspan.analysis.dialects.reading import read
from hotspan.analysis.dialects.transport import endpoint_stage
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from hotspan.tracer.record import SpanRecord


def with_attempts(spans: list[SpanRecord]) -> list[SpanRecord]:
    """Return the spans with the attempts and the back-off of each model call that was sent more than once."""
    sent: dict[str, list[SpanRecord]] = {}
    for span in spans:
        if span.parent_id is not None and endpoint_stage(span) == semconv.GENERATION:
            sent.setdefault(span.parent_id, []).append(span)
    if all(len(attempts) == 1 for attempts in sent.values()):
        return spans
    return [
        _retried(span, attempts)
        if len(attempts := sent.get(span.span_id, [])) > 1 and read(span).stage == semconv.GENERATION
        else span
        for span in spans
    ]


def _retried(call: SpanRecord, attempts: list[SpanRecord]) -> SpanRecord:
    first, last = (chosen(span.start_ns for span in attempts) for chosen in (min, max))
    offset = max(last - call.start_ns, 0)
    found = {
        semconv.ATTEMPTS: len(attempts),
        semconv.BACKOFF_NS: last - first,
        semconv.SEND_OFFSET_NS: offset,
    }
    # Their first token counts from the span's start, ours from the moment that was sent.
    for key in (semconv.TTFT_NS, semconv.FIRST_CHUNK_NS):
        value = call.attributes.get(key)
        if isinstance(value, int) and value >= offset:
            found[key] = value - offset
    return call._replace(attributes={**call.attributes, **found})
