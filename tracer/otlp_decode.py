"""OTLP requests, as protobuf or JSON, to span records."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.json_format import ParseDict  # type: ignore[import-untyped] # its stubs are a package apart
from google.protobuf.message import DecodeError  # type: ignore[import-untyped] # as above
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from hotspan.tracer.record import (
    KINDS,
    STATUSES,
    Attributes,
    AttributeValue,
    Event,
    Link,
    Resource,
    Scope,
    SpanRecord,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

_HEX_LENGTHS: Final = frozenset({16, 32})
_ID_FIELDS: Final = ("traceId", "spanId", "parentSpanId", "trace_id", "span_id", "parent_span_id")


def parse_protobuf(body: bytes) -> ExportTraceServiceRequest:
    """Return the request.

    Raises:
        ValueError: The bytes are not one.
    """
    request = ExportTraceServiceRequest()
    try:
        request.ParseFromString(body)
    except DecodeError as error:
        raise ValueError(str(error)) from error
    return request


def parse_json(body: bytes) -> ExportTraceServiceRequest:
    """Return the request; ids are hex, as OTLP says, or base64, as protobuf's own JSON writes them.

    Raises:
        ValueError: The text is not one.
    """
    try:
        data = json.loads(body)
        for span in _json_spans(data):
            _hex_to_base64(span)
            for link in span.get("links", ()):
                _hex_to_base64(link)
        request = ExportTraceServiceRequest()
        # protobuf's own parser does the rest: names in either case, enums by name or number, integers as text
        ParseDict(data, request, ignore_unknown_fields=True)
    except Exception as error:  # a shape that is not OTLP's fails in many ways, all of them the sender's
        msg = f"{type(error).__name__}: {error}"
        raise ValueError(msg) from error
    return request


def _json_spans(data: Any) -> Iterator[dict[str, Any]]:
    for resource_spans in data.get("resourceSpans") or data.get("resource_spans") or ():
        for scope_spans in resource_spans.get("scopeSpans") or resource_spans.get("scope_spans") or ():
            yield from scope_spans.get("spans") or ()


def _hex_to_base64(item: dict[str, Any]) -> None:
    for field in _ID_FIELDS:
        value = item.get(field)
        if value and len(value) in _HEX_LENGTHS:
            item[field] = base64.b64encode(bytes.fromhex(value)).decode("ascii")


def records(request: ExportTraceServiceRequest) -> tuple[list[SpanRecord], int]:
    """Return the request's spans, each with its own resource and scope, and how many had no usable id."""
    found: list[SpanRecord] = []
    n_rejected = 0
    for group in request.resource_spans:
        resource = Resource(_attributes(group.resource.attributes), group.schema_url)
        for part in group.scope_spans:
            own = part.scope
            scope = Scope(own.name, own.version, _attributes(own.attributes), part.schema_url)
            usable = [span for span in part.spans if any(span.trace_id) and any(span.span_id)]
            found.extend(_record(span, resource, scope) for span in usable)
            n_rejected += len(part.spans) - len(usable)
    return found, n_rejected


def _record(span: Span, resource: Resource, scope: Scope) -> SpanRecord:
    return SpanRecord(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex() if any(span.parent_span_id) else None,
        name=span.name,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano or None,
        attributes=_attributes(span.attributes),
        kind=KINDS[span.kind] if 0 <= span.kind < len(KINDS) else "unspecified",
        status=STATUSES[span.status.code] if 0 <= span.status.code < len(STATUSES) else "unset",
        status_message=span.status.message,
        events=tuple(
            Event(
                event.name,
                event.time_unix_nano,
                _attributes(event.attributes),
                event.dropped_attributes_count,
            )
            for event in span.events
        ),
        links=tuple(
            Link(link.trace_id.hex(), link.span_id.hex(), _attributes(link.attributes), link.trace_state)
            for link in span.links
            if any(link.trace_id) and any(link.span_id)
        ),
        resource=resource,
        scope=scope,
        trace_state=span.trace_state,
        flags=span.flags,
        n_dropped_attributes=span.dropped_attributes_count,
        n_dropped_events=span.dropped_events_count,
        n_dropped_links=span.dropped_links_count,
    )


def _attributes(pairs: Iterable[KeyValue]) -> Attributes:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> AttributeValue:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return {pair.key: _value(pair.value) for pair in value.kvlist_value.values}
    scalar: AttributeValue = getattr(value, kind)
    return scalar
