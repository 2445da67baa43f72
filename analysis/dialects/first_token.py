"""The first token and the first chunk: what other writers call them, in which unit, from which clock.

Two things, kept apart.  A chunk may be empty: OpenAI-compatible servers begin with one that bears the role
alone, some of them long before the first token.  Only what looks into the chunks knows the token.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from hotspan.analysis.dialects.usage import json_of
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotspan.tracer.record import Event, SpanRecord

_NS_PER_S: Final = 1_000_000_000
_NS_PER_MS: Final = 1_000_000
# Key, what it is, the unit of a fraction, the units that an integer may have (the first that fits the span).
_DURATIONS: Final[tuple[tuple[str, str, int, tuple[int, ...]], ...]] = (
    (semconv.TIME_TO_FIRST_CHUNK, semconv.FIRST_CHUNK_NS, _NS_PER_S, (_NS_PER_S,)),
    (semconv.CLIENT_TIME_TO_FIRST_CHUNK, semconv.FIRST_CHUNK_NS, _NS_PER_S, (_NS_PER_S,)),
    (semconv.VERCEL_FIRST_CHUNK_MS, semconv.FIRST_CHUNK_NS, _NS_PER_MS, (_NS_PER_MS,)),
    (semconv.TIME_TO_FIRST_TOKEN, semconv.TTFT_NS, _NS_PER_S, (_NS_PER_S, 1)),
    (semconv.SERVER_TIME_TO_FIRST_TOKEN, semconv.TTFT_NS, _NS_PER_S, (_NS_PER_MS, 1)),
    (semconv.TTFT_MS, semconv.TTFT_NS, _NS_PER_MS, (_NS_PER_MS,)),
)
_MOMENTS: Final = ((semconv.LANGFUSE_FIRST_CHUNK, semconv.FIRST_CHUNK_NS),)
_TOKEN_EVENTS: Final = frozenset({"first_token"})  # of our readers, where a file holds the chunks
_N_KINDS: Final = len({semconv.FIRST_CHUNK_NS, semconv.TTFT_NS})
_TOKENS_OF_DELTA: Final = (
    "content",
    "reasoning_content",
    "reasoning",
    "tool_calls",
    "function_call",
    "refusal",
)


def first_of(span: SpanRecord) -> Iterator[tuple[str, int]]:
    """Yield our key and nanoseconds from the span's start: of the first chunk, the first token, or both."""
    for key, what, fraction, integers in _DURATIONS:
        if (ns := _duration_ns(span, span.attributes.get(key), fraction, integers)) is not None:
            yield what, ns
    for key, what in _MOMENTS:
        if (moment := _moment_ns(span.attributes.get(key))) is not None and moment >= span.start_ns:
            yield what, moment - span.start_ns
    yield from _from_events(span)


def _duration_ns(span: SpanRecord, value: object, fraction: int, integers: tuple[int, ...]) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not math.isfinite(value) or value < 0:
        return None
    if isinstance(value, float) and not value.is_integer():
        return round(value * fraction)
    fitting = (round(value * unit) for unit in integers if value * unit <= span.duration_ns)
    return next(fitting, round(value * integers[0]) if len(integers) == 1 else None)


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


def _from_events(span: SpanRecord) -> Iterator[tuple[str, int]]:
    seen: set[str] = set()
    for event in span.events:
        if len(seen) == _N_KINDS:
            return
        for what in _kinds_of(event):
            if what not in seen and event.time_ns >= span.start_ns:
                seen.add(what)
                yield what, event.time_ns - span.start_ns


def _kinds_of(event: Event) -> Iterator[str]:
    """Yield what an event is the first of, should it be the first."""
    chunk = event.attributes.get(semconv.MLFLOW_CHUNK)
    if isinstance(chunk, str):
        yield semconv.FIRST_CHUNK_NS
        if _has_token(json_of(chunk)):
            yield semconv.TTFT_NS
    elif event.name in semconv.CHUNK_EVENTS:
        yield semconv.FIRST_CHUNK_NS
    elif event.name in _TOKEN_EVENTS:
        yield semconv.TTFT_NS


def _has_token(chunk: object) -> bool:
    """Return whether a chunk of an OpenAI-compatible stream bears a token."""
    choices = chunk.get("choices") if isinstance(chunk, dict) else None
    listed = choices if isinstance(choices, list) else ()
    deltas = [choice.get("delta") for choice in listed if isinstance(choice, dict)]
    return any(delta.get(key) for delta in deltas if isinstance(delta, dict) for key in _TOKENS_OF_DELTA)
