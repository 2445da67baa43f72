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
MAIN_PHASES: Final = frozenset({"queue", "prefill", "first_token_wait", "decode"})
_MINOR_PHASE_RATIO: Final = 0.01
_REST: Final = "rest"  # of the phases
_NOT_SELECTED: Final = "not selected"  # calls that --where left out
_UNATTRIBUTED: Final = "unattributed"  # the name of the last line, and of a phase


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

    The tenths of the stages, of `unattributed` and of `not selected` add up to 1000, those of the phases to
    their stage's.  The request has no line: it is above the table.
    """
    rows = [row for row in report.stages if row.stage != semconv.REQUEST]
    on_path = [row for row in rows if row.critical_path_ratio is not None]
    rest = report.unattributed.critical_path_ratio
    other = report.selection.other_ratio if report.selection is not None else None
    ratios = [*(row.critical_path_ratio or 0.0 for row in on_path), rest or 0.0, other or 0.0]
    *tenths, rest_tenths, other_tenths = figures.tenths_of_percent(ratios)
    lines: list[StageLine] = []
    for row, share in zip(on_path, tenths, strict=True):
        lines.append(StageLine(row.stage, palette.colour(row.stage), share, row))
        lines.extend(_phase_lines(row, share))
    off_path = [row for row in rows if row.critical_path_ratio is None]
    lines.extend(StageLine(row.stage, palette.colour(row.stage), None, row) for row in off_path)
    if rest is not None:
        lines.append(StageLine(_UNATTRIBUTED, palette.UNATTRIBUTED, rest_tenths))
    if other is not None:
        lines.append(StageLine(_NOT_SELECTED, palette.UNATTRIBUTED, other_tenths))
    return lines


def _phase_lines(row: StageRow, total_tenths: int) -> Iterator[StageLine]:
    shown = _shown_phases(row)
    ratios = [phase.critical_path_ratio or 0.0 for phase in shown]
    # Also the time of calls that failed: phases are those of the calls that succeeded.
    rest = max(0.0, (row.critical_path_ratio or 0.0) - sum(ratios))
    *tenths, rest_tenths = figures.tenths_of_percent([*ratios, rest], total_tenths)
    colour = palette.colour(row.stage)
    for phase, share in zip(shown, tenths, strict=True):
        yield StageLine(f" {phase.name}", colour, share, phase=phase)
    if shown and rest_tenths:
        yield StageLine(f" {_REST}", colour, rest_tenths)


def _shown_phases(row: StageRow) -> list[PhaseRow]:
    phases = [phase for phase in row.phases if phase.mean_ns > 0]
    if all(phase.name == _UNATTRIBUTED for phase in phases):
        return []  # nothing is known of where the time went
    bound = _MINOR_PHASE_RATIO * (row.critical_path_ratio or 0.0)
    shown = [p for p in phases if p.name in MAIN_PHASES or (p.critical_path_ratio or 0.0) > bound]
    # A rest of one phase may as well have its name.
    return phases if len(phases) - len(shown) == 1 else shown
