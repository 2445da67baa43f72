"""The types of OTLP/JSON documents, as far as anything of them is read, and what decodes them.

The usual form is strict in its types; the loose one takes a document span by span, and of a span whatever
there is.  Attributes stay text: `otlp_values` decodes them.
"""

from __future__ import annotations

from typing import Final

import msgspec

Integer = int | str | float  # 64-bit integers are strings in OTLP/JSON; some writers send numbers
Count = int | str | None

_NO_LIST: Final = msgspec.Raw(b"")


class JsonEvent(msgspec.Struct, rename="camel", gc=False):
    """An event of a span."""

    name: str = ""
    time_unix_nano: Integer = 0
    attributes: msgspec.Raw = _NO_LIST
    dropped_attributes_count: Count = 0


class JsonLink(msgspec.Struct, rename="camel", gc=False):
    """A link of a span."""

    trace_id: str = ""
    span_id: str = ""
    attributes: msgspec.Raw = _NO_LIST
    trace_state: str = ""


class JsonStatus(msgspec.Struct, gc=False):
    """How a span ended."""

    code: int | str = 0
    message: str = ""


class JsonSpan(msgspec.Struct, rename="camel", gc=False):
    """A span."""

    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str | None = None
    name: str = ""
    kind: int | str = 0
    start_time_unix_nano: int = 0
    end_time_unix_nano: int | None = None
    attributes: msgspec.Raw = _NO_LIST
    events: list[JsonEvent] = []
    links: list[JsonLink] = []
    status: JsonStatus | None = None
    trace_state: str = ""
    flags: Count = 0
    dropped_attributes_count: Count = 0
    dropped_events_count: Count = 0
    dropped_links_count: Count = 0


class LooseJsonSpan(JsonSpan, rename="camel", gc=False):
    """A span whose times are written in any way."""

    start_time_unix_nano: Integer = 0  # type: ignore[assignment]  # wider on purpose
    end_time_unix_nano: Integer | None = None  # type: ignore[assignment]  # as above


class JsonAttributed(msgspec.Struct, rename="camel", gc=False):
    """A resource, or a scope."""

    name: str | None = ""  # null, here and below: as good as left out
    version: str | None = ""
    attributes: msgspec.Raw = _NO_LIST


class JsonScopeSpans(msgspec.Struct, rename="camel", gc=False):
    """The spans of one scope."""

    scope: msgspec.Raw = msgspec.Raw(b"{}")
    schema_url: str | None = ""
    spans: list[JsonSpan] | None = []


class LooseJsonScopeSpans(msgspec.Struct, rename="camel", gc=False):
    """The same, the spans not decoded."""

    scope: msgspec.Raw = msgspec.Raw(b"{}")
    schema_url: str | None = ""
    spans: list[msgspec.Raw] | None = []


class JsonResourceSpans(msgspec.Struct, rename="camel", gc=False):
    """The spans of one writer."""

    resource: msgspec.Raw = msgspec.Raw(b"{}")
    schema_url: str | None = ""
    scope_spans: list[JsonScopeSpans] | None = []
    instrumentation_library_spans: list[JsonScopeSpans] | None = []  # before OTLP 0.15


class LooseJsonResourceSpans(msgspec.Struct, rename="camel", gc=False):
    """The same, the spans not decoded."""

    resource: msgspec.Raw = msgspec.Raw(b"{}")
    schema_url: str | None = ""
    scope_spans: list[LooseJsonScopeSpans] | None = []
    instrumentation_library_spans: list[LooseJsonScopeSpans] | None = []


class JsonExport(msgspec.Struct, rename="camel", gc=False):
    """A document."""

    resource_spans: list[JsonResourceSpans] | None = []
    batches: list[JsonResourceSpans] | None = []


class LooseJsonExport(msgspec.Struct, rename="camel", gc=False):
    """A document, its spans not decoded."""

    resource_spans: list[LooseJsonResourceSpans] | None = []
    batches: list[LooseJsonResourceSpans] | None = []


# Not strict: integers in strings become integers in the decoder.
decode_export = msgspec.json.Decoder(JsonExport | list[JsonExport], strict=False).decode
decode_loosely = msgspec.json.Decoder(LooseJsonExport | list[LooseJsonExport]).decode
decode_body = msgspec.json.Decoder(JsonSpan, strict=False).decode
decode_span = msgspec.json.Decoder(LooseJsonSpan, strict=False).decode
decode_attributed = msgspec.json.Decoder(JsonAttributed, strict=False).decode


class _Answer(msgspec.Struct, gc=False):
    trace: msgspec.Raw = _NO_LIST  # Tempo
    result: msgspec.Raw = _NO_LIST  # Jaeger, version 3
    data: msgspec.Raw = _NO_LIST


_decode_answer = msgspec.json.Decoder(_Answer).decode


def wrapped(document: bytes) -> bytes:
    """Return the document in an API's answer; nothing where there is none."""
    try:
        answer = _decode_answer(document)
    except msgspec.ValidationError:  # a list
        return b""
    return next(
        (bytes(raw) for raw in (answer.trace, answer.result, answer.data) if bytes(raw)[:1] == b"{"), b""
    )
