"""What OpenTelemetry's `ConsoleSpanExporter` (Python) prints: one JSON object after the other.

Ids begin with 0x, times are in ISO 8601 with microseconds.  The instrumentation's name is not printed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from hotspan.analysis.readers import ids, values
from hotspan.analysis.readers.dialect import each, record_of
from hotspan.tracer.record import Link, Resource, SpanRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hotspan.analysis.readers.items import RefusedSpan

_STATE_PAIR: Final = re.compile(r"\{key=([^,}]*), value=([^}]*)\}")  # as `TraceState` prints itself


def _decode(document: Any) -> Iterator[SpanRecord | RefusedSpan]:
    yield record_of(_record, values.mapping(document))


read = each(_decode)


def _record(span: Mapping[str, Any]) -> SpanRecord:
    name, context = span.get("name"), values.mapping(span.get("context"))
    trace_id, span_id = values.trace_and_span_id(context.get("trace_id"), context.get("span_id"), name)
    said = values.mapping(span.get("status"))
    resource = values.mapping(span.get("resource"))
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=values.parent_id(span.get("parent_id")),
        name=values.text(name),
        start_ns=values.start_ns(span.get("start_time"), values.NANOSECONDS),
        end_ns=values.time_ns(span.get("end_time"), values.NANOSECONDS),
        attributes=values.attributes(span.get("attributes")),
        kind=values.kind(span.get("kind")),
        status=values.status(said.get("status_code")),
        status_message=values.text(said.get("description")),
        events=values.events(span.get("events"), "timestamp", values.NANOSECONDS),
        links=tuple(_link(values.mapping(link)) for link in values.listing(span.get("links"))),
        resource=Resource(
            values.attributes(resource.get("attributes")), values.text(resource.get("schema_url"))
        ),
        trace_state=_trace_state(context.get("trace_state")),
    )


def _link(link: Mapping[str, Any]) -> Link:
    context = values.mapping(link.get("context"))
    return Link(
        ids.trace_id(values.text(context.get("trace_id"))) or "",
        ids.span_id(values.text(context.get("span_id"))) or "",
        values.attributes(link.get("attributes")),
        _trace_state(context.get("trace_state")),
    )


def _trace_state(printed: object) -> str:
    return ",".join(f"{key}={value}" for key, value in _STATE_PAIR.findall(values.text(printed)))
