"""From traces to one `Report`: composes the passes of this package."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hotspan.analysis.amplification import amplification
from hotspan.analysis.basis import Evidence
from hotspan.analysis.collect import Collector, StageTotals
from hotspan.analysis.columns import view
from hotspan.analysis.evidence import evidence_of
from hotspan.analysis.findings import findings
from hotspan.analysis.frame import Stages
from hotspan.analysis.garbage import seldom_collected
from hotspan.analysis.generation_summary import phase_rows, summarise
from hotspan.analysis.groups import Grouping
from hotspan.analysis.model import (
    PHASES,
    Amplification,
    Finding,
    GenerationSummary,
    PhaseRow,
    Report,
    StageRow,
    TokenCounts,
    Unattributed,
    WhatIf,
)
from hotspan.analysis.parallel import pool
from hotspan.analysis.parts import Groups, Selection
from hotspan.analysis.percentiles import Distribution, PerRequest, distribution, per_request
from hotspan.analysis.readers import TraceReader
from hotspan.analysis.requests import RequestSummary, with_failures
from hotspan.analysis.run_account import run_phases
from hotspan.analysis.samples import telemetry_of
from hotspan.analysis.selection import Selected
from hotspan.analysis.tail import DEFAULT_PERCENTILE, Tail, TailFactor, TailPart, tail_of
from hotspan.tracer import semconv
from hotspan.tracer.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hotspan.tracer.record import Trace

__all__ = [
    "PHASES",
    "Amplification",
    "Distribution",
    "Evidence",
    "Finding",
    "GenerationSummary",
    "Groups",
    "PerRequest",
    "PhaseRow",
    "Report",
    "RequestSummary",
    "Selection",
    "StageRow",
    "Tail",
    "TailFactor",
    "TailPart",
    "TokenCounts",
    "Unattributed",
    "WhatIf",
    "analyse",
]


def analyse(traces: Iterable[Trace], *, by: str | None = None, tail: float = DEFAULT_PERCENTILE) -> Report:
    """Return where the time of the requests went, and what would help.

    Args:
        traces: From `hotspan.load`, or any other iterable; read once, one trace at a time, not changed.  What
            a reader's `.evidence` says goes into the report's.
        by: An attribute's key, or `name`, `outcome` or `service`: the report has one of its own for each
            value, in `.groups`.
        tail: In (0, 100): requests from this percentile of the durations on are the slowest, in `.tail`.

    Raises:
        ConfigurationError: `by` or `tail` cannot be used, or `traces` is a file's name.
        UnusableTraceError: No request has the attribute `by`.

    Source: docs/definitions.md, for every figure.
    """
    if not isinstance(tail, int | float) or isinstance(tail, bool) or not 0 < tail < 100:  # noqa: PLR2004 - percent
        msg = f"The slowest requests begin at a percentile between 0 and 100, not at {tail!r}: 95 is usual."
        raise ConfigurationError(msg)
    if isinstance(traces, str | os.PathLike):
        msg = f"Traces are analysed, not a file's name: hotspan.analyse(hotspan.load({os.fspath(traces)!r}))."
        raise ConfigurationError(msg)
    grouping = None if by is None else Grouping(by)
    with seldom_collected():
        collector = pool.collect(traces) if isinstance(traces, TraceReader) and by is None else None
        if collector is None:
            collector = Collector()
            for trace in traces:
                collector.add(trace)
                if grouping is not None:
                    grouping.add(trace)
    report = compose(collector, getattr(traces, "evidence", None), tail)
    if grouping is not None:
        report = replace(report, groups=_groups(grouping, traces, tail))
    return _as_selected(report, traces)


def _as_selected(report: Report, traces: Iterable[Trace]) -> Report:
    return traces.applied(report) if isinstance(traces, Selected) else report


def _groups(grouping: Grouping, traces: Iterable[Trace], tail: float) -> Groups:
    reports = tuple(
        (value, _as_selected(compose(collector, None, tail), traces))
        for value, collector in grouping.groups(
            "selected request" if isinstance(traces, Selected) else "request"
        )
    )
    return Groups(grouping.attribute, reports, grouping.n_other_values)


def compose(collector: Collector, read: object, tail: float) -> Report:
    """Return the report on what was collected; `read` is what a reader saw beside the traces."""
    collector.finish()
    collector.twins.gains.apply(collector.calls)
    collector.engines.finish(collector.calls)
    collector.calls.settle()
    telemetry = telemetry_of(getattr(read, "metrics", ()))
    rows = phase_rows(collector.calls, collector.request_ns)
    phases = run_phases(rows, telemetry.engines, collector.calls)
    stages = _stage_rows(collector, phases)
    worked = [row.stage for row in stages if row.critical_path_ns]
    report = Report(
        evidence=evidence_of(collector, read),
        request=_requests(collector),
        stages=stages,
        unattributed=_unattributed(collector),
        generation=summarise(collector.calls, phases),
        amplification=amplification(collector.requests),
        what_if=collector.replays.result(worked),
        tail=tail_of(collector.rows, collector.requests, collector.calls, rows, tail),
        patterns=collector.patterns.result(collector.calls, collector.requests, collector.rows),
        telemetry=telemetry,
    )
    return replace(report, findings=findings(report))


def _unattributed(collector: Collector) -> Unattributed:
    if not collector.n_requests:
        return Unattributed()
    ns = collector.unattributed_ns
    return Unattributed(ns, _ratio(ns, collector.request_ns))


def _requests(collector: Collector) -> RequestSummary:
    outcomes = collector.request_outcomes
    n_errors = outcomes["error"] + outcomes["truncated"]
    return RequestSummary(
        n=collector.n_requests,
        n_errors=n_errors,
        n_cancelled=outcomes["cancelled"] + outcomes["abandoned"] + outcomes["interrupted"],
        duration_ns=distribution(collector.request_durations_ns),
        error_ratio=collector.weights.error_ratio,
        is_weighted=collector.weights.is_weighted,
        with_failures_ns=with_failures(collector.request_durations_ns, n_errors) if n_errors else {},
    )


def _stage_rows(collector: Collector, phases: tuple[PhaseRow, ...]) -> Stages:
    rows = [
        _stage_row(stage, totals, collector, phases if stage == semconv.GENERATION else ())
        for stage, totals in collector.stages.items()
    ]
    return Stages(sorted(rows, key=_row_order))


def _row_order(row: StageRow) -> tuple[int, int, str]:
    # Envelopes from the outside in, then the stages by their share.
    if row.stage in semconv.ENVELOPES:
        return 0, semconv.STAGES.index(row.stage), row.stage
    return 1, -(row.critical_path_ns or 0), row.stage


def _stage_row(
    stage: str, totals: StageTotals, collector: Collector, phases: tuple[PhaseRow, ...]
) -> StageRow:
    critical_ns = totals.critical_ns if totals.is_in_requests and stage not in semconv.ENVELOPES else None
    ratio = None if critical_ns is None else _ratio(critical_ns, collector.request_ns)
    first = _first_call(totals)
    without = np.zeros(collector.n_requests - len(totals.calls_per_request), dtype=np.int64)
    return StageRow(
        stage=stage,
        n_calls=totals.n_calls,
        n_errors=totals.n_errors,
        n_cancelled=totals.n_cancelled,
        calls_per_request=per_request(np.concatenate((view(totals.calls_per_request), without))),
        duration_ns=distribution(totals.durations_ns),
        busy_ns=totals.busy_ns,
        wall_ns=totals.wall_ns if totals.is_in_requests else None,
        self_ns=totals.self_ns if totals.is_in_requests else None,
        critical_path_ns=critical_ns,
        critical_path_ratio=ratio,
        phases=phases if ratio is not None else _without_shares(phases),
        first_call_name=first.name,
        first_call_ns=first.ns,
        later_calls_p90_ns=first.later_p90_ns,
        n_later_calls=first.n_later,
        n_later_calls_as_slow=first.n_as_slow,
    )


def _without_shares(phases: Iterable[PhaseRow]) -> tuple[PhaseRow, ...]:
    return tuple(replace(phase, critical_path_ratio=None) for phase in phases)


@dataclass(frozen=True, slots=True)
class _FirstCall:
    """A span name's first call against its later ones, self times."""

    name: str | None = None
    ns: int | None = None
    later_p90_ns: float | None = None
    n_later: int = 0
    n_as_slow: int = 0  # later calls of more than half the first one's time

    @property
    def excess_ns(self) -> float:
        """By how much the first took longer."""
        return (self.ns or 0) - (self.later_p90_ns or 0.0)


def _first_call(totals: StageTotals) -> _FirstCall:
    """Return the first call that stands out most: by name, since one stage may do different work."""
    found = [
        _FirstCall(
            name, times.first[1], later.p90, later.n, int((2 * view(times.later_ns) > times.first[1]).sum())
        )
        for name, times in totals.self_times_of.items()
        if times.first is not None and (later := distribution(times.later_ns)) is not None
    ]
    return max(found, key=lambda first: (first.excess_ns, first.name or ""), default=_FirstCall())


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
