"""What the table of stages says, line by line: stages, the phases of generation, the unattributed rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hotspan.analysis.shares import NOT_SELECTED, REST, UNATTRIBUTED, Shares, shown_phases
from hotspan.exporters.reports import palette
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotspan.analysis.report import PhaseRow, Report, StageRow
    from hotspan.exporters.reports.marks import Marks

_OF_PHASES: Final = ("p50", "p95")  # percentiles that phases have


@dataclass(frozen=True, slots=True)
class StageLine:
    """One line: a stage, a phase of it (indented by a space), or a rest that has a share alone."""

    name: str
    colour: str  # #rrggbb
    tenths: int | None  # of a percent of the critical path; None where that has no meaning
    stage: StageRow | None = None
    phase: PhaseRow | None = None

    def percentile_ns(self, name: str) -> float | None:
        """Return a percentile of the durations, None where it is not known."""
        source = self.phase if self.stage is None else self.stage.duration_ns
        return (
            None if source is None else getattr(source, f"{name}_ns" if source is self.phase else name, None)
        )

    def percentile(self, name: str, marks: Marks, unit: str | None = None) -> str:
        """Return a percentile of the durations with its marks; empty for a line that has none."""
        if self.stage is not None:
            return marks.percentile(self.stage.duration_ns, name, unit)
        if self.phase is None or name not in _OF_PHASES:
            return ""
        return marks.carried(self.percentile_ns(name), unit, is_weak=name in self.phase.weak)


def stage_lines(report: Report) -> list[StageLine]:
    """Return the lines in the order of the table, with the tenths of `Shares`.

    The request has no line: it is above the table.
    """
    rows = [row for row in report.stages if row.stage != semconv.REQUEST]
    shares = Shares(report)
    lines: list[StageLine] = []
    for row in rows:
        if row.critical_path_ratio is not None:
            lines.append(StageLine(row.stage, palette.colour(row.stage), shares.tenths(row.stage), row))
            lines.extend(_phase_lines(row, shares))
    off_path = [row for row in rows if row.critical_path_ratio is None]
    lines.extend(StageLine(row.stage, palette.colour(row.stage), None, row) for row in off_path)
    if report.unattributed.critical_path_ratio is not None:
        lines.append(_rest(UNATTRIBUTED, shares))
    if report.selection is not None and report.selection.other_ratio is not None:
        lines.append(_rest(NOT_SELECTED, shares))
    return lines


def _rest(name: str, shares: Shares) -> StageLine:
    return StageLine(name, palette.UNATTRIBUTED, shares.tenths(None, name))


def _phase_lines(row: StageRow, shares: Shares) -> Iterator[StageLine]:
    shown, colour = shown_phases(row), palette.colour(row.stage)
    for phase in shown:
        yield StageLine(f" {phase.name}", colour, shares.tenths(row.stage, phase.name), phase=phase)
    if shown and (rest := shares.tenths(row.stage, REST)):
        yield StageLine(f" {REST}", colour, rest)
