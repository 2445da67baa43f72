"""Spans that read a model's stream while it comes: part of the call, wherever their writer put them."""

from __future__ import annotations

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
_N_NEIGHBOURS: Final = 8  # in order of their ends: a call and what reads it are not far apart


def with_consumers(spans: list[SpanRecord]) -> list[SpanRecord]:
    """Return the spans with each that does nothing but read a model's stream put below the model's call.

        chat     |-------------------|
        parser       |----------------|     began while the answer came, and ended with it

    LangChain writes its parsers beside the call, and they end last: the request would seem to have waited for
    them, and not for the model.  What they do after the call's end is the time of the span around it, also of
    those that are written below the call.
    """
    index_of = {span.span_id: index for index, span in enumerate(spans)}
    siblings: dict[str, list[tuple[int, int]]] = {}  # by their parent: end, index
    for index, span in enumerate(spans):
        if span.parent_id is not None and span.end_ns is not None:
            siblings.setdefault(span.parent_id, []).append((span.end_ns, index))
    for parent_id, group in siblings.items():
        group.sort()
        parent = index_of.get(parent_id)
        found: list[tuple[int, int]] = []
        if parent is not None and group[-1][0] > _end(spans[parent]):
            found = list(_late_readers(spans, group, parent, siblings.keys()))
        if not found and any(spans[later].start_ns < end for (end, _), (_, later) in pairwise(group)):
            found = list(_consumers(spans, [index for _, index in group], siblings.keys()))
        for index, call in found:
            end_ns = min(_end(spans[index]), _end(spans[call]))
            spans[index] = spans[index]._replace(parent_id=spans[call].span_id, end_ns=end_ns)
    return spans


def _consumers(
    spans: Sequence[SpanRecord], by_end: Sequence[int], parents: Collection[str]
) -> Iterator[tuple[int, int]]:
    """Yield each span of a group that reads a stream, and the call whose stream that is."""
    is_call: dict[int, bool] = {}
    for position, index in enumerate(by_end):
        span = spans[index]
        if span.span_id in parents:
            continue
        nearby = by_end[max(position - _N_NEIGHBOURS, 0) : position + _N_NEIGHBOURS + 1]
        read_by_it = [other for other in nearby if other != index and _reads(span, spans[other])]
        for other in read_by_it:
            if other not in is_call:
                is_call[other] = read(spans[other]).stage == semconv.GENERATION
        calls = [other for other in read_by_it if is_call[other]]
        if calls and read(span).stage is None:
            yield index, min(calls, key=lambda call: abs(_end(spans[call]) - _end(span)))


def _late_readers(
    spans: Sequence[SpanRecord], group: Sequence[tuple[int, int]], call: int, parents: Collection[str]
) -> Iterator[tuple[int, int]]:
    """Yield each span of a group below a call that reads its stream and ends a bit after it, and the call."""
    late = [index for end, index in group if end > _end(spans[call])]
    if late and read(spans[call]).stage == semconv.GENERATION:
        for index in late:
            span = spans[index]
            if span.span_id not in parents and _reads(span, spans[call]) and read(span).stage is None:
                yield index, call


def _reads(span: SpanRecord, call: SpanRecord) -> bool:
    """Return whether a span by the same writer began within the call, and ended nearly with it.

    Who wrote a stage down by hand knows what lies in it.
    """
    if not call.start_ns <= span.start_ns < _end(call) or span.scope.name != call.scope.name:
        return False
    near = min(_NEAR_NS, max(_AT_LEAST_NS, (_end(call) - call.start_ns) * _NEAR_RATIO))
    return abs(_end(span) - _end(call)) <= near and semconv.STAGE not in call.attributes


def _end(span: SpanRecord) -> int:
    return span.start_ns if span.end_ns is None else span.end_ns
