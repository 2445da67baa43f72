"""Rows of a table of spans: a record's fields as columns, its attributes as columns with dotted names.

The columns are those of `SpanRecord`, ids as hex, times in nanoseconds; `attributes`, `events`, `links`,
`resource` and `scope` are structures or JSON texts, and each of `attributes.KEY`, `resource.KEY`,
`scope.name` and `scope.version` may be a column of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hotspan.analysis.readers import values
from hotspan.analysis.readers.dialect import each, record_of
from hotspan.analysis.readers.fields import Fields
from hotspan.tracer.record import AttributeValue, Event, Link, Resource, Scope, SpanRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotspan.analysis.readers.fields import Say
    from hotspan.analysis.readers.items import RefusedSpan

_ATTRIBUTES, _RESOURCE, _SCOPE = "attributes", "resource", "scope"
_STRUCTURES: Final = (_ATTRIBUTES, _RESOURCE, _SCOPE, "events", "links")


def _decode(document: Any, say: Say) -> Iterator[SpanRecord | RefusedSpan]:
    yield record_of(_record, Fields(document, say).unpacked(*_STRUCTURES))


read = each(_decode)


def _record(row: Fields) -> SpanRecord:
    trace_id, span_id = values.trace_and_span_id(row.get("trace_id"), row.get("span_id"), row.get("name"))
    scope = row.inside(_structure(row, _SCOPE)).unpacked(_ATTRIBUTES)
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=row.parent("parent_id"),
        name=row.text("name"),
        start_ns=row.start(values.NANOSECONDS, "start_ns"),
        end_ns=row.time(values.NANOSECONDS, "end_ns"),
        attributes=_structure(row, _ATTRIBUTES),
        kind=row.kind("kind"),
        status=row.status("status"),
        status_message=row.text("status_message"),
        events=tuple(_events(row)),
        links=tuple(map(_link, row.objects("links", of="a link"))),
        resource=Resource(_structure(row, _RESOURCE), row.text("resource_schema_url")),
        scope=Scope(
            scope.text("name"), scope.text("version"), scope.attributes(_ATTRIBUTES), scope.text("schema_url")
        ),
        trace_state=row.text("trace_state"),
        flags=values.count(row.get("flags")),
        n_dropped_attributes=values.count(row.get("n_dropped_attributes")),
        n_dropped_events=values.count(row.get("n_dropped_events")),
        n_dropped_links=values.count(row.get("n_dropped_links")),
    )


def _structure(row: Fields, name: str) -> dict[str, AttributeValue]:
    """Return a column that holds a structure, together with the columns that are named as parts of it."""
    found = dict(row.attributes(name))
    prefix = name + "."
    for column, value in row.items():
        if column.startswith(prefix):
            found[column.removeprefix(prefix)] = values.attribute(value)
    return found


def _events(row: Fields) -> Iterator[Event]:
    for item in row.objects("events", of="an event"):
        at_ns = item.time(values.NANOSECONDS, "time_ns")
        if at_ns is not None:
            found = item.unpacked(_ATTRIBUTES).attributes(_ATTRIBUTES)
            yield Event(item.text("name"), at_ns, found, values.count(item.get("n_dropped_attributes")))


def _link(item: Fields) -> Link:
    return item.unpacked(_ATTRIBUTES).link()._replace(trace_state=item.text("trace_state"))
