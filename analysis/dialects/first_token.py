"""The first token and the first chunk: what other writers call them, in which unit, from which clock.

Two things, kept apart.  A chunk may be empty: OpenAI-compatible servers begin with one that bears the role
alone, some of them long before the first token.  Only what looks into the chunks knows the token.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from hotspan.analysis.dialects.chunk_events import firsts_of
from hotspan.analysis.dialects.table import dialect_of
from hotspan.analysis.dialects.usage import measure_of
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotspan.tracer.record import SpanRecord

_NS_PER_S: Final = 1_000_000_000
_NS_PER_MS: Final = 1_000_000
# Key, what it is, the units of a fraction and those of a whole number: the first that fits the span is meant.
_S, _MS = (_NS_PER_S,), (_NS_PER_MS,)
_ANY: Final = (_NS_PER_S, _NS_PER_MS, 1)
_DURATIONS: Final[tuple[tuple[str, str, tuple[int, ...], tuple[int, ...]], ...]] = (
    (semconv.TIME_TO_FIRST_CHUNK, semconv.FIRST_CHUNK_NS, _S, _S),
    (semconv.CLIENT_TIME_TO_FIRST_CHUNK, semconv.FIRST_CHUNK_NS, _S, _S),
    (semconv.VERCEL_FIRST_CHUNK_MS, semconv.FIRST_CHUNK_NS, _MS, _MS),
    (semconv.TIME_TO_FIRST_TOKEN, semconv.TTFT_NS, _ANY, _ANY),
    (semconv.SERVER_TIME_TO_FIRST_TOKEN, semconv.TTFT_NS, _ANY, (_NS_PER_MS, 1)),
    (semconv.TTFT_MS, semconv.TTFT_NS, _MS, _MS),
)
_LEAST_NS: Final = _NS_PER_MS  # no model answers sooner: a number that would be less has another unit
_LONGEST_NS: Final = 1 << 55  # a year
_ROUNDING_NS: Final = _NS_PER_MS  # a first token may be rounded to behind the end of its call
_MOMENTS: Final = ((semconv.LANGFUSE_FIRST_CHUNK, semconv.FIRST_CHUNK_NS),)
FIRST_KEYS: Final = (*(key for key, *_ in _DURATIONS), *(key for key, _ in _MOMENTS))
_STREAM_FLAGS: Final = (semconv.REQUEST_STREAM, semconv.IS_STREAM, semconv.IS_STREAMING)
_NO: Final = (False, "False", "false")


def first_of(span: SpanRecord) -> Iterator[tuple[str, int]]:
    """Yield our key and nanoseconds from the span's start: of the first chunk, the first token, or both."""
    for what, ns in _said(span):
        if ns is not None:
            yield what, ns


def is_whole(span: SpanRecord) -> bool:
    """Return whether a call says itself that its answer was no stream."""
    return any(span.attributes.get(flag) in _NO for flag in _STREAM_FLAGS)


def is_unbelievable(span: SpanRecord) -> bool:
    """Return whether a first token, or chunk, is said to have come at once, or after the end of its call."""
    return any(ns is None for _, ns in _said(span))


def _said(span: SpanRecord) -> Iterator[tuple[str, int | None]]:
    """Yield all that is said, `None` for what cannot be believed."""
    if is_whole(span):
        return  # OpenLIT calls its whole time the first token's
    dialect = dialect_of(span)
    is_chunk = dialect is not None and dialect.stamps_first_chunk
    for key, what, fraction, whole in _DURATIONS:
        if (value := measure_of(span.attributes.get(key))) is not None:
            first = semconv.FIRST_CHUNK_NS if is_chunk else what
            yield first, _duration_ns(span, value, whole if value % 1 == 0 else fraction)
    for key, what in _MOMENTS:
        if (moment := _moment_ns(span.attributes.get(key))) is not None and moment >= span.start_ns:
            yield what, _within(span, moment - span.start_ns)
    for what, ns in firsts_of(span):
        # A span may end when its stream is made: its chunks come later.
        yield what, (ns or None) if what == semconv.FIRST_CHUNK_NS else _within(span, ns)


def _duration_ns(span: SpanRecord, value: float, units: tuple[int, ...]) -> int | None:
    first, *others = units
    if (ns := _within(span, value * first)) is not None:
        return ns
    fitting = (_within(span, value * unit) for unit in others if value * unit >= _LEAST_NS)
    return next((ns for ns in fitting if ns is not None), None)


def _within(span: SpanRecord, ns: float) -> int | None:
    """Return a time from the start of a span that is not 0 and not after its end; an open span has none."""
    if ns < 1:
        return None
    if span.end_ns is None:
        return round(ns) if ns <= _LONGEST_NS else None
    return min(round(ns), span.duration_ns) if ns <= span.duration_ns + _ROUNDING_NS else None


def _moment_ns(value: object) -> int | None:
    """Return an ISO 8601 time, quoted or not, as Unix nanoseconds; without a zone it is UTC."""
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value.strip('"'))
    except ValueError:
        return None
    aware = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    since = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1_000
