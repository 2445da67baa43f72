"""The table of stages as CSV, for spreadsheets: one row a stage, times in ms, nothing where there is nothing.

What was lost or repaired has no place in a table: the command says it on standard error.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any, Final

from hotspan.analysis.frame import COLUMNS
from hotspan.analysis.parts import NO_VALUE, WHOLE
from hotspan.exporters.reports.names import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotspan.analysis.report import Report

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would run
_MS_PER_NS: Final = 1e-6


def render(report: Report) -> str:
    """Return the stages and the unattributed rest; with groups, a table of each value below the whole run's.

    A text that a spreadsheet would take for a formula has an apostrophe before it.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    key = [] if report.groups is None else [_text(report.groups.attribute)]
    writer.writerow([*key, *COLUMNS])
    for value, part in _parts(report):
        lead = [] if report.groups is None else [_text(value)]
        writer.writerows([*lead, *row] for row in _rows(part))
    return buffer.getvalue()


def _parts(report: Report) -> Iterator[tuple[str | None, Report]]:
    yield None if report.groups is None else WHOLE, report
    if report.groups is not None:
        yield from report.groups.reports


def _rows(report: Report) -> Iterator[list[Any]]:
    for row in report.stages:
        yield [_cell(value(row)) for _, value in COLUMNS.values()]
    rest = report.unattributed
    yield _rest("unattributed", rest.critical_path_ns, rest.critical_path_ratio)
    if report.selection is not None and report.selection.has_calls:
        yield _rest("not selected", report.selection.other_ns, report.selection.other_ratio)


def _rest(name: str, ns: int | None, ratio: float | None) -> list[Any]:
    ms = None if ns is None else ns * _MS_PER_NS
    known = {"stage": name, "critical_path_ms": ms, "critical_path_ratio": ratio}
    return [known.get(column) for column in COLUMNS]


def _cell(value: Any) -> Any:
    return _text(value) if isinstance(value, str) else value


def _text(text: str | None) -> str:
    shown = NO_VALUE if text is None else printable(text)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown
