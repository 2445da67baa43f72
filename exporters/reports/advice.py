"""What would help: the findings with their figures, then the estimates of single changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hotspan.exporters.reports import figures, palette

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import RenderableType

    from hotspan.analysis.report import Finding, Report, WhatIf
    from hotspan.exporters.reports.marks import Marks
    from hotspan.exporters.reports.screen import Screen

_MOST_CHANGES: Final = 5
_CHANGE_CELLS: Final = 36
_STYLES: Final = {
    "info": "bold",
    "warning": f"bold {palette.WARNING}",
    "critical": f"bold {palette.CRITICAL}",
}
_NS_OF: Final = {"_ns": 1.0, "_us": 1e3, "_ms": 1e6, "_s": 1e9}


def advice(report: Report, screen: Screen, marks: Marks) -> Iterator[RenderableType]:
    """Yield the heading, every finding in the order of the report, and the estimates of single changes."""
    yield Text("What would help", "bold")
    for number, finding in enumerate(report.findings, start=1):
        yield _finding(number, finding, screen)
    if report.what_if:
        yield _changes(report.what_if[:_MOST_CHANGES], screen, marks)


def _finding(number: int, finding: Finding, screen: Screen) -> RenderableType:
    grid = Table.grid(padding=(0, 1, 0, 0), pad_edge=False)
    style = _STYLES[finding.severity] if screen.colour else ""
    grid.add_row(Text(str(number), style), Text(screen.text(finding.text), style))
    if evidence := _figures(finding.evidence):
        grid.add_row("", Text(screen.text(evidence)))
    if finding.next_step:
        grid.add_row("", Text(screen.text(f"→ {finding.next_step}")))
    return grid


def _figures(evidence: Mapping[str, Any]) -> str:
    return " · ".join(_figure(name, value) for name, value in evidence.items())


def _figure(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{_words(name)} {value}"
    if name.endswith("_ratio"):
        return f"{_words(name.removesuffix('_ratio'))} {figures.percent(value)}"
    for suffix, factor in _NS_OF.items():
        if name.endswith(suffix) and not name.endswith("_per_s"):
            return f"{_words(name.removesuffix(suffix))} {figures.duration(value * factor)}"
    number = figures.count(value) if isinstance(value, int) else figures.significant(value)
    return f"{_words(name)} {number}"


def _words(name: str) -> str:
    return name.removeprefix("n_").replace("_", " ")


def _changes(changes: tuple[WhatIf, ...], screen: Screen, marks: Marks) -> RenderableType:
    grid = Table.grid(padding=(0, 3, 0, 0), pad_edge=False)
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    for change in changes:
        grid.add_row(
            Text(screen.name(change.change, _CHANGE_CELLS)),
            Text(f"request p50 {_change(change.request_p50_change_ratio, marks)}"),
            Text(f"p95 {_change(change.request_p95_change_ratio, marks)}"),
        )
    return Padding(grid, (0, 0, 0, 2), expand=False)


def _change(ratio: float, marks: Marks) -> str:
    return f"{marks.estimated(figures.percent(abs(ratio)))} {'longer' if ratio > 0 else 'shorter'}"
