"""Runs of agents that are written as an empty span, beside one that says nothing and holds what they did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.analysis.dialects.reading import read
from hotspan.analysis.dialects.table import dialect_of
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from hotspan.tracer.record import SpanRecord

_MOST: Final = 0.9  # of the run, which the other span takes at least


def with_envelopes(spans: list[SpanRecord]) -> list[SpanRecord]:
    """Return the spans with what such a run did put below it.

        invoke_agent helper   |---------------|     empty
        execute_task helper    |-------------|      its model calls and tools are here

    Otherwise the request would seem to have waited for the first of them, in which nothing happens.
    """
    runs = [
        index
        for index, span in enumerate(spans)
        if (dialect := dialect_of(span)) is not None
        and dialect.has_empty_runs
        and read(span).stage == semconv.AGENT
    ]
    if not runs:
        return spans
    parents = {span.parent_id for span in spans}
    siblings: dict[str | None, list[int]] = {}
    for index, span in enumerate(spans):
        siblings.setdefault(span.parent_id, []).append(index)
    for index in runs:
        run = spans[index]
        if run.span_id in parents or run.parent_id is None:
            continue
        holding = _holding(spans, run, siblings[run.parent_id], parents)
        if len(holding) == 1:  # of several that ran at once, none is known to be it
            spans[holding[0]] = spans[holding[0]]._replace(parent_id=run.span_id)
    return spans


def _holding(
    spans: Sequence[SpanRecord], run: SpanRecord, siblings: Sequence[int], parents: Collection[str | None]
) -> list[int]:
    return [
        index
        for index in siblings
        if spans[index].span_id in parents
        and spans[index].scope.name == run.scope.name
        and run.start_ns <= spans[index].start_ns
        and (spans[index].end_ns or 0) <= run.start_ns + run.duration_ns
        and spans[index].duration_ns >= run.duration_ns * _MOST
        and read(spans[index]).stage is None
    ]
