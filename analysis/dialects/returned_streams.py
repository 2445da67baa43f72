"""Model calls whose span ended when their stream was made, inside a span that reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotspan.analysis.dialects.reading import read
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hotspan.tracer.record import SpanRecord


def with_returned_streams(spans: list[SpanRecord]) -> list[SpanRecord]:
    """Return the spans with each call that was cut short running until the end of the span around it.

        run      |------------------------------|
        step        |------------------------|    reads the stream
        chat          |--|                        ends when the stream is made

    Only where nothing else begins in that span, which says no stage and is not the whole request.  A guess:
    what the step did with the answer counts as the call's.
    """
    cut_short = [index for index, span in enumerate(spans) if semconv.CUT_SHORT in span.attributes]
    if not cut_short:
        return spans
    index_of = {span.span_id: index for index, span in enumerate(spans)}
    last_start: dict[str, int] = {}  # of the children of each span
    for span in spans:
        if span.parent_id is not None:
            last_start[span.parent_id] = max(last_start.get(span.parent_id, 0), span.start_ns)
    tops: dict[int, int] = {}
    for index in cut_short:
        top = tops[index] if index in tops else _outermost(spans, index_of, index, tops)
        around = index_of.get(spans[top].parent_id or "")
        if around is None or not _reads(spans[around], spans[top], index_of):
            continue
        end_ns = spans[around].end_ns or 0
        if last_start[spans[around].span_id] <= spans[top].start_ns and end_ns > (spans[index].end_ns or 0):
            spans[index] = spans[index]._replace(end_ns=end_ns)
    return spans


def _outermost(
    spans: Sequence[SpanRecord], index_of: Mapping[str, int], index: int, known: dict[int, int]
) -> int:
    """Return the outermost span of the same call; `known` is what was found before."""
    path = {index: None}
    above = index_of.get(spans[index].parent_id or "")
    while above is not None and above not in path and read(spans[above]).stage == semconv.GENERATION:
        index = above
        if index in known:
            index = known[index]
            break
        path[index] = None
        above = index_of.get(spans[index].parent_id or "")
    known.update(dict.fromkeys(path, index))
    return index


def _reads(around: SpanRecord, call: SpanRecord, index_of: Mapping[str, int]) -> bool:
    return (
        around.parent_id in index_of
        and around.scope.name == call.scope.name
        and around.start_ns <= call.start_ns
        and read(around).stage is None
    )
