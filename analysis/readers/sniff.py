"""Which format a trace file has, told by its content and never by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hotspan.analysis.readers import console, flat, jaeger, langsmith, mlflow, nat, phoenix
from hotspan.analysis.readers.framing import WRAPPERS

if TYPE_CHECKING:
    from hotspan.analysis.readers.dialect import Read

SPAN_ID: Final = "context.span_id"  # a column of Phoenix's; its data frame has it as the index


class Dialect(NamedTuple):
    """One way of writing spans as JSON objects or rows of a table."""

    name: str
    keys: frozenset[str]  # that every object of it has
    read: Read


def _dialect(name: str, keys: str, read: Read) -> Dialect:
    return Dialect(name, frozenset(keys.split()), read)


CONSOLE: Final = _dialect("ConsoleSpanExporter output", "context name start_time kind resource", console.read)
# The first row whose keys an object has names its dialect: what each writer always writes.
DIALECTS: Final = (
    _dialect("Jaeger JSON", "traceID spans", jaeger.read),
    _dialect("Jaeger JSON", "traceID spanID operationName startTime", jaeger.read),
    _dialect("Phoenix's data frame", f"name parent_id start_time context.trace_id {SPAN_ID}", phoenix.read),
    _dialect("Phoenix's data frame by columns", "name parent_id context.trace_id", phoenix.read_columns),
    _dialect("NeMo Agent Toolkit's intermediate steps", "function_ancestry payload", nat.read),
    _dialect("LangSmith runs", "id name run_type start_time", langsmith.read),
    _dialect("Phoenix span JSON", "context name start_time span_kind status_code", phoenix.read),
    _dialect("Phoenix span JSON", "trace_id project_id spans", phoenix.read),
    CONSOLE,
    _dialect("MLflow trace JSON", "info data", mlflow.read),
    _dialect("MLflow spans", "context name start_time status_code", mlflow.read),
    _dialect("MLflow or OTLP spans", "trace_id span_id name start_time_unix_nano", mlflow.read),
    _dialect("Hotspan's table", "trace_id span_id name start_ns end_ns", flat.read),
)
OTLP_KEYS: Final = ("resourceSpans", "batches", "resource_spans", "resourceMetrics")

_OTLP_ANSWERS: Final = ("trace", "result", "data")

BINARY: Final = "binary data"  # of no format that is known, or a damaged text

_UTF_16: Final = "a text in UTF-16 (PowerShell's > writes it; Out-File -Encoding utf8 does not)"
_MAGIC: Final = (
    (b"PK\x03\x04", "a zip archive"),
    (b"BZh", "bzip2-compressed data"),
    (b"\xfd7zXZ", "xz-compressed data"),
    (b"SQLite format 3", "an SQLite database"),
    *((b"\xff\xfe" + start.encode("utf-16-le"), _UTF_16) for start in "{["),
    *((b"\xfe\xff" + start.encode("utf-16-be"), _UTF_16) for start in "{["),
)
# What is JSON and known, but holds no spans that can be read.
_OTHERS: Final = (
    (frozenset({"resourceLogs"}), "OTLP logs"),
    (frozenset({"traceEvents"}), "Chrome trace JSON"),
    (frozenset({"traceId", "id", "timestamp"}), "Zipkin JSON"),
    (frozenset({"$schema", "profiles", "shared"}), "a speedscope profile"),
)


def binary_format(head: bytes) -> str | None:
    """Return the name of a binary format by its first bytes, `binary data`, or `None` for text."""
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    return None if _is_text(head) else BINARY


def _is_text(head: bytes) -> bool:
    if b"\0" in head:
        return False
    try:
        head.decode()
    except UnicodeDecodeError as exc:
        return exc.start > len(head) - 4  # the head may end in the middle of a character
    return True


def dialect_of_keys(keys: frozenset[str]) -> Dialect | None:
    """Return the dialect of an object or a table with these keys, or `None`."""
    return next((dialect for dialect in DIALECTS if dialect.keys <= keys), None)


def is_otlp(document: Any) -> bool:
    """Return whether a JSON object is an OTLP export, or an API's answer that holds one."""
    if not isinstance(document, Mapping):
        return False
    answers = (document.get(key) for key in _OTLP_ANSWERS)
    found = (document, *(answer for answer in answers if isinstance(answer, Mapping)))
    return any(key in export for export in found for key in OTLP_KEYS)


def dialect_of(document: Any) -> Dialect | None:
    """Return the dialect of a JSON object, or `None` where it is not known."""
    if not isinstance(document, Mapping):
        return None
    inner = document.get("data")
    if isinstance(inner, Mapping) and "traceID" in inner:  # as Jaeger's user interface saves it
        return dialect_of(inner)
    found = dialect_of_keys(frozenset(document))
    spans = document.get("spans")
    if found is None and isinstance(spans, list) and spans:  # MLflow keeps them without their trace
        return dialect_of(spans[0])
    return found


def wrapped(document: Any) -> list[Any] | None:
    """Return the array that an API's answer holds, or `None` where the object is no such answer."""
    if not isinstance(document, Mapping) or is_otlp(document) or dialect_of(document) is not None:
        return None
    found = (document.get(key.decode()) for key in WRAPPERS)
    return next((array for array in found if isinstance(array, list)), None)


def other_format(document: Any) -> str | None:
    """Return the name of a known format that holds no spans that can be read, or `None`."""
    if not isinstance(document, Mapping):
        return None
    return next((name for keys, name in _OTHERS if keys <= document.keys()), None)
