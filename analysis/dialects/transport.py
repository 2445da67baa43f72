"""Spans of transports and databases: they have no stage, but an address may say what was asked for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hotspan.analysis.dialects.names import words_of
from hotspan.analysis.dialects.rules import NO_STAGE, Reading
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from hotspan.tracer.record import Attributes, SpanRecord

_TRANSPORT_KEYS: Final = (
    semconv.HTTP_METHOD,
    semconv.HTTP_METHOD_OLD,
    semconv.RPC_SYSTEM,
    semconv.MESSAGING_SYSTEM,
)
_DATABASE_KEYS: Final = (semconv.DB_SYSTEM, semconv.DB_SYSTEM_OLD)
_URL_KEYS: Final = (semconv.URL, semconv.URL_OLD)
# The end of an address that OpenAI-compatible servers, Anthropic, Ollama, Cohere, Bedrock, Gemini, Jina, TGI,
# text-embeddings-inference, SGLang and llama.cpp answer at; the first that fits.
_ENDPOINTS: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"/(?:embeddings?|embed)$|/model/[^/]*embed[^/]*/invoke$"), semconv.EMBEDDING),
    (re.compile(r":(?:embedContent|batchEmbedContents)$"), semconv.EMBEDDING),
    (re.compile(r"/re-?rank$|/model/[^/]*rerank[^/]*/invoke$"), semconv.RERANK),
    (
        re.compile(
            r"/(?:chat/completions|completions?|responses|messages|(?:api|v[12])/chat|generate(?:_stream)?)$"
        ),
        semconv.GENERATION,
    ),
    (
        re.compile(r"/model/[^/]+/(?:converse(?:-stream)?|invoke(?:-with-response-stream)?)$"),
        semconv.GENERATION,
    ),
    (re.compile(r":(?:generate|streamGenerate)Content$"), semconv.GENERATION),
)
_VECTOR_STORES: Final = frozenset({
    "chroma", "lancedb", "marqo", "milvus", "pgvector", "pinecone", "qdrant", "vespa", "weaviate",
})  # fmt: skip
_READS: Final = re.compile(r"\b(?:query|search|retrieve|recommend|near)\b")


def waits_for_the_end(span: SpanRecord) -> bool:
    """Return whether a server's span waits for its client to hang up, which nobody waits for."""
    return span.attributes.get(semconv.ASGI_EVENT) in semconv.ASGI_HANG_UPS


def endpoint_stage(span: SpanRecord) -> str | None:
    """Return what a client's HTTP span asked for, by the end of its address."""
    if span.kind == "server":
        return None
    for key in _URL_KEYS:
        url = span.attributes.get(key)
        if isinstance(url, str):
            path = re.split("[?#]", url, maxsplit=1)[0].rstrip("/")
            return next((stage for pattern, stage in _ENDPOINTS if pattern.search(path)), None)
    return None


def transport_reading(span: SpanRecord) -> Reading | None:
    """Return the reading of a transport's or a database's span; `None` where it is neither."""
    attributes = span.attributes
    if any(key in attributes for key in _TRANSPORT_KEYS):
        if semconv.ATTEMPT_NUMBER in attributes:  # the call is the request that was sent instead
            return NO_STAGE
        return Reading(stage, is_guess=True) if (stage := endpoint_stage(span)) else NO_STAGE
    if (system := _database(attributes)) is not None:
        reads = system.lower() in _VECTOR_STORES and _is_search(span)
        return Reading(semconv.RETRIEVAL, is_guess=True) if reads else NO_STAGE
    return None


def _is_search(span: SpanRecord) -> bool:
    """Return whether a vector store was asked for what is near: OpenLIT names Chroma's searches `GET`."""
    if semconv.DB_TOP_K in span.attributes:
        return True
    operation = span.attributes.get(semconv.DB_OPERATION)
    said = span.name if not isinstance(operation, str) else f"{span.name} {operation}"
    return _READS.search(words_of(said)) is not None


def _database(attributes: Attributes) -> str | None:
    return next((value for key in _DATABASE_KEYS if isinstance(value := attributes.get(key), str)), None)
