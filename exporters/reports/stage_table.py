"""The table of stages: calls, percentiles, self time, and the share of the critical path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from hotspan.exporters.reports import figures
from hotspan.exporters.reports.marks import WEAK, Marks
from hotspan.exporters.reports.stage_lines import StageLine, stage_lines

if TYPE_CHECKING:
    from hotspan.analysis.report import Report
    from hotspan.exporters.reports.screen import Screen

_STAGE: Final = "Stage"
_SHARES: Final = ("critical path", "crit. path")  # the longest that fits
_COLUMNS: Final = ("calls", "each", "p50", "p95", "p99", "self")
_DISPENSABLE: Final = ("self", "p99", "each", "p95", "calls")  # what a narrow screen loses, first to last
_NAME_CELLS: Final = (8, 28)  # least and most, unless the screen is wide enough for more
_BAR_CELLS: Final = (3, 24)  # fewer cannot be compared by eye, more say nothing further
_SHARE_CELLS: Final = len("100.0 %")
_GAP: Final = 2

Cells = Mapping[str, Sequence[str]]


def stage_table(report: Report, screen: Screen, marks: Marks) -> Table:
    """Return the table of stages, as wide as the screen allows.

    On a narrow screen columns are left out, the stage and its share last; on a wide one that draws, the share
    has a bar.
    """
    lines = stage_lines(report)
    shown = _dispense({name: _column(name, lines, Marks()) for name in _COLUMNS}, lines, screen)
    cells = {name: _column(name, lines, marks) for name in shown}
    shares = [_share(line, marks) for line in lines]
    room = screen.width - _figure_cells(cells) - _GAP
    names = _names(lines, screen, room - len(_SHARES[1]))
    room -= max(map(cell_len, [_STAGE, *names]))  # for the share: header, bar and figure
    bar = _bar_cells(room - 1 - _SHARE_CELLS, screen)
    header = _SHARES[0] if room >= len(_SHARES[0]) else _SHARES[1]
    table = Table.grid(padding=(0, _GAP, 0, 0), pad_edge=False)
    _add_columns(table, cells)
    table.add_row(*(Text(title, "bold") for title in (_STAGE, *cells, header)))
    for index, line in enumerate(lines):
        style = line.colour if screen.colour else ""
        share = _bar(line, screen, bar) + screen.text(shares[index]).rjust(_SHARE_CELLS)
        figures_of_line = [Text(screen.text(column[index])) for column in cells.values()]
        table.add_row(Text(names[index], style), *figures_of_line, Text(share, style))
    return table


def _add_columns(table: Table, cells: Cells) -> None:
    table.add_column(no_wrap=True)
    for _ in cells:
        table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)


def _dispense(cells: dict[str, list[str]], lines: Sequence[StageLine], screen: Screen) -> Cells:
    longest = max((cell_len(screen.text(line.name)) for line in lines), default=0)
    wanted = max(len(_STAGE), min(longest, _NAME_CELLS[1])) + _GAP + len(_SHARES[1])
    for name in _DISPENSABLE:
        if screen.wide or wanted + _figure_cells(cells) <= screen.width:
            break
        del cells[name]
    return cells


def _figure_cells(cells: Cells) -> int:
    return sum(_GAP + max(map(len, [name, *column])) for name, column in cells.items())


def _bar_cells(spare: int, screen: Screen) -> int:
    return min(spare, _BAR_CELLS[1]) if screen.draws and spare >= _BAR_CELLS[0] else 0


def _names(lines: Sequence[StageLine], screen: Screen, room: int) -> list[str]:
    # Beyond their usual width names get only what is left when the bars have all that they can use.
    usual = max(_NAME_CELLS[0], min(room, _NAME_CELLS[1]))
    return [screen.name(line.name, max(usual, room - _BAR_CELLS[1] - 1)) for line in lines]


def _bar(line: StageLine, screen: Screen, width: int) -> str:
    if not width or line.phase is not None or line.stage is None or line.tenths is None:
        return " " * (width + 1) if width else ""
    bar = screen.bar(line.tenths / 1000, width)
    return bar + " " * (width + 1 - cell_len(bar))


def _share(line: StageLine, marks: Marks) -> str:
    return marks.or_absent(figures.ABSENT if line.tenths is None else f"{line.tenths / 10:.1f} %")


def _column(name: str, lines: Sequence[StageLine], marks: Marks) -> list[str]:
    if name == "calls":
        return [figures.count(line.stage.n_calls) if line.stage else "" for line in lines]
    if name == "each":
        return [_each(line, marks) for line in lines]
    if name == "self":
        unit = figures.common_unit(line.stage.self_ns for line in lines if line.stage)
        return [figures.duration(line.stage.self_ns, unit) if line.stage else "" for line in lines]
    return _percentiles(name, lines, marks)


def _each(line: StageLine, marks: Marks) -> str:
    if line.stage is None:
        return ""
    per_request = line.stage.calls_per_request
    return marks.or_absent(figures.mean(None if per_request is None else per_request.mean))


def _percentiles(name: str, lines: Sequence[StageLine], marks: Marks) -> list[str]:
    unit = figures.common_unit(line.percentile_ns(name) for line in lines)
    cells = [_percentile(line, name, unit, marks) for line in lines]
    is_marked = any(cell.endswith(WEAK) for cell in cells)
    # A mark must not push its figure out of line with the others.
    return [f"{cell} " if is_marked and not cell.endswith(WEAK) else cell for cell in cells]


def _percentile(line: StageLine, name: str, unit: str | None, marks: Marks) -> str:
    if line.stage is not None:
        return marks.percentile(line.stage.duration_ns, name, unit)
    ns = line.percentile_ns(name)
    return "" if ns is None else figures.duration(ns, unit)
