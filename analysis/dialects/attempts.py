"""Retries of one model call: HTTP requests below its span or, where there is none, one behind another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.analysis.dialects.reading import read
from hotspan.analysis.dialects.transport import endpoint_stage
from hotspan.analysis.dialects.usage import count_of
from hotspan.tracer import semconv
from hotspan.tracer.record import Event

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hotspan.tracer.record import AttributeValue, SpanRecord

_FAILED_FROM: Final = 400
_MAX_PAUSE_NS: Final = 60_000_000_000  # between a request that failed and the one that is sent instead


def with_attempts(spans: list[SpanRecord]) -> list[SpanRecord]:
    """Return the spans with the attempts of each model call: how many, why some failed, the back-off."""
    sent: dict[str | None, list[int]] = {}
    for index, span in enumerate(spans):
        if endpoint_stage(span) == semconv.GENERATION:
            sent.setdefault(span.parent_id, []).append(index)
    telling = {
        parent: requests
        for parent, requests in sent.items()
        if len(requests) > 1 or has_failed(spans[requests[0]])
    }
    if not telling:
        return spans
    calls = {
        span.span_id: index
        for index, span in enumerate(spans)
        if span.span_id in telling and read(span).stage == semconv.GENERATION
    }
    for parent, requests in telling.items():
        if parent in calls:
            spans[calls[parent]] = _retried(spans[calls[parent]], [spans[index] for index in requests])
        else:
            _join_retries(spans, requests)
    return spans


def _retried(call: SpanRecord, attempts: Sequence[SpanRecord]) -> SpanRecord:
    if semconv.SEND_OFFSET_NS in call.attributes:
        return call  # it counted them itself
    events = sorted((*call.events, *_failures(attempts)), key=lambda event: event.time_ns)
    call = call._replace(events=tuple(events))
    if len(attempts) == 1:
        return call
    first, last = (chosen(span.start_ns for span in attempts) for chosen in (min, max))
    offset = max(last - call.start_ns, 0)
    found = {
        **call.attributes,
        semconv.ATTEMPTS: len(attempts),
        semconv.BACKOFF_NS: last - first,
        semconv.SEND_OFFSET_NS: offset,
    }
    # Their tokens count from the span's start, ours from the moment that was sent.
    for key in (semconv.TTFT_NS, semconv.FIRST_CHUNK_NS, semconv.LAST_TOKEN_NS):
        value = found.pop(key, None)
        if isinstance(value, int) and value > offset:
            found[key] = value - offset
    return call._replace(attributes=found)


def _failures(attempts: Sequence[SpanRecord]) -> Iterator[Event]:
    """Yield the event that our own clients write for each attempt that failed."""
    for number, span in enumerate(sorted(attempts, key=lambda span: span.start_ns), start=1):
        if has_failed(span):
            said: dict[str, AttributeValue] = {
                semconv.ATTEMPT_NUMBER: number,
                semconv.ATTEMPT_DURATION_NS: span.duration_ns,
            }
            if (status := _status(span)) is not None:
                said[semconv.HTTP_STATUS] = status
            elif isinstance(error := span.attributes.get(semconv.ERROR_TYPE), str):
                said[semconv.ERROR_TYPE] = error
            yield Event(semconv.ATTEMPT_EVENT, span.start_ns + span.duration_ns, said)


def has_failed(request: SpanRecord) -> bool:
    """Return whether an HTTP request failed, by its span's status or its answer's."""
    return request.status == "error" or (_status(request) or 0) >= _FAILED_FROM


def _status(request: SpanRecord) -> int | None:
    """Return the HTTP status of a request's answer."""
    said = (count_of(request.attributes.get(key)) for key in (semconv.HTTP_STATUS, semconv.HTTP_STATUS_OLD))
    return next((status for status in said if status is not None), None)


def _join_retries(spans: list[SpanRecord], requests: Sequence[int]) -> None:
    """Make the last request of each call its span, from the start of the first one; the others are no calls.

    POST  |--x    |--x         |--------|
    call  |-----------------------------|
    """
    for chain in _chains(spans, requests):
        if len(chain) > 1 or has_failed(spans[chain[0]]):
            attempts = [spans[index] for index in chain]
            whole = attempts[-1]._replace(start_ns=attempts[0].start_ns)
            spans[chain[-1]] = _retried(whole, attempts)
            for number, index in enumerate(chain[:-1], start=1):
                said = {**spans[index].attributes, semconv.ATTEMPT_NUMBER: number}
                spans[index] = spans[index]._replace(attributes=said)


def _chains(spans: Sequence[SpanRecord], requests: Sequence[int]) -> Iterator[list[int]]:
    """Yield the requests of each call: one that follows a failed one to the same address is the same call."""
    failed: dict[str, list[int]] = {}  # address -> the chain whose last request failed
    for index in sorted(requests, key=lambda i: spans[i].start_ns):
        span = spans[index]
        address = str(span.attributes.get(semconv.URL) or span.attributes.get(semconv.URL_OLD))
        chain = failed.pop(address, [])
        if chain and not 0 <= span.start_ns - (spans[chain[-1]].end_ns or 0) <= _MAX_PAUSE_NS:
            yield chain
            chain = []
        chain.append(index)
        if has_failed(span):
            failed[address] = chain
        else:
            yield chain
    yield from failed.values()
