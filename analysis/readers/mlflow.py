"""MLflow's traces as JSON, of its versions 2 and 3, and the spans alone, as it keeps them beside a run.

Version 3 writes OTLP's fields in snake case with base64 ids; version 2 ids that begin with 0x, in a
`context`.  Times are in nanoseconds.  Values of attributes are JSON texts, and stay so:  OTLP has them alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hotspan.analysis.readers import ids, values
from hotspan.analysis.readers.dialect import each, record_of
from hotspan.tracer import semconv
from hotspan.tracer.record import Event, Link, Resource, SpanRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hotspan.analysis.readers.items import RefusedSpan

_RESOURCE_TAGS: Final = (semconv.SERVICE_NAME, semconv.SERVICE_INSTANCE_ID)


def _decode(document: Any) -> Iterator[SpanRecord | RefusedSpan]:
    trace = values.mapping(document)
    info, data = values.mapping(trace.get("info")), values.mapping(trace.get("data", trace))
    tags = values.mapping(info.get("tags"))
    resource = Resource({key: values.text(tags[key]) for key in _RESOURCE_TAGS if tags.get(key)})
    trace_id = values.text(info.get("trace_id") or info.get("request_id")).removeprefix("tr-")
    for span in values.listing(data.get("spans", [trace])):
        yield record_of(_record, values.mapping(span), trace_id, resource)


read = each(_decode)


def _record(span: Mapping[str, Any], trace: str, resource: Resource) -> SpanRecord:
    name, context = span.get("name"), values.mapping(span.get("context"))
    trace_id, span_id = values.trace_and_span_id(
        span.get("trace_id") or context.get("trace_id") or trace,
        span.get("span_id") or context.get("span_id"),
        name,
    )
    said = values.mapping(span.get("status"))
    start = span.get("start_time_unix_nano", span.get("start_time"))
    end = span.get("end_time_unix_nano", span.get("end_time"))
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=values.parent_id(span.get("parent_span_id") or span.get("parent_id")),
        name=values.text(name),
        start_ns=values.start_ns(start, values.NANOSECONDS),
        end_ns=values.time_ns(end, values.NANOSECONDS) or None,
        attributes=values.attributes(span.get("attributes")),
        kind=values.kind(span.get("kind")),
        status=values.status(said.get("code") or span.get("status_code")),
        status_message=values.text(said.get("message") or span.get("status_message")),
        events=tuple(_events(span.get("events"))),
        links=tuple(_link(values.mapping(link)) for link in values.listing(span.get("links"))),
        resource=resource,
    )


def _events(found: object) -> Iterator[Event]:
    for item in map(values.mapping, values.listing(found)):
        time = item.get("time_unix_nano", item.get("timestamp"))
        made = values.event(item.get("name"), time, values.NANOSECONDS, item.get("attributes"))
        if made is not None:
            yield made


def _link(link: Mapping[str, Any]) -> Link:
    return Link(
        ids.trace_id(values.text(link.get("trace_id")).removeprefix("tr-")) or "",
        ids.span_id(values.text(link.get("span_id"))) or "",
        values.attributes(link.get("attributes")),
    )
