"""What would help: the findings with their figures, then the estimates of single changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rich.cells import cell_len
from rich.text import Text

from hotspan.analysis.shares import Shares
from hotspan.analysis.what_if import HALVED, PARALLEL
from hotspan.exporters.reports import figures, palette
from hotspan.exporters.reports.screen import hanging
from hotspan.exporters.reports.widths import pack

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from hotspan.analysis.report import Finding, Report, WhatIf
    from hotspan.exporters.reports.marks import Marks
    from hotspan.exporters.reports.screen import Screen

_AGAINST: Final = "against"  # the figure that speaks against a finding
_MOST_CHANGES: Final = 5
_SEEN_RATIO: Final = 0.0005  # what is printed as 0.1 %
_CHANGE_CELLS: Final = 36
# The changes that are printed: a stage that is gone would say little that its half does not.
_HEADINGS: Final = {
    HALVED: "If one stage took half the time",
    PARALLEL: "If one stage's calls ran at once",
}
_STYLES: Final = {
    "info": "bold",
    "warning": f"bold {palette.WARNING}",
    "critical": f"bold {palette.CRITICAL}",
}
_NS_OF: Final = {"_ns": 1.0, "_us": 1e3, "_ms": 1e6, "_s": 1e9}


def advice(report: Report, screen: Screen, marks: Marks) -> Iterator[RenderableType]:
    """Yield the heading, every finding in the order of the report, and the estimates of single changes."""
    if report.findings:
        yield ""
        yield Text("What would help", "bold")
    shares = Shares(report)
    for number, finding in enumerate(report.findings, start=1):
        yield _finding(number, finding, shares, screen)
    for heading, rows in changes(report, marks):
        yield from _changes(heading, rows, screen)


def _telling(report: Report, kind: str) -> Sequence[WhatIf]:
    """Return the changes of a kind that would be seen in the printed figures."""
    telling = [
        change
        for change in report.what_if
        if change.change.endswith(f" {kind}")
        and max(abs(change.request_p50_change_ratio), abs(change.request_p95_change_ratio)) >= _SEEN_RATIO
    ]
    return telling[:_MOST_CHANGES]


def _finding(number: int, finding: Finding, shares: Shares, screen: Screen) -> RenderableType:
    style = _STYLES[finding.severity] if screen.colour else ""
    grid = hanging(str(number), screen.text(finding.text), style)
    if evidence := evidence_of(finding.evidence, shares):
        grid.add_row("", Text(screen.text(evidence)))
    if finding.next_step:
        grid.add_row("", hanging(screen.text("→"), screen.text(finding.next_step)))
    return grid


def evidence_of(evidence: Mapping[str, Any], shares: Shares) -> str:
    """Return a finding's figures in words: those for it, then the one against it."""
    against = evidence.get(_AGAINST)
    parts = [_figures({name: value for name, value in evidence.items() if name != _AGAINST}, shares)]
    if isinstance(against, Mapping) and against:
        parts.append(f"to be weighed against: {_figures(against, shares)}")
    return "; ".join(part for part in parts if part)


def _figures(evidence: Mapping[str, Any], shares: Shares) -> str:
    return " · ".join(_figure(name, value, shares) for name, value in evidence.items())


def _figure(name: str, value: Any, shares: Shares) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{_words(name)} {value}"
    if name.endswith("_ratio"):
        return f"{_words(name.removesuffix('_ratio'))} {shares.percent(value)}"
    for suffix, factor in _NS_OF.items():
        if name.endswith(suffix) and not name.endswith("_per_s"):
            return f"{_words(name.removesuffix(suffix))} {figures.duration(value * factor)}"
    number = figures.count(value) if isinstance(value, int) else figures.significant(value)
    return f"{_words(name)} {number}"


def _words(name: str) -> str:
    return name.removeprefix("n_").replace("_", " ")


def changes(report: Report, marks: Marks) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Yield the changes that would be seen, by kind: a heading; a stage, and what requests gained."""
    for kind, heading in _HEADINGS.items():
        rows = [
            (
                change.change.removesuffix(f" {kind}"),
                _change(change.request_p50_change_ratio, marks),
                _change(change.request_p95_change_ratio, marks),
            )
            for change in _telling(report, kind)
        ]
        if rows:
            yield heading, rows


def _changes(heading: str, rows: Sequence[tuple[str, str, str]], screen: Screen) -> Iterator[RenderableType]:
    stages, p50s, p95s = zip(*rows, strict=True)
    names = [screen.name(stage, _CHANGE_CELLS) for stage in stages]
    width = max(map(cell_len, names))
    yield ""
    yield Text(heading, "bold")
    for name, p50, p95 in zip(names, _right(p50s), _right(p95s), strict=True):
        padded = name + " " * (width - cell_len(name))
        parts = [padded, f"request p50 {p50}", f"p95 {p95}"]
        yield from (Text(f"  {line}") for line in pack(parts, "   ", screen.width - 2))


def _right(figures_: Sequence[str]) -> list[str]:
    width = max(map(len, figures_))
    return [figure.rjust(width) for figure in figures_]


def _change(ratio: float, marks: Marks) -> str:
    direction = "longer" if ratio > 0 else "shorter"
    return f"{marks.estimated(figures.percent(abs(ratio)))} {direction:7}"
