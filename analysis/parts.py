"""What a report is about when it is not one figure for the whole run: a selection of it, or groups of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from hotspan.analysis.model import Report

JsonDict = dict[str, Any]
# What stands in the place of a value; a text that is spelt so is in quotes.
WHOLE: Final = "(all)"  # of the whole run, beside its groups
NO_VALUE: Final = "(none)"
OTHER: Final = "other values"
_MS_PER_NS = 1e-6


@dataclass(frozen=True, slots=True)
class Selection:
    """What `--where` kept.  Shares are of the time of the kept requests, whole."""

    where: str
    n_read: int  # complete requests
    n_kept: int
    has_calls: bool = False  # calls were selected: stages, percentiles and tokens are those of these calls
    other_ns: int | None = 0  # critical-path time of calls that were not selected; None: in no request
    other_ratio: float | None = None

    def to_dict(self) -> JsonDict:
        """Return the JSON form."""
        return {
            "expression": self.where,
            "requests_read": self.n_read,
            "requests_kept": self.n_kept,
            "selects_calls": self.has_calls,
            "not_selected": {
                "critical_path_ms": None if self.other_ns is None else self.other_ns * _MS_PER_NS,
                "critical_path_ratio": self.other_ratio,
            },
        }


@dataclass(frozen=True, slots=True)
class Groups:
    """One report for each value of an attribute; most requests first, what has no value last.

    A value is spelt as in a condition of `--where`: a text as it is, in quotes where it would be taken for
    another group's value, all else as JSON.
    """

    attribute: str
    reports: tuple[tuple[str | None, Report], ...]  # None: requests without the attribute
    n_other_values: int = 0  # values beyond the first 20, together in the report named `other values`

    def to_dict(self) -> JsonDict:
        """Return the JSON form."""
        return {
            "attribute": self.attribute,
            "groups": [{"value": value, "report": report.to_dict()} for value, report in self.reports],
            "other_values": self.n_other_values,
        }
