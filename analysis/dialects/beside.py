"""HTTP requests that are written beside the model call that sent them, or outside of everything."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from hotspan.analysis.dialects.attempts import has_failed
from hotspan.analysis.dialects.reading import read
from hotspan.analysis.dialects.transport import endpoint_stage
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotspan.tracer.record import SpanRecord

    Starts = list[tuple[int, int]]  # of calls, in order: when one began, and its index

_STAGES: Final = frozenset({semconv.GENERATION, semconv.EMBEDDING})
_NOTHING_NS: Final = 5_000_000  # no model answers sooner: such a span was written when all was over
_N_NEIGHBOURS: Final = 8  # before and after a request: its call is not far


def with_requests_beside(spans: list[SpanRecord]) -> list[SpanRecord]:
    """Return the spans with each such request below its call, and a call that was written late begun with it.

        chat  |-----------------|            chat                   ||    a stream's, written at its end
        POST    |--|                         POST  |--|

    Otherwise one call would be two.  A request without a parent here may be that of any call of the trace.
    """
    requests = [
        index for index, span in enumerate(spans) if endpoint_stage(span) in _STAGES and read(span).is_guess
    ]
    if not requests:
        return spans
    senders = {spans[index].parent_id for index in requests}
    calls = [
        (span.start_ns, index)
        for index, span in enumerate(spans)
        if span.span_id not in senders and (said := read(span)).stage in _STAGES and not said.is_guess
    ]
    if calls:
        _put_below(spans, sorted(requests, key=lambda index: spans[index].start_ns), sorted(calls))
    return spans


def _put_below(spans: list[SpanRecord], requests: Sequence[int], calls: Starts) -> None:
    below: dict[str | None, Starts] = {}
    for start_ns, index in calls:
        below.setdefault(spans[index].parent_id, []).append((start_ns, index))
    ids, parents = {span.span_id for span in spans}, {span.parent_id for span in spans}
    answered: set[int] = set()
    sent: list[tuple[int, int]] = []  # a call, and a request of it: found by where the calls were written
    for index in requests:
        request = spans[index]
        if request.parent_id == request.span_id:
            continue
        if request.parent_id in ids:
            possible = below.get(request.parent_id, [])
        else:
            possible = calls if request.span_id not in parents else []  # no call that it holds
        call = _sender(spans, request, possible, answered)
        if call is None:
            continue
        sent.append((call, index))
        if not has_failed(request):  # a call sends one request more for each that failed
            answered.add(call)
    for call, index in sent:
        start_ns = min(spans[call].start_ns, spans[index].start_ns)
        spans[call] = spans[call]._replace(start_ns=start_ns)
        spans[index] = spans[index]._replace(parent_id=spans[call].span_id)


def _sender(
    spans: Sequence[SpanRecord], request: SpanRecord, calls: Starts, answered: set[int]
) -> int | None:
    """Return the last call that began before the request and lasted longer, else the next late one."""
    at = bisect_right(calls, (request.start_ns, len(spans)))
    before = [index for _, index in reversed(calls[max(at - _N_NEIGHBOURS, 0) : at])]
    after = [index for _, index in calls[at : at + _N_NEIGHBOURS]]
    stage, end_ns = endpoint_stage(request), request.start_ns + request.duration_ns
    for index in (*before, *after):
        call = spans[index]
        if index in answered or read(call).stage != stage:
            continue
        if index in before and end_ns <= call.start_ns + call.duration_ns:
            return index
        if index in after and end_ns <= call.start_ns and _is_late(call):
            return index
    return None


def _is_late(call: SpanRecord) -> bool:
    return call.attributes.get(semconv.REQUEST_STREAM) is True and call.duration_ns < _NOTHING_NS
