"""Steps whose parent or end is not what it says: a framework that keeps one pointer to the current step.

NeMo Agent Toolkit gives a later turn of an agent, and the second of two tools that run at once, a parent that
is over or that runs beside it.  Of what failed it writes the start alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotspan.analysis.dialects.reading import read
from hotspan.analysis.dialects.table import dialect_of
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hotspan.tracer.record import SpanRecord


def with_steps(spans: list[SpanRecord]) -> list[SpanRecord]:
    """Return the spans with parents that were running, and ends for those that failed.

    agent   |------|                    named as the parent of all that follow
    tool             |---|              is moved up to what ran then: the workflow
    tool               |---|            named the first tool as its parent
    """
    loose = [
        index
        for index, span in enumerate(spans)
        if (dialect := dialect_of(span)) is not None and dialect.has_loose_steps
    ]
    if not loose:
        return spans
    last_ns = max(_latest_ns(span) for span in spans)
    for index in loose:
        if spans[index].end_ns is None:
            spans[index] = spans[index]._replace(end_ns=last_ns, status="error")
    by_id = {span.span_id: span for span in spans}
    for index in loose:
        parent = _running_parent(spans[index], by_id)
        if parent != spans[index].parent_id:
            spans[index] = spans[index]._replace(parent_id=parent)
    return spans


def _latest_ns(span: SpanRecord) -> int:
    ends: Sequence[int] = [event.time_ns for event in span.events]
    return max(span.start_ns if span.end_ns is None else span.end_ns, *ends, span.start_ns)


def _running_parent(span: SpanRecord, by_id: Mapping[str, SpanRecord]) -> str | None:
    """Return the nearest ancestor that ran when the span began, and is no tool where the span is one."""
    is_tool = read(span).stage == semconv.TOOL
    seen: set[str] = set()
    above = by_id.get(span.parent_id or "")
    while above is not None and above.span_id not in seen:
        seen.add(above.span_id)
        is_over = above.end_ns is not None and above.end_ns <= span.start_ns
        if not is_over and not (is_tool and read(above).stage == semconv.TOOL):
            return above.span_id
        if above.parent_id is None or above.parent_id not in by_id:
            break
        above = by_id[above.parent_id]
    return span.parent_id
