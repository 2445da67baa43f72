"""Retries of one model call: HTTP requests below its span or, where there is none, one behind another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.analysis.dialects.reading import read
from hotspan.analysis.dialects.transport import endpoint_stage
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hotspan.tracer.record import SpanRecord

_MAX_PAUSE_NS: Final = 60_000_000_000  # between a request that failed and the one that is sent instead


def with_attempts(spans: list[SpanRecord]) -> list[SpanRecord]:
    """Return the spans with the attempts and the back-off of each model call that was sent more than once."""
    sent: dict[str | None, list[int]] = {}
    for index, span in enumerate(spans):
        if endpoint_stage(span) == semconv.GENERATION:
            sent.setdefault(span.parent_id, []).append(index)
    several = {parent: requests for parent, requests in sent.items() if len(requests) > 1}
    if not several:
        return spans
    calls = {
        span.span_id: index
        for index, span in enumerate(spans)
        if span.span_id in several and read(span).stage == semconv.GENERATION
    }
    for parent, requests in several.items():
        if parent in calls:
            spans[calls[parent]] = _retried(spans[calls[parent]], [spans[index] for index in requests])
        else:
            _join_retries(spans, requests)
    return spans


def _retried(call: SpanRecord, attempts: Sequence[SpanRecord]) -> SpanRecord:
    if semconv.SEND_OFFSET_NS in call.attributes:
        return call  # it counted them itself
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


def _join_retries(spans: list[SpanRecord], requests: Sequence[int]) -> None:
    """Make the last request of each call its span, from the start of the first one; the others are no calls.

    POST  |--x    |--x         |--------|
    call  |-----------------------------|
    """
    for chain in _chains(spans, requests):
        if len(chain) > 1:
            attempts = [spans[index] for index in chain]
            whole = attempts[-1]._replace(start_ns=attempts[0].start_ns)
            spans[chain[-1]] = _retried(whole, attempts)
            for number, index in enumerate(chain[:-1], start=1):
                said = {**spans[index].attributes, semconv.ATTEMPT_NUMBER: number}
                spans[index] = spans[index]._replace(attributes=said)


def _chains(spans: Sequence[SpanRecord], requests: Sequence[int]) -> Iterator[list[int]]:
    """Yield the requests of each call: one that follows a failed one to the same address is the same call."""
    failed: dict[object, list[int]] = {}  # address -> the chain whose last request failed
    for index in sorted(requests, key=lambda i: spans[i].start_ns):
        span = spans[index]
        address = span.attributes.get(semconv.URL) or span.attributes.get(semconv.URL_OLD)
        chain = failed.pop(address, [])
        if chain and not 0 <= span.start_ns - (spans[chain[-1]].end_ns or 0) <= _MAX_PAUSE_NS:
            yield chain
            chain = []
        chain.append(index)
        if span.status == "error":
            failed[address] = chain
        else:
            yield chain
    yield from failed.values()
