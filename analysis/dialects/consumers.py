"""Spans that read a model's stream while it comes: part of the call, wherever their writer put them."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from hotspan.analysis.dialects.reading import read
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from hotspan.tracer.record import SpanRecord

# How far apart a call and what reads its stream may end: part of the call's duration, not less, not more.
_NEAR_RATIO: Final = 0.1
_AT_LEAST_NS: Final = 5_000_000
_NEAR_NS: Final = 50_000_000


def with_consumers(spans: list[SpanRecord]) -> list[SpanRecord]:
    """Return the spans with each that does nothing but read a model's stream put below the model's call.

        chat     |-------------------|
        parser       |----------------|     began while the answer came, and ended with it

    LangChain writes its parsers beside the call, and they end last: the request would seem to have waited for
    them, and not for the model.  What they do after the call's end is the time of the span around it, also of
    those that are written below the call.
    """
    index_of = {span.span_id: index for index, span in enumerate(spans)}
    siblings: dict[str, list[int]] = {}
    for index, span in enumerate(spans):
        if span.parent_id is not None and span.end_ns is not None:
            siblings.setdefault(span.parent_id, []).append(index)
    for parent_id, group in siblings.items():
        parent = index_of.get(parent_id)
        found = [] if parent is None else list(_late_readers(spans, group, parent, siblings.keys()))
        if not found and len(group) > 1 and _any_overlap(spans, group):
            found = list(_consumers(spans, group, siblings.keys()))
        for index, call in found:
            end_ns = min(_end(spans[index]), _end(spans[call]))
            spans[index] = spans[index]._replace(parent_id=spans[call].span_id, end_ns=end_ns)
    return spans


def _any_overlap(spans: Sequence[SpanRecord], group: Sequence[int]) -> bool:
    in_order = sorted((spans[index] for index in group), key=lambda span: span.start_ns)
    return any(later.start_ns < _end(span) for span, later in pairwise(in_order))


def _consumers(
    spans: Sequence[SpanRecord], group: Sequence[int], parents: Collection[str]
) -> Iterator[tuple[int, int]]:
    """Yield each span of a group that reads a stream, and the call whose stream it is."""
    stages = {index: read(spans[index]).stage for index in group}
    calls = sorted((i for i in group if stages[i] == semconv.GENERATION), key=lambda i: _end(spans[i]))
    ends = [_end(spans[call]) for call in calls]
    for index in group:
        span = spans[index]
        if stages[index] is not None or span.span_id in parents:
            continue
        position = bisect_left(ends, _end(span))
        nearby = calls[max(position - 1, 0) : position + 1]
        call = next((i for i in nearby if _reads(span, spans[i])), None)
        if call is not None:
            yield index, call


def _late_readers(
    spans: Sequence[SpanRecord], group: Sequence[int], call: int, parents: Collection[str]
) -> Iterator[tuple[int, int]]:
    """Yield each span of a group below a call that reads its stream and ends a bit after it, and the call."""
    late = [index for index in group if _end(spans[index]) > _end(spans[call])]
    if late and read(spans[call]).stage == semconv.GENERATION:
        for index in late:
            span = spans[index]
            if span.span_id not in parents and _reads(span, spans[call]) and read(span).stage is None:
                yield index, call


def _reads(span: SpanRecord, call: SpanRecord) -> bool:
    """Return whether a span by the same writer began within the call, and ended nearly with it.

    Who wrote a stage down by hand knows what lies in it.
    """
    near = min(_NEAR_NS, max(_AT_LEAST_NS, (_end(call) - call.start_ns) * _NEAR_RATIO))
    return (
        span.scope.name == call.scope.name
        and semconv.STAGE not in call.attributes
        and call.start_ns <= span.start_ns < _end(call)
        and abs(_end(span) - _end(call)) <= near
    )


def _end(span: SpanRecord) -> int:
    return span.start_ns if span.end_ns is None else span.end_ns
