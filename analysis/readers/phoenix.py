"""Phoenix: spans and traces of its REST API, `get_spans`, and the rows of its data frame.

Numbers for times are milliseconds, as a data frame's JSON has them.  The API's list of traces has spans
without attributes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hotspan.analysis.readers import values
from hotspan.analysis.readers.dialect import each, record_of
from hotspan.analysis.readers.fields import Fields
from hotspan.tracer import semconv
from hotspan.tracer.record import AttributeValue, SpanRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotspan.analysis.readers.fields import Say
    from hotspan.analysis.readers.items import RefusedSpan

_SPAN_ID: Final = "context.span_id"  # a column, or the index of the rows
_ATTRIBUTE: Final = "attributes."  # before the key, in the name of a data frame's column


def _decode(document: Any, say: Say) -> Iterator[SpanRecord | RefusedSpan]:
    found = Fields(document, say)
    if found.has("spans"):
        for span in found.spans("spans"):
            yield record_of(_record, span, found.get("trace_id"))
    else:
        yield record_of(_record, found)


read = each(_decode)


def _decode_columns(document: Any, say: Say) -> Iterator[SpanRecord | RefusedSpan]:
    """Turn a frame that was written column by column, pandas' own way, into rows."""
    frame = Fields(document, say, "a table")
    columns = {name: frame.inner(name).whole() for name, _ in frame.items()}
    for index in dict.fromkeys(index for column in columns.values() for index in column):
        row = {name: column.get(index) for name, column in columns.items()}
        yield record_of(_record, Fields({_SPAN_ID: index} | row, say))


read_columns = each(_decode_columns)


def _record(span: Fields, trace: object = None) -> SpanRecord:
    name, context = span.get("name"), span.inner("context")
    trace_id, span_id = values.trace_and_span_id(
        context.get("trace_id") or span.get("context.trace_id", "trace_id") or trace,
        context.get("span_id") or span.get(_SPAN_ID, "span_id"),
        name,
    )
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=span.parent("parent_id"),
        name=span.text("name"),
        start_ns=span.start(values.MILLISECONDS, "start_time"),
        end_ns=span.time(values.MILLISECONDS, "end_time"),
        attributes=_attributes(span),
        kind="unspecified",
        status=span.status("status_code"),
        status_message=span.text("status_message"),
        events=span.events(values.MILLISECONDS, "timestamp"),
    )


def _attributes(span: Fields) -> dict[str, AttributeValue]:
    found = dict(span.attributes("attributes"))
    for column, value in span.items():
        if column.startswith(_ATTRIBUTE):
            found[column.removeprefix(_ATTRIBUTE)] = values.attribute(value)
    if kind := span.text("span_kind"):
        found.setdefault(semconv.OPENINFERENCE_KIND, kind)
    return found
