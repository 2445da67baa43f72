"""Phoenix: spans and traces of its REST API, `get_spans`, and the rows of its data frame.

Numbers for times are milliseconds, as a data frame's JSON has them.  The API's list of traces has spans
without attributes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hotspan.analysis.readers import values
from hotspan.analysis.readers.dialect import each, record_of
from hotspan.tracer import semconv
from hotspan.tracer.record import AttributeValue, SpanRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hotspan.analysis.readers.items import RefusedSpan

_ATTRIBUTE: Final = "attributes."  # before the key, in the name of a data frame's column


def _decode(document: Any) -> Iterator[SpanRecord | RefusedSpan]:
    found = values.mapping(document)
    if isinstance(found.get("spans"), list | tuple):
        for span in found["spans"]:
            yield record_of(_record, values.mapping(span), found.get("trace_id"))
    else:
        yield record_of(_record, found)


read = each(_decode)


def _decode_columns(document: Any) -> Iterator[SpanRecord | RefusedSpan]:
    """Turn a frame that was written column by column, pandas' own way, into rows."""
    columns = {name: values.mapping(column) for name, column in values.mapping(document).items()}
    for index in values.mapping(columns.get("name")):
        row = {name: column.get(index) for name, column in columns.items()}
        row.setdefault("context.span_id", index)
        yield record_of(_record, row)


read_columns = each(_decode_columns)


def _record(span: Mapping[str, Any], trace: object = None) -> SpanRecord:
    name, context = span.get("name"), values.mapping(span.get("context"))
    trace_id, span_id = values.trace_and_span_id(
        context.get("trace_id") or span.get("context.trace_id") or span.get("trace_id") or trace,
        context.get("span_id") or span.get("context.span_id") or span.get("span_id"),
        name,
    )
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=values.parent_id(span.get("parent_id")),
        name=values.text(name),
        start_ns=values.start_ns(span.get("start_time"), values.MILLISECONDS),
        end_ns=values.time_ns(span.get("end_time"), values.MILLISECONDS),
        attributes=_attributes(span),
        kind="unspecified",
        status=values.status(span.get("status_code")),
        status_message=values.text(span.get("status_message")),
        events=values.events(span.get("events"), "timestamp", values.MILLISECONDS),
    )


def _attributes(span: Mapping[str, Any]) -> dict[str, AttributeValue]:
    found = dict(values.attributes(span.get("attributes")))
    for column, value in span.items():
        if column.startswith(_ATTRIBUTE) and value is not None and value == value:  # noqa: PLR0124 - not NaN
            found[column.removeprefix(_ATTRIBUTE)] = values.attribute(value)
    if span.get("span_kind"):
        found.setdefault(semconv.OPENINFERENCE_KIND, values.text(span["span_kind"]))
    return found
