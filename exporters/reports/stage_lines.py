"""What the table of stages says, line by line: stages, the phases of generation, the unattributed rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hotspan.exporters.reports import figures, palette
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotspan.analysis.report import PhaseRow, Report, StageRow

# Phases that answer a question of their own; of the others only those that carry weight get a line.
_MAIN_PHASES: Final = frozenset({"queue", "prefill", "first_token_wait", "decode"})
_MINOR_PHASE_RATIO: Final = 0.01
_REST: Final = "rest"
_UNATTRIBUTED: Final = "unattributed"


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


def stage_lines(report: Report) -> list[StageLine]:
    """Return the lines in the order of the table.

    The tenths of the stages and of `unattributed` add up to 1000, those of the phases to their stage's.  The
    request has no line: it is above the table.
    """
    rows = [row for row in report.stages if row.stage != semconv.REQUEST]
    on_path = [row for row in rows if row.critical_path_ratio is not None]
    rest = report.unattributed.critical_path_ratio
    ratios = [*(row.critical_path_ratio or 0.0 for row in on_path), rest or 0.0]
    *tenths, rest_tenths = figures.tenths_of_percent(ratios)
    lines: list[StageLine] = []
    for row, share in zip(on_path, tenths, strict=True):
        lines.append(StageLine(row.stage, palette.colour(row.stage), share, row))
        lines.extend(_phase_lines(row, share))
    envelopes = [row for row in rows if row.critical_path_ratio is None]
    lines.extend(StageLine(row.stage, palette.UNATTRIBUTED, None, row) for row in envelopes)
    if rest is not None:
        lines.append(StageLine(_UNATTRIBUTED, palette.UNATTRIBUTED, rest_tenths))
    return lines


def _phase_lines(row: StageRow, total_tenths: int) -> Iterator[StageLine]:
    shown, others = _split(row)
    other_ratio = sum(phase.critical_path_ratio for phase in others)
    ratios = [*(phase.critical_path_ratio for phase in shown), other_ratio]
    *tenths, rest_tenths = figures.tenths_of_percent(ratios, total_tenths)
    colour = palette.colour(row.stage)
    for phase, share in zip(shown, tenths, strict=True):
        yield StageLine(f" {phase.name}", colour, share, phase=phase)
    if others:
        yield StageLine(f" {_REST}", colour, rest_tenths)


def _split(row: StageRow) -> tuple[list[PhaseRow], list[PhaseRow]]:
    bound = _MINOR_PHASE_RATIO * (row.critical_path_ratio or 0.0)
    shown: list[PhaseRow] = []
    others: list[PhaseRow] = []
    for phase in row.phases:
        is_shown = phase.name in _MAIN_PHASES or phase.critical_path_ratio > bound
        (shown if is_shown else others).append(phase)
    # A rest of one phase may as well have its name.
    return (list(row.phases), []) if len(others) == 1 else (shown, others)
