"""MLflow's traces as JSON, of its versions 2 and 3, and the spans alone, as it keeps them beside a run.

Version 3 writes OTLP's fields in snake case with base64 ids; version 2 ids that begin with 0x, in a
`context`.  Times are in nanoseconds.  Values of attributes are JSON texts, and stay so:  OTLP has them alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hotspan.analysis.readers import values
from hotspan.analysis.readers.dialect import each, record_of
from hotspan.analysis.readers.fields import Fields
from hotspan.tracer import semconv
from hotspan.tracer.record import Resource, SpanRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotspan.analysis.readers.fields import Say
    from hotspan.analysis.readers.items import RefusedSpan

_RESOURCE_TAGS: Final = (semconv.SERVICE_NAME, semconv.SERVICE_INSTANCE_ID)


def _decode(document: Any, say: Say) -> Iterator[SpanRecord | RefusedSpan]:
    trace = Fields(document, say, "a trace")
    info = trace.inner("info")
    tags = info.inner("tags")
    resource = Resource({key: found for key in _RESOURCE_TAGS if (found := tags.text(key))})
    trace_id = info.text("trace_id", "request_id").removeprefix("tr-")
    data = trace.inner("data") if trace.has("data") else trace
    for span in data.spans("spans") if data.has("spans") else (Fields(document, say),):
        yield record_of(_record, span, trace_id, resource)


read = each(_decode)


def _record(span: Fields, trace: str, resource: Resource) -> SpanRecord:
    name, context, status = span.get("name"), span.inner("context"), _status(span)
    trace_id, span_id = values.trace_and_span_id(
        span.get("trace_id") or context.get("trace_id") or trace,
        span.get("span_id") or context.get("span_id"),
        name,
    )
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=span.parent("parent_span_id", "parent_id"),
        name=span.text("name"),
        start_ns=span.start(values.NANOSECONDS, "start_time_unix_nano", "start_time"),
        end_ns=span.time(values.NANOSECONDS, "end_time_unix_nano", "end_time") or None,
        attributes=span.attributes("attributes"),
        kind=span.kind("kind"),
        status=status.status("code", "status_code"),
        status_message=status.text("message", "status_message"),
        events=span.events(values.NANOSECONDS, "time_unix_nano", "timestamp"),
        links=tuple(link.link() for link in span.objects("links", of="a link")),
        resource=resource,
    )


def _status(span: Fields) -> Fields:
    """Return where the status is: in an object of its own, before version 3 in the span."""
    return span.inner("status") if span.has("status") else span
