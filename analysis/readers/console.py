"""What OpenTelemetry's `ConsoleSpanExporter` (Python) prints: one JSON object after the other.

Ids begin with 0x, times are in ISO 8601 with microseconds.  The instrumentation's name is not printed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from hotspan.analysis.readers import values
from hotspan.analysis.readers.dialect import each, record_of
from hotspan.analysis.readers.fields import Fields
from hotspan.tracer.record import Link, Resource, SpanRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotspan.analysis.readers.fields import Say
    from hotspan.analysis.readers.items import RefusedSpan

_STATE_PAIR: Final = re.compile(r"\{key=([^,}]*), value=([^}]*)\}")  # as `TraceState` prints itself


def _decode(document: Any, say: Say) -> Iterator[SpanRecord | RefusedSpan]:
    yield record_of(_record, Fields(document, say))


read = each(_decode)


def _record(span: Fields) -> SpanRecord:
    name, context = span.get("name"), span.inner("context")
    trace_id, span_id = values.trace_and_span_id(context.get("trace_id"), context.get("span_id"), name)
    status, resource = span.inner("status"), span.inner("resource", of="a resource")
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=span.parent("parent_id"),
        name=span.text("name"),
        start_ns=span.start(values.NANOSECONDS, "start_time"),
        end_ns=span.time(values.NANOSECONDS, "end_time"),
        attributes=span.attributes("attributes"),
        kind=span.kind("kind"),
        status=status.status("status_code"),
        status_message=status.text("description"),
        events=span.events(values.NANOSECONDS, "timestamp"),
        links=tuple(map(_link, span.objects("links", of="a link"))),
        resource=Resource(resource.attributes("attributes"), resource.text("schema_url")),
        trace_state=_trace_state(context),
    )


def _link(link: Fields) -> Link:
    context = link.inner("context")
    linked = context.link()
    return Link(linked.trace_id, linked.span_id, link.attributes("attributes"), _trace_state(context))


def _trace_state(context: Fields) -> str:
    return ",".join(f"{key}={value}" for key, value in _STATE_PAIR.findall(context.text("trace_state")))
