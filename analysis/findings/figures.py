"""The figures that findings rest on: absent counts as 0 to compare with, and is not printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.analysis.phases import TO_THE_END
from hotspan.analysis.shares import Shares
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from hotspan.analysis.model import PhaseRow, Report, StageRow
    from hotspan.analysis.tail import TailPart

MUCH: Final = 0.5  # of what a finding is about
WORTHWHILE: Final = 0.1  # of the request: less is not worth a step
SELDOM: Final = 0.01  # of the attempts: less may happen to anyone
MIN_TAIL: Final = 5  # slow requests, for a mean that no single one decides
_NS_PER_MS: Final = 1_000_000


def printed(report: Report, ratio: float) -> str:
    """Return a share of request time as the report's table prints it."""
    return Shares(report).percent(ratio)


def milliseconds(ns: float | None) -> float | None:
    """Return a time for an evidence field that ends in `_ms`, unrounded; `None` where it is not known."""
    return None if ns is None else ns / _NS_PER_MS


def row_of(report: Report, stage: str) -> StageRow | None:
    """Return a stage's row, where the run has the stage."""
    return next((row for row in report.stages if row.stage == stage), None)


def stage_ratio(report: Report, stage: str) -> float | None:
    """Return a stage's share of the critical path; `None` for one that the run does not have, to print."""
    row = row_of(report, stage)
    return None if row is None else row.critical_path_ratio


def phase_ns(report: Report, name: str) -> float:
    """Return a phase's mean per model call; 0 where it was not measured, to add and compare."""
    return report.generation.phases_ns.get(name) or 0.0


def phase_ms(report: Report, name: str) -> float | None:
    """Return a phase's mean per model call, in milliseconds; `None` where it was not measured, to print."""
    return milliseconds(report.generation.phases_ns.get(name))


def open_ended(report: Report) -> dict[str, int]:
    """Return of how many calls `decode` is until their end, if of any: their last token is not known."""
    n_calls = report.generation.phase_sources.get("decode", {}).get(TO_THE_END, 0)
    return {"calls_without_a_last_token": n_calls} if n_calls else {}


def mean_call_ns(report: Report) -> float:
    """Return the mean duration of the successful model calls: the sum of its phases."""
    return sum(value or 0.0 for value in report.generation.phases_ns.values())


def phase_share(report: Report, name: str) -> float | None:
    """Return a phase's share of all request time; `None` where no call has it."""
    phase = _phase_row(report, name)
    return None if phase is None else phase.critical_path_ratio


def _phase_row(report: Report, name: str) -> PhaseRow | None:
    row = row_of(report, semconv.GENERATION)
    return None if row is None else next((phase for phase in row.phases if phase.name == name), None)


def slow_share(report: Report, stage: str, phase: str | None = None) -> float | None:
    """Return a part's share of the slowest requests' time; `None` where these are too few."""
    part = tail_part(report, stage, phase)
    return None if part is None else part.slow_ratio


def tail_part(report: Report, stage: str, phase: str | None = None) -> TailPart | None:
    """Return a stage, or a phase of it, in the comparison with the slowest requests, where these suffice."""
    tail = report.tail
    if tail is None or tail.n_requests < MIN_TAIL:
        return None
    return next((part for part in tail.parts if (part.stage, part.phase) == (stage, phase)), None)


def request_ns(report: Report) -> float:
    """Return the duration of all requests together; 0 where none succeeded."""
    return report.tail.all_ns * report.tail.n_all if report.tail is not None else 0.0


def of_request_time(report: Report, ns: float) -> float:
    """Return a time as a share of all request time; 0 where that is not known."""
    whole = request_ns(report)
    return ns / whole if whole else 0.0
