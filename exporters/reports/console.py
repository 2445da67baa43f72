"""The report for a terminal: where the time went and what would help, on the first screen.

Evidence, request, stages, generation, agent, what would help: the same words, order and numbers as in every
other rendering.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from hotspan.analysis.shares import Shares
from hotspan.exporters.reports import evidence, figures, model_calls, palette, telemetry
from hotspan.exporters.reports.advice import advice
from hotspan.exporters.reports.marks import Marks
from hotspan.exporters.reports.screen import Screen, hanging
from hotspan.exporters.reports.stage_table import stage_table
from hotspan.exporters.reports.tail_table import tail_table
from hotspan.exporters.reports.widths import pack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import RenderableType

    from hotspan.analysis.report import Groups, Report

_LABEL_CELLS: Final = 13
_GAP: Final = "   "
_FILE_CELLS: Final = 40


def render(report: Report, screen: Screen, *, tail: bool = False) -> str:
    """Return the report as text, fitted to the screen, every line ended.

    Args:
        report: The report; with groups, a block of each value at the end.
        screen: What can be shown.
        tail: Compare the slowest requests with all.
    """
    marks = Marks()
    return screen.print(_parts(report, screen, marks, tail=tail))


def _parts(report: Report, screen: Screen, marks: Marks, *, tail: bool) -> Iterator[RenderableType]:
    yield from _evidence(report, screen)
    yield from _figures(report, screen, marks)
    if tail and report.tail is not None:
        yield ""
        yield from tail_table(report.tail, Shares(report), screen)
    yield from advice(report, screen, marks)
    if report.groups is not None:
        yield from _groups(report.groups, screen, marks)
    if legend := marks.legend():
        yield ""
        yield Text(screen.text(legend), "dim")


def _figures(report: Report, screen: Screen, marks: Marks) -> Iterator[RenderableType]:
    yield _labelled("Request", [evidence.request(report, marks)], screen)
    if report.stages:
        yield ""
        yield from stage_table(report, screen, marks)
        if failed := _failed_calls(report):
            yield Text(screen.text(failed), palette.WARNING if screen.colour else "")
    if report.generation.n_calls:
        yield ""
        yield _labelled("Generation", model_calls.generation(report.generation, marks), screen)
    if lines := model_calls.amplification(report.amplification, marks):
        yield _labelled("Agent" if report.amplification.is_agent else "Model calls", lines, screen)
    if lines := telemetry.lines(report.telemetry):
        yield _labelled("Engine", lines, screen)


def _groups(groups: Groups, screen: Screen, marks: Marks) -> Iterator[RenderableType]:
    for note in evidence.group_notes(groups):
        yield ""
        yield hanging("!", screen.text(note), palette.WARNING if screen.colour else "")
    for value, report in groups.reports:
        yield ""
        yield Text(screen.name(evidence.group_name(groups, value), screen.width), "bold")
        yield from _figures(report, screen, marks)


def _evidence(report: Report, screen: Screen) -> Iterator[RenderableType]:
    first, *rest = evidence.summary(report.evidence)
    name = screen.name(first, min(max(_FILE_CELLS, screen.width - 60), screen.width))
    parts = [name, *map(screen.text, rest)]
    yield from (Text(line) for line in pack(parts, screen.text(" · "), screen.width))
    for trouble in evidence.all_troubles(report):
        yield hanging("!", screen.text(trouble), palette.WARNING if screen.colour else "")


def _labelled(label: str, lines: Iterable[Sequence[str]], screen: Screen) -> RenderableType:
    grid = Table.grid(padding=0, pad_edge=False)
    grid.add_column(width=_LABEL_CELLS, no_wrap=True)
    room = screen.width - _LABEL_CELLS
    packed = (text for parts in lines for text in pack(map(screen.text, parts), _GAP, room))
    for index, text in enumerate(packed):
        grid.add_row(Text("" if index else label, "bold"), Text(text))
    return grid


def _failed_calls(report: Report) -> str:
    failed = [
        f"{row.stage} {', '.join(_failures(row.n_errors, row.n_cancelled))}"
        for row in report.stages
        if row.n_errors or row.n_cancelled
    ]
    return f"Not in the percentiles: {'; '.join(failed)}" if failed else ""


def _failures(n_errors: int, n_cancelled: int) -> Iterator[str]:
    if n_errors:
        yield figures.counted(n_errors, "error")
    if n_cancelled:
        yield f"{n_cancelled:,} cancelled"
