"""What a report's figures rest on, and what a reader of it has to be told first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hotspan.analysis.basis import Evidence
from hotspan.analysis.call_table import CLIPPED, DISORDERED
from hotspan.analysis.calls import NOT_SELECTED
from hotspan.analysis.readers import ReadEvidence
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotspan.analysis.collect import Collector

_MAX_WARNINGS = 50
_MAX_NAMES = 5  # in one warning


def evidence_of(collector: Collector, read: object) -> Evidence:
    """Return the evidence of everything that was collected.

    Args:
        collector: With all traces in it.
        read: What a reader saw, where the traces came from one; anything else is ignored.
    """
    seen = read if isinstance(read, ReadEvidence) else ReadEvidence()
    repairs = collector.repairs
    ratio = _sample_ratio(collector)
    per_span = _weighted(collector, semconv.OVERHEAD_NS)
    per_chunk = _weighted(collector, semconv.CHUNK_OVERHEAD_NS)
    return Evidence(
        files=seen.files,
        n_spans=repairs["n_spans"] + seen.n_refused_spans,
        n_traces=collector.n_traces,
        n_requests=collector.n_requests,
        n_partial_traces=collector.n_partial_traces,
        n_unfinished_roots=repairs["n_unfinished_roots"],
        n_invalid_roots=repairs["n_invalid_roots"],
        n_unstaged_traces=collector.n_unstaged_traces,
        n_dropped_spans=seen.n_dropped_spans,
        n_unended_spans=min(seen.n_unended_spans, seen.n_dropped_spans),
        n_duplicate_spans=repairs["n_duplicates"],
        n_same_id_spans=repairs["n_same_id"],
        n_orphan_spans=repairs["n_orphans"],
        n_entry_requests=repairs["n_entries"],
        n_twin_spans=collector.twins.n_twins,
        n_late_spans=repairs["n_late"],
        n_early_spans=repairs["n_early"],
        n_invalid_spans=repairs["n_invalid"] + seen.n_refused_spans,
        n_unfinished_spans=repairs["n_unfinished"],
        n_other_lines=seen.n_other_lines,
        n_cycles_cut=repairs["n_cycles"],
        n_engine_spans=collector.engines.n_spans,
        n_engine_joined=collector.engines.n_joined,
        n_engine_clipped=_n_flagged(collector, CLIPPED),
        is_sampled=(ratio is not None and ratio < 1) or collector.weights.is_sampled,
        sample_ratio=ratio,
        is_sample_ratio_estimated=collector.weights.is_sampled and collector.weights.is_weighted,
        overhead_per_span_ns=per_span,
        overhead_per_chunk_ns=per_chunk,
        overhead_ratio=_overhead_ratio(collector, per_span, per_chunk),
        services=tuple(sorted(str(value) for value in collector.writers.values(semconv.SERVICE_NAME))),
        engines=tuple(sorted(collector.calls.engines.known())),
        models=tuple(sorted(collector.calls.models.known())),
        warnings=tuple([*seen.warnings, *collector.warnings, *_warnings(collector, seen)][:_MAX_WARNINGS]),
    )


def _sample_ratio(collector: Collector) -> float | None:
    """Return the share of the requests that was traced; where no request says it, as the writers do."""
    if collector.weights.is_sampled:
        return collector.weights.recorded_ratio
    return min((ratio for ratio, _ in collector.writers.weighted(semconv.SAMPLE_RATIO)), default=None)


def _weighted(collector: Collector, key: str) -> float | None:
    """Return the writers' own measure of what tracing costs, each weighed by the spans that it wrote."""
    found = list(collector.writers.weighted(key))
    n_spans = sum(n for _, n in found)
    return math.fsum(cost * n for cost, n in found) / n_spans if n_spans else None


def _overhead_ratio(collector: Collector, span_ns: float | None, chunk_ns: float | None) -> float | None:
    if span_ns is None or not collector.request_ns:
        return None
    cost_ns = span_ns * collector.n_request_spans + (chunk_ns or 0) * collector.n_request_chunks
    return min(cost_ns / collector.request_ns, 1.0)


def _n_flagged(collector: Collector, flag: int) -> int:
    return int(((collector.calls.rows()["flags"] & flag) > 0).sum())


def _outside(collector: Collector) -> list[str]:
    """Return the stages without a call in a complete request."""
    found = (name for name, totals in collector.stages.items() if not totals.is_in_requests)
    return sorted(name for name in found if name != NOT_SELECTED)


def _why_incomplete(collector: Collector) -> str:
    if 0 < collector.n_partial_traces == collector.repairs["n_unfinished_roots"]:
        return (
            "no root that has a stage below it ever ended; record again, and let the requests end before the "
            "program does, or add the file that holds the ends"
        )
    return (
        "no trace has both its root and a span with a stage that can be used; "
        "name the stages with hotspan's decorators, or add the file that holds the roots"
    )


def _warnings(collector: Collector, seen: ReadEvidence) -> Iterator[str]:
    """Yield what no count of the evidence says: renderers put the counts into words themselves."""
    yield from collector.weights.warnings()
    yield from collector.beginnings.warnings()
    yield from collector.gaps.warnings()
    yield from collector.twins.gains.warnings()
    n_disordered = _n_flagged(collector, DISORDERED)
    if collector.n_traces and not collector.n_requests:
        yield f"no complete request: {_why_incomplete(collector)}"
    if outside := _outside(collector):
        more = len(outside) - _MAX_NAMES
        names = ", ".join(outside[:_MAX_NAMES]) + (f" and {more} more stages" if more > 0 else "")
        yield (
            f"every call of {names} lies outside all complete requests: "
            "no wall, self or critical-path time is known of them"
        )
    if collector.n_requests and not collector.request_ns:
        yield "every request ends when it starts: the critical path is empty, and there are no shares of it"
    if n_disordered:
        yield f"{n_disordered} model calls have a last token before their first: no decode time"
    if n_open := collector.calls.n_open_ended():
        yield (
            f"model calls whose first token's time is known and not the last one's: {n_open}; their decode "
            "is until their end, with what followed the last token in it"
        )
    if seen.n_faults:
        yield (
            f"{seen.n_faults} faults of Hotspan itself in the traced program, which logged the first: "
            "spans may lack attributes or be lost"
        )
    if seen.n_broken_calls:
        yield (
            f"{seen.n_broken_calls} calls failed with the worker process that ran them: "
            "the spans that it had not written are missing, and in no count"
        )
    if n_early := collector.repairs["n_early"]:
        start = "span starts before its" if n_early == 1 else "spans start before their"
        yield (
            f"{n_early} {start} parent: the clocks of two processes differ, or a parent is wrong; "
            "nothing was shifted"
        )
