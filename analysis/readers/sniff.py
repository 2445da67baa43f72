"""Which format a trace file has, told by its content and never by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

OTLP_JSON: Final = "OTLP/JSON"
HEAD_BYTES: Final = 4096  # enough to tell text from binary

_MAGIC: Final = (
    (b"\x28\xb5\x2f\xfd", "zstd-compressed data"),
    (b"PAR1", "Parquet"),
    (b"PK\x03\x04", "a zip archive"),
    (b"BZh", "bzip2-compressed data"),
    (b"\xfd7zXZ", "xz-compressed data"),
)

# The first row whose keys are all there names the format.  Each key set is what that writer always writes.
_KEYS: Final = (
    (frozenset({"resourceSpans"}), OTLP_JSON),
    (frozenset({"batches"}), OTLP_JSON),
    (frozenset({"resource_spans"}), OTLP_JSON),
    (frozenset({"resourceLogs"}), "OTLP logs"),
    (frozenset({"resourceMetrics"}), "OTLP metrics"),
    (frozenset({"traceID", "spans"}), "Jaeger JSON"),
    (frozenset({"traceEvents"}), "Chrome trace JSON"),
    (frozenset({"name", "span_kind", "parent_id", "context.trace_id"}), "a Phoenix data frame"),
    (frozenset({"function_ancestry", "payload"}), "NeMo Agent Toolkit's intermediate steps"),
    (frozenset({"context", "name", "start_time", "span_kind"}), "Phoenix span JSON"),
    (frozenset({"context", "name", "start_time", "parent_id"}), "ConsoleSpanExporter output"),
    (frozenset({"info", "data"}), "MLflow trace JSON"),
    (frozenset({"run_type", "trace_id"}), "LangSmith run JSON"),
    (frozenset({"traceId", "id", "timestamp"}), "Zipkin JSON"),
)


def format_of_bytes(head: bytes) -> str | None:
    """Return the name of a binary format by its first bytes, `binary data`, or `None` for text."""
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    if _is_text(head):
        return None
    # Field 1, length-delimited: the first byte of every exported batch, and a line feed in a text.
    return "OTLP protobuf" if head.startswith(b"\x0a") else "binary data"


def _is_text(head: bytes) -> bool:
    if b"\0" in head:
        return False
    try:
        head.decode()
    except UnicodeDecodeError as exc:
        # The head may end in the middle of a character.
        return len(head) == HEAD_BYTES and exc.start > len(head) - 4
    return True


def format_of_document(document: Any) -> str | None:
    """Return the name of the format of one parsed JSON document, or `None` where it is not known.

    An array has the format of its first element; an empty one is an empty OTLP/JSON file.
    """
    if isinstance(document, list):
        return format_of_document(document[0]) if document else OTLP_JSON
    if not isinstance(document, Mapping):
        return None
    for keys, name in _KEYS:
        if keys <= document.keys():
            return name
    return _format_of_data(document["data"]) if "data" in document else None


def _format_of_data(data: Any) -> str | None:
    # Jaeger's API answers {"data": [trace, ...]}, its user interface saves {"data": trace}.
    first = data[0] if isinstance(data, list) and data else data
    if isinstance(first, Mapping) and {"traceID", "spans"} <= first.keys():
        return "Jaeger JSON"
    is_phoenix = isinstance(first, Mapping) and (
        "context" in first or {"trace_id", "project_id"} <= first.keys()
    )
    return "Phoenix span JSON" if is_phoenix else None
