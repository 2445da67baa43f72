"""Calls whose span ends before they do: at the response's headers, or when the stream is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.analysis.dialects.answers import is_stream
from hotspan.analysis.dialects.chunk_events import chunks_of
from hotspan.analysis.dialects.kinds import OPERATION
from hotspan.analysis.dialects.rules import kind_of
from hotspan.analysis.dialects.table import dialect_of
from hotspan.analysis.dialects.usage import measure_of, usage_of
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from hotspan.tracer.record import AttributeValue, SpanRecord

    Key = tuple[str | None, str, AttributeValue]  # parent, writer, model

_NS_PER_S: Final = 1_000_000_000
_OF_THE_ANSWER: Final = (
    semconv.INPUT_TOKENS,
    semconv.OUTPUT_TOKENS,
    semconv.CACHED_TOKENS,
    semconv.REASONING_TOKENS,
    semconv.RESPONSE_ID,
    semconv.RESPONSE_MODEL,
    semconv.FINISH_REASONS,
    semconv.OUTPUT_MESSAGES,
)


def until_last_chunk(span: SpanRecord) -> SpanRecord:
    """Return a model call's span until the last of its chunks, where its writer ended it before that.

        span    |--|                         ends when the object is made that is the stream
        events           |                   of the first chunk, or of each

    Its true end is not known, where there is an event of the first chunk alone, or none.
    """
    chunks = chunks_of(span) if span.events and span.end_ns is not None else None
    if chunks is None:
        return _cut_short(span) if _returns_stream(span) or is_stream(span) else span
    first, last = chunks
    if last <= (span.end_ns or 0):
        return span
    whole = span._replace(end_ns=last)
    return whole if first <= (span.end_ns or 0) else _cut_short(whole)


def _returns_stream(span: SpanRecord) -> bool:
    dialect = dialect_of(span)
    return (
        dialect is not None
        and dialect.returns_stream is not None
        and dialect.returns_stream.search(span.name) is not None
    )


def _cut_short(span: SpanRecord) -> SpanRecord:
    return span._replace(attributes={**span.attributes, semconv.CUT_SHORT: True})


def with_endings(spans: list[SpanRecord]) -> list[SpanRecord]:
    """Return the spans with each streamed call of Logfire's running until its log, and knowing its answer.

        chat span   |--|                     ends when the response's headers come
        log                          |       no length; its `duration` goes back to the first read

    The call of a log is the sibling for the same model that ended nearest to where the reading began.
    """
    endings = sorted((span for span in spans if _is_ending(span)), key=lambda span: span.start_ns)
    if not endings:
        return spans
    calls: dict[Key, list[int]] = {}
    for index, span in enumerate(spans):
        if span.end_ns is not None and not _is_ending(span) and _is_chat(span):
            calls.setdefault(_key(span), []).append(index)
    for ending in endings:
        siblings = calls.get(_key(ending), [])
        read_from = ending.start_ns - round(_seconds(ending) * _NS_PER_S)
        begun = (index for index in siblings if spans[index].start_ns <= read_from)
        call = min(begun, key=lambda i: abs((spans[i].end_ns or 0) - read_from), default=None)
        if call is not None:
            siblings.remove(call)
            spans[call] = _joined(spans[call], ending)
    return spans


def _is_ending(span: SpanRecord) -> bool:
    return span.attributes.get(semconv.LOGFIRE_TYPE) == "log" and _seconds(span) >= 0 and _is_chat(span)


def _is_chat(span: SpanRecord) -> bool:
    return kind_of(span, (OPERATION,)) == semconv.GENERATION


def _seconds(span: SpanRecord) -> float:
    value = measure_of(span.attributes.get(semconv.LOGFIRE_DURATION))
    return -1.0 if value is None else value


def _key(span: SpanRecord) -> Key:
    return span.parent_id, span.scope.name, span.attributes.get(semconv.REQUEST_MODEL)


def _joined(call: SpanRecord, ending: SpanRecord) -> SpanRecord:
    answer = {key: ending.attributes[key] for key in _OF_THE_ANSWER if key in ending.attributes}
    answer.update(usage_of(ending.attributes))
    end_ns = max(call.end_ns or call.start_ns, ending.start_ns)
    return call._replace(end_ns=end_ns, attributes={**call.attributes, **answer})
