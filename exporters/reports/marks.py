"""The marks on figures, and the legend that explains those that occurred."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hotspan.exporters.reports import figures

if TYPE_CHECKING:
    from hotspan.analysis.report import Distribution

ESTIMATE = "~"
WEAK = "*"


@dataclass(slots=True)
class Marks:
    """Which marks one rendering has used."""

    absent: bool = False
    estimate: bool = False
    weak: bool = False

    def duration(self, ns: float | None, unit: str | None = None) -> str:
        """Return a duration, or the mark of an absent one."""
        return self.or_absent(figures.duration(ns, unit))

    def percentile(self, dist: Distribution | None, name: str, unit: str | None = None) -> str:
        """Return a percentile of a distribution of durations, marked when too few samples carry it."""
        if dist is None:
            return self.or_absent(figures.ABSENT)
        return self.carried(getattr(dist, name), unit, is_weak=name in dist.weak)

    def carried(self, ns: float | None, unit: str | None = None, *, is_weak: bool) -> str:
        """Return a duration, or the mark of an absent one; with that of too few samples where they are."""
        if ns is None or not is_weak:
            return self.duration(ns, unit)
        self.weak = True
        return figures.duration(ns, unit) + WEAK

    def or_absent(self, figure: str) -> str:
        """Return the figure as it is, having noted whether it is the mark of an absent one."""
        self.absent |= figure == figures.ABSENT
        return figure

    def estimated(self, figure: str, *, when: bool = True) -> str:
        """Return the figure with the mark of an estimate before it, when it is one."""
        if not when or figure == figures.ABSENT:
            return self.or_absent(figure)
        self.estimate = True
        return ESTIMATE + figure

    def legend(self) -> str:
        """Return one line that explains the marks that were used; empty when there were none."""
        used = (
            (self.absent, f"{figures.ABSENT} not measured"),
            (self.estimate, f"{ESTIMATE} an estimate"),
            (self.weak, f"{WEAK} fewer than 10 samples lie beyond it"),
        )
        return "   ".join(text for is_used, text in used if is_used)
