"""Rows of a table of spans: a record's fields as columns, its attributes as columns with dotted names.

The columns are those of `SpanRecord`, ids as hex, times in nanoseconds; `attributes`, `events`, `links`,
`resource` and `scope` are structures or JSON texts, and each of `attributes.KEY`, `resource.KEY`,
`scope.name` and `scope.version` may be a column of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotspan.analysis.readers import ids, values
from hotspan.analysis.readers.dialect import each, record_of
from hotspan.tracer.record import AttributeValue, Event, Link, Resource, Scope, SpanRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hotspan.analysis.readers.items import RefusedSpan

_ATTRIBUTES, _RESOURCE, _SCOPE = "attributes", "resource", "scope"


def _decode(document: Any) -> Iterator[SpanRecord | RefusedSpan]:
    yield record_of(_record, values.mapping(document))


read = each(_decode)


def _record(row: Mapping[str, Any]) -> SpanRecord:
    name = row.get("name")
    trace_id, span_id = values.trace_and_span_id(row.get("trace_id"), row.get("span_id"), name)
    scope = _structure(row, _SCOPE)
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=values.parent_id(row.get("parent_id")),
        name=values.text(name),
        start_ns=values.start_ns(row.get("start_ns"), values.NANOSECONDS),
        end_ns=values.time_ns(row.get("end_ns"), values.NANOSECONDS),
        attributes=_structure(row, _ATTRIBUTES),
        kind=values.kind(row.get("kind")),
        status=values.status(row.get("status")),
        status_message=values.text(row.get("status_message")),
        events=tuple(_events(row.get("events"))),
        links=tuple(_links(row.get("links"))),
        resource=Resource(_structure(row, _RESOURCE), values.text(row.get("resource_schema_url"))),
        scope=Scope(
            values.text(scope.get("name")),
            values.text(scope.get("version")),
            values.attributes(_loaded(scope.get("attributes"))),
            values.text(scope.get("schema_url")),
        ),
        trace_state=values.text(row.get("trace_state")),
        flags=values.count(row.get("flags")),
        n_dropped_attributes=values.count(row.get("n_dropped_attributes")),
        n_dropped_events=values.count(row.get("n_dropped_events")),
        n_dropped_links=values.count(row.get("n_dropped_links")),
    )


def _structure(row: Mapping[str, Any], name: str) -> dict[str, AttributeValue]:
    """Return a column that holds a structure, together with the columns that are named as parts of it."""
    found = dict(values.attributes(_loaded(row.get(name))))
    prefix = name + "."
    for column, value in row.items():
        if column.startswith(prefix) and value is not None:
            found[column.removeprefix(prefix)] = values.attribute(value)
    return found


def _loaded(value: object) -> object:
    """Return what a column holds: a structure, the pairs of a map, or either as a JSON text."""
    if isinstance(value, str):
        try:
            value = values.from_json(value.encode())
        except ValueError:
            return None
    pairs = values.listing(value)
    if pairs and all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):  # noqa: PLR2004 - a pair
        return dict(pairs)
    return value


def _events(found: object) -> Iterator[Event]:
    for item in map(values.mapping, values.listing(_loaded(found))):
        made = values.event(
            item.get("name"), item.get("time_ns"), values.NANOSECONDS, _loaded(item.get("attributes"))
        )
        if made is not None:
            yield made._replace(n_dropped_attributes=values.count(item.get("n_dropped_attributes")))


def _links(found: object) -> Iterator[Link]:
    for item in map(values.mapping, values.listing(_loaded(found))):
        yield Link(
            ids.trace_id(values.text(item.get("trace_id"))) or "",
            ids.span_id(values.text(item.get("span_id"))) or "",
            values.attributes(_loaded(item.get("attributes"))),
            values.text(item.get("trace_state")),
        )
