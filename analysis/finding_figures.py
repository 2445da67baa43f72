"""The figures that findings rest on: absent counts as 0 to compare with, and is not printed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hotspan.analysis.model import Report, StageRow

MUCH: Final = 0.5  # of what a finding is about
WORTHWHILE: Final = 0.1  # of the request: less is not worth a step
_NS_PER_MS: Final = 1_000_000


def percent(ratio: float) -> str:
    """Return a share as a person reads it."""
    return f"{ratio * 100:.0f} %" if ratio >= WORTHWHILE else f"{ratio * 100:.1f} %"


def significant(value: float) -> str:
    """Return a positive number with three significant digits, without an exponent."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.{max(0, 2 - math.floor(math.log10(rounded)))}f}" if rounded else "0"


def milliseconds(ns: float | None) -> float | None:
    """Return a time for an evidence field that ends in `_ms`, unrounded; `None` where it is not known."""
    return None if ns is None else ns / _NS_PER_MS


def row_of(report: Report, stage: str) -> StageRow | None:
    """Return a stage's row, where the run has the stage."""
    return next((row for row in report.stages if row.stage == stage), None)


def share_of(report: Report, stage: str) -> float:
    """Return a stage's share of the critical path; 0 for a stage that is not there, to compare with."""
    return stage_ratio(report, stage) or 0.0


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
