"""Shares of request time as they are printed: rounded once, for every place that prints them.

The table's tenths of a percent add up, so a row may read a tenth more or less than its own value rounded.  A
finding, its evidence and the comparison with the slowest requests give the same figure in the table's words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.analysis.words import percent, tenths_of_percent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hotspan.analysis.model import PhaseRow, Report, StageRow

# Phases that answer a question of their own; of the others only those that carry weight are printed.
MAIN_PHASES: Final = frozenset({"queue", "prefill", "first_token_wait", "decode"})
REST: Final = "rest"  # of the phases
NOT_SELECTED: Final = "not selected"  # calls that `--where` left out
UNATTRIBUTED: Final = "unattributed"  # the time in no stage, and a phase
_MINOR_PHASE_RATIO: Final = 0.01
_DIGITS: Final = 9  # to which a ratio is the same, however it was computed

Part = tuple[str | None, str | None]  # stage and phase; a stage alone; or a rest, of no stage


class Shares:
    """The shares of one report in tenths of a percent.

    Those of the stages, of `unattributed` and of `not selected` add up to 1000, those of the phases that are
    printed to their stage's.

    Args:
        report: The report; its findings are not looked at.
    """

    def __init__(self, report: Report) -> None:
        self._tenths: dict[Part, int] = {}
        self._by_ratio: dict[float, int] = {}
        on_path = [row for row in report.stages if row.critical_path_ratio is not None]
        other = report.selection.other_ratio if report.selection is not None else None
        rests = {UNATTRIBUTED: report.unattributed.critical_path_ratio, NOT_SELECTED: other}
        ratios: dict[Part, float] = {(row.stage, None): row.critical_path_ratio or 0.0 for row in on_path}
        self._note(ratios | {(None, name): ratio or 0.0 for name, ratio in rests.items()}, None)
        for row in on_path:
            self._note_phases(row)

    def tenths(self, stage: str | None, phase: str | None = None) -> int:
        """Return what is printed for a stage, a phase or rest of it, or a rest of no stage."""
        return self._tenths.get((stage, phase), 0)

    def percent(self, ratio: float) -> str:
        """Return a ratio as percent: one that the table has, as the table has it."""
        found = self._by_ratio.get(round(ratio, _DIGITS))
        return percent(ratio if found is None else found / 1000)

    def _note_phases(self, row: StageRow) -> None:
        if not (shown := shown_phases(row)):
            return
        ratios = {phase.name: phase.critical_path_ratio or 0.0 for phase in shown}
        # Also the time of calls that failed: phases are those of the calls that succeeded.
        ratios[REST] = max(0.0, (row.critical_path_ratio or 0.0) - sum(ratios.values()))
        self._note({(row.stage, name): ratio for name, ratio in ratios.items()}, self.tenths(row.stage))

    def _note(self, ratios: Mapping[Part, float], total: int | None) -> None:
        rounded = tenths_of_percent(list(ratios.values()), total)
        for (part, ratio), found in zip(ratios.items(), rounded, strict=True):
            self._tenths[part] = found
            self._by_ratio.setdefault(round(ratio, _DIGITS), found)


def shown_phases(row: StageRow) -> list[PhaseRow]:
    """Return the phases of a stage that get a line; the others are its rest."""
    phases = [phase for phase in row.phases if phase.mean_ns > 0]
    if all(phase.name == UNATTRIBUTED for phase in phases):
        return []  # nothing is known of where the time went
    bound = _MINOR_PHASE_RATIO * (row.critical_path_ratio or 0.0)
    shown = [p for p in phases if p.name in MAIN_PHASES or (p.critical_path_ratio or 0.0) > bound]
    # A rest of one phase may as well have its name.
    return phases if len(phases) - len(shown) == 1 else shown
