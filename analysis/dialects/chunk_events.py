"""The events of a stream's chunks: when the first and the last one came, and which of them bear tokens.

Some writers note of each chunk what is in it; of others only the times are known, and a chunk may be empty.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from hotspan.analysis.dialects.usage import json_of
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hotspan.tracer.record import Attributes, AttributeValue, Event, SpanRecord

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
_AT_ONCE_NS: Final = 1_000_000  # no model makes several tokens in less
_SEVERAL: Final = 2
_SHORT_ANSWER: Final = 4  # events of one token alone: role, token, end, usage; and fewer tokens are no stream


def chunks_of(span: SpanRecord) -> tuple[int, int] | None:
    """Return when the first and the last chunk came by the span's events; `None` where they tell of none."""
    told = (event.time_ns for event in span.events if any(_kinds_of(event)))
    times = [time_ns for time_ns in told if time_ns >= span.start_ns]
    return (min(times), max(times)) if times else None


def firsts_of(span: SpanRecord) -> Iterator[tuple[str, int]]:
    """Yield our key and nanoseconds from the span's start: of the first chunk, the first token, or both."""
    seen: set[str] = set()
    for event in span.events:
        if len(seen) == _N_KINDS:
            return
        for what in _kinds_of(event):
            if what not in seen and event.time_ns >= span.start_ns:
                seen.add(what)
                yield what, event.time_ns - span.start_ns


def after_first(span: SpanRecord, said: Attributes) -> Iterator[tuple[str, AttributeValue]]:
    """Yield, by our keys, what the events tell of a stream after its first token.

    Args:
        span: A model call; where some of its events were lost, nothing is told.
        said: Its attributes by our keys: the first token, the number of tokens.
    """
    if len(span.events) < _SEVERAL or span.n_dropped_events:
        return
    tokens = _times(span, semconv.TTFT_NS)
    is_buffered = _is_buffered(span, tokens, said.get(semconv.OUTPUT_TOKENS))
    if is_buffered:
        yield semconv.BUFFERED, True
    first_ns = said.get(semconv.TTFT_NS)
    if not tokens or not isinstance(first_ns, int) or (last_ns := tokens[-1] - span.start_ns) < first_ns:
        return
    yield semconv.LAST_TOKEN_NS, first_ns if is_buffered else last_ns  # what came together has one stamp
    if len(tokens) >= _SEVERAL and not is_buffered:
        yield semconv.CHUNK_GAPS_NS, tuple(end - start for start, end in pairwise(tokens))


def _is_buffered(span: SpanRecord, tokens: Sequence[int], n_tokens: AttributeValue) -> bool:
    """Return whether the tokens of a stream all came at once; of one token alone nothing can be told."""
    times = tokens or _times(span, semconv.FIRST_CHUNK_NS)
    if len(times) < _SEVERAL or times[-1] - times[0] >= _AT_ONCE_NS:
        return False
    is_long = isinstance(n_tokens, int) and n_tokens >= _SHORT_ANSWER
    return is_long or bool(tokens) or len(times) > _SHORT_ANSWER


def _times(span: SpanRecord, kind: str) -> list[int]:
    """Return when the chunks came, or those of which the event says that they bear a token, in order."""
    return sorted(
        event.time_ns
        for event in span.events
        if event.time_ns >= span.start_ns and event.name not in _TOKEN_EVENTS and kind in _kinds_of(event)
    )


def _kinds_of(event: Event) -> Iterator[str]:
    """Yield what an event is the first of, should it be the first."""
    chunk = event.attributes.get(semconv.MLFLOW_CHUNK)
    if isinstance(chunk, str):
        yield semconv.FIRST_CHUNK_NS
        if _has_token(json_of(chunk)):
            yield semconv.TTFT_NS
    elif event.name in semconv.CHUNK_EVENTS:
        yield semconv.FIRST_CHUNK_NS
        if event.name == semconv.LANGCHAIN_EVENT and _has_langchain_token(event.attributes):
            yield semconv.TTFT_NS
    elif event.name in _TOKEN_EVENTS:
        yield semconv.TTFT_NS


def _has_langchain_token(attributes: Attributes) -> bool:
    """Return whether a chunk of LangChain's bears a token: text, reasoning or the call of a tool."""
    if attributes.get(semconv.LANGCHAIN_TEXT):
        return True
    text = attributes.get(semconv.LANGCHAIN_CHUNK)
    message: object = json_of(text) if isinstance(text, str) else None
    for key in ("kwargs", "message", "kwargs"):
        message = message.get(key) if isinstance(message, dict) else None
    if not isinstance(message, dict):
        return False
    more = message.get("additional_kwargs")
    levels = (message, more) if isinstance(more, dict) else (message,)
    found = (level.get(key) for level in levels for key in (*_TOKENS_OF_DELTA, "tool_call_chunks"))
    return any(isinstance(value, str | list) and value for value in found)


def _has_token(chunk: object) -> bool:
    """Return whether a chunk of an OpenAI-compatible stream bears a token."""
    choices = chunk.get("choices") if isinstance(chunk, dict) else None
    listed = choices if isinstance(choices, list) else ()
    deltas = [choice.get("delta") for choice in listed if isinstance(choice, dict)]
    return any(delta.get(key) for delta in deltas if isinstance(delta, dict) for key in _TOKENS_OF_DELTA)
