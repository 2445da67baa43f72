"""What a model span tells of its answer, and model spans that are embeddings by whom they asked."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from hotspan.analysis.dialects.names import guess
from hotspan.analysis.dialects.usage import model_of, usage_of
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from hotspan.tracer.record import SpanRecord

_TOLD_BY_WRITERS: Final = (
    semconv.FINISH_REASONS,
    semconv.OPENINFERENCE_OUTPUT,
    semconv.OPENINFERENCE_FINISH,
)
_ANSWERS: Final = (
    semconv.OUTPUT_TOKENS,
    semconv.RESPONSE_ID,
    semconv.FIRST_CHUNK_NS,
    semconv.TTFT_NS,
    *_TOLD_BY_WRITERS,
)
_OUTPUTS: Final = (
    semconv.OPENINFERENCE_OUTPUT,
    semconv.MLFLOW_OUTPUTS,
    semconv.LANGFUSE_OUTPUT,
    semconv.TRACELOOP_OUTPUT,
)
# What Python prints of `anthropic.Stream` or of a generator, in quotes where the output is JSON.
_STREAM: Final = re.compile(r'"?<(?:[\w.]*Stream\w*|(?:async_)?generator) object\b[^"]*>"?$')


def has_answer(span: SpanRecord) -> bool:
    """Return whether a model span tells anything of an answer: its size, its id, its end, its text."""
    return any(key in span.attributes for key in _ANSWERS) or _has_message(span)


def is_stream(span: SpanRecord) -> bool:
    """Return whether a span's output is the object that is the stream: it ended before that was read."""
    said = (span.attributes.get(key) for key in _OUTPUTS)
    return any(isinstance(text, str) and _STREAM.match(text) is not None for text in said)


def is_embedding(span: SpanRecord) -> bool:
    """Return whether what its writer calls a model call asked a model that embeds, and was told nothing.

    AWS's clients send both to one address, and some SDKs have one kind for every call of a model.
    """
    said = span.attributes.get(semconv.REQUEST_MODEL) or span.attributes.get(semconv.RESPONSE_MODEL)
    model = said if isinstance(said, str) else model_of(span.attributes)
    if not _embeds(span.name, model or ""):
        return False
    if any(span.attributes.get(key) for key in _TOLD_BY_WRITERS) or _has_message(span):
        return False
    said_tokens = span.attributes.get(semconv.OUTPUT_TOKENS) or dict(usage_of(span.attributes)).get(
        semconv.OUTPUT_TOKENS
    )
    return not said_tokens


@lru_cache(maxsize=4096)
def _embeds(name: str, model: str) -> bool:
    return "embed" in model.lower() or guess(name) == semconv.EMBEDDING


def _has_message(span: SpanRecord) -> bool:
    """Return whether OpenInference's messages hold more than the role, which is written before the answer."""
    return any(
        key.startswith(semconv.OPENINFERENCE_MESSAGES) and not key.endswith(".role")
        for key in span.attributes
    )
