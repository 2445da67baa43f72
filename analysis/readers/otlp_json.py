"""OTLP/JSON documents to `SpanRecord`s, as the protocol has it and as writers bend it.

Ids are hex or base64, enums numbers or names, 64-bit integers strings or numbers, keys camelCase or
snake_case, the outer list `resourceSpans` or `batches`.  The usual form is decoded by type, only the fields
that are needed; a document that does not fit is decoded again, span by span, so that one bad span costs
itself only.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from hotspan.analysis.readers import ids
from hotspan.analysis.readers.items import Item, LostNote, RefusedSpan
from hotspan.tracer.record import (
    KINDS,
    NO_ATTRIBUTES,
    STATUSES,
    Attributes,
    AttributeValue,
    Event,
    Link,
    Resource,
    Scope,
    SpanRecord,
)

_Integer = int | str | float  # 64-bit integers are strings in OTLP/JSON; some writers send numbers
_Count = int | str | None


class _Value(msgspec.Struct, rename="camel", gc=False):
    string_value: str | None = None
    bool_value: bool | None = None
    int_value: _Integer | None = None
    double_value: float | str | None = None
    array_value: _Array | None = None
    kvlist_value: _KeyValues | None = None
    bytes_value: str | None = None


class _Array(msgspec.Struct, gc=False):
    values: list[_Value] = []


class _KeyValue(msgspec.Struct, gc=False):
    key: str = ""
    value: _Value | None = None


class _KeyValues(msgspec.Struct, gc=False):
    values: list[_KeyValue] = []


class _Event(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    time_unix_nano: _Integer = 0
    attributes: list[_KeyValue] = []
    dropped_attributes_count: _Count = 0


class _Link(msgspec.Struct, rename="camel", gc=False):
    trace_id: str = ""
    span_id: str = ""
    attributes: list[_KeyValue] = []
    trace_state: str = ""


class _Status(msgspec.Struct, gc=False):
    code: int | str = 0
    message: str = ""


class _Span(msgspec.Struct, rename="camel", gc=False):
    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str | None = None
    name: str = ""
    kind: int | str = 0
    start_time_unix_nano: _Integer = 0
    end_time_unix_nano: _Integer | None = None
    attributes: list[_KeyValue] = []
    events: list[_Event] = []
    links: list[_Link] = []
    status: _Status | None = None
    trace_state: str = ""
    flags: _Count = 0
    dropped_attributes_count: _Count = 0
    dropped_events_count: _Count = 0
    dropped_links_count: _Count = 0


class _Attributed(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    version: str = ""
    attributes: list[_KeyValue] = []


class _ScopeSpans(msgspec.Struct, rename="camel", gc=False):
    scope: msgspec.Raw = msgspec.Raw(b"{}")
    schema_url: str = ""
    spans: list[_Span] = []


class _LooseScopeSpans(msgspec.Struct, rename="camel", gc=False):
    scope: msgspec.Raw = msgspec.Raw(b"{}")
    schema_url: str = ""
    spans: list[msgspec.Raw] = []


class _ResourceSpans(msgspec.Struct, rename="camel", gc=False):
    resource: msgspec.Raw = msgspec.Raw(b"{}")
    schema_url: str = ""
    scope_spans: list[_ScopeSpans] = []
    instrumentation_library_spans: list[_ScopeSpans] = []  # before OTLP 0.15


class _LooseResourceSpans(msgspec.Struct, rename="camel", gc=False):
    resource: msgspec.Raw = msgspec.Raw(b"{}")
    schema_url: str = ""
    scope_spans: list[_LooseScopeSpans] = []
    instrumentation_library_spans: list[_LooseScopeSpans] = []


class _Export(msgspec.Struct, rename="camel", gc=False):
    resource_spans: list[_ResourceSpans] = []
    batches: list[_ResourceSpans] = []


class _LooseExport(msgspec.Struct, rename="camel", gc=False):
    resource_spans: list[_LooseResourceSpans] = []
    batches: list[_LooseResourceSpans] = []


_decode = msgspec.json.Decoder(_Export | list[_Export]).decode
_decode_loosely = msgspec.json.Decoder(_LooseExport | list[_LooseExport]).decode
_decode_span = msgspec.json.Decoder(_Span, strict=False).decode
_decode_attributed = msgspec.json.Decoder(_Attributed, strict=False).decode
_NAMES: dict[str, dict[str, Any]] = {
    "kind": {f"SPAN_KIND_{kind.upper()}": kind for kind in KINDS},
    "status": {f"STATUS_CODE_{status.upper()}": status for status in STATUSES},
}


class Decoder:
    """Decodes documents; keeps what documents of one file share (resources, scopes)."""

    def __init__(self) -> None:
        self._resources: dict[tuple[bytes, str], Resource] = {}
        self._scopes: dict[tuple[bytes, str], Scope] = {}

    def decode(self, document: bytes) -> Iterator[Item]:
        """Yield what one OTLP/JSON document holds.

        Raises:
            msgspec.DecodeError: It is not JSON, or not OTLP's outer structure.
        """
        if b'"resource_spans"' in document:
            document = msgspec.json.encode(_camel(msgspec.json.decode(document)))
        exports: Any
        try:
            exports = _decode(document)
        except msgspec.ValidationError:
            exports = _decode_loosely(document)
        for export in exports if isinstance(exports, list) else [exports]:
            for group in (*export.resource_spans, *export.batches):
                yield from self._resource_spans(group)

    def _resource_spans(self, group: _ResourceSpans | _LooseResourceSpans) -> Iterator[Item]:
        resource = self._resource(bytes(group.resource), group.schema_url)
        n_spans = 0
        for scoped in (*group.scope_spans, *group.instrumentation_library_spans):
            scope = self._scope(bytes(scoped.scope), scoped.schema_url)
            n_spans += len(scoped.spans)
            for span in scoped.spans:
                yield self._span(span, resource, scope)
        if not n_spans:
            yield LostNote(resource)

    def _resource(self, raw: bytes, schema_url: str) -> Resource:
        found = self._resources.get((raw, schema_url))
        if found is None:
            found = Resource(_attributes(_attributed(raw).attributes), schema_url)
            self._resources[raw, schema_url] = found
        return found

    def _scope(self, raw: bytes, schema_url: str) -> Scope:
        found = self._scopes.get((raw, schema_url))
        if found is None:
            scope = _attributed(raw)
            found = Scope(scope.name, scope.version, _attributes(scope.attributes), schema_url)
            self._scopes[raw, schema_url] = found
        return found

    def _span(self, span: _Span | msgspec.Raw, resource: Resource, scope: Scope) -> SpanRecord | RefusedSpan:
        try:
            decoded = span if isinstance(span, _Span) else _decode_span(span)
            return _record(decoded, resource, scope)
        except ValueError as exc:  # msgspec's errors are ValueErrors too
            return RefusedSpan(str(exc))


def _attributed(raw: bytes) -> _Attributed:
    return _Attributed() if raw == b"null" else _decode_attributed(raw)


def _record(span: _Span, resource: Resource, scope: Scope) -> SpanRecord:
    trace_id, span_id = ids.trace_id(span.trace_id), ids.span_id(span.span_id)
    if trace_id is None or span_id is None:
        msg = f"span {span.name!r} has no usable id (trace {span.trace_id!r}, span {span.span_id!r})"
        raise ValueError(msg)
    status = span.status
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=ids.span_id(span.parent_span_id) if span.parent_span_id else None,
        name=span.name,
        start_ns=int(span.start_time_unix_nano or 0),
        end_ns=int(span.end_time_unix_nano or 0) or None,
        attributes=_attributes(span.attributes),
        kind=_enum(span.kind, KINDS, "kind"),
        status=_enum(status.code, STATUSES, "status") if status else "unset",
        status_message=status.message if status else "",
        events=tuple(_event(event) for event in span.events) if span.events else (),
        links=tuple(_link(link) for link in span.links) if span.links else (),
        resource=resource,
        scope=scope,
        trace_state=span.trace_state,
        flags=_count(span.flags),
        n_dropped_attributes=_count(span.dropped_attributes_count),
        n_dropped_events=_count(span.dropped_events_count),
        n_dropped_links=_count(span.dropped_links_count),
    )


def _count(value: _Count) -> int:
    # Unsigned in the protocol; some writers put -1 where they do not know.
    return max(int(value), 0) if value else 0


def _enum(code: int | str, members: tuple[Any, ...], field: str) -> Any:
    if isinstance(code, str):
        if not code.isdecimal():
            return _NAMES[field].get(code, members[0])
        code = int(code)
    return members[code] if 0 <= code < len(members) else members[0]


def _event(event: _Event) -> Event:
    time_ns, n_dropped = int(event.time_unix_nano or 0), _count(event.dropped_attributes_count)
    return Event(event.name, time_ns, _attributes(event.attributes), n_dropped)


def _link(link: _Link) -> Link:
    trace_id, span_id = ids.trace_id(link.trace_id), ids.span_id(link.span_id)
    return Link(trace_id or "", span_id or "", _attributes(link.attributes), link.trace_state)


def _attributes(pairs: list[_KeyValue]) -> Attributes:
    if not pairs:
        return NO_ATTRIBUTES
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: _Value | None) -> AttributeValue:
    if value is None:
        return None
    if value.string_value is not None:
        return value.string_value
    if value.int_value is not None:
        return int(value.int_value)
    if value.double_value is not None:
        return float(value.double_value)  # also "NaN", "Infinity", "-Infinity"
    if value.bool_value is not None:
        return value.bool_value
    return _composite(value)


def _composite(value: _Value) -> AttributeValue:
    if value.array_value is not None:
        return tuple(_value(item) for item in value.array_value.values)
    if value.kvlist_value is not None:
        return {pair.key: _value(pair.value) for pair in value.kvlist_value.values}
    if value.bytes_value is not None:
        try:
            return base64.b64decode(value.bytes_value)
        except binascii.Error:
            return value.bytes_value
    return None


def _camel(document: Any) -> Any:
    # Only the protocol's own keys: attribute keys are values in OTLP and stay what they are.
    if isinstance(document, list):
        return [_camel(item) for item in document]
    if isinstance(document, Mapping):
        return {_camel_key(key): _camel(value) for key, value in document.items()}
    return document


def _camel_key(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)
