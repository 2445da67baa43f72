"""The table of stages: calls, percentiles, self time, and the share of the critical path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.text import Text

from hotspan.exporters.reports import figures
from hotspan.exporters.reports.marks import WEAK, Marks
from hotspan.exporters.reports.stage_lines import StageLine, stage_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotspan.analysis.report import Report
    from hotspan.exporters.reports.screen import Screen

_STAGE: Final = "Stage"
_SHARES: Final = ("critical path", "crit. path", "on path")  # the longest that fits
_COLUMNS: Final = ("calls", "each", "p50", "p95", "p99", "self")
_DISPENSABLE: Final = ("self", "p99", "each", "p95", "calls")  # what a narrow screen loses, first to last
_NAME_CELLS: Final = (8, 16, 28)  # least; before a column is lost; usual most
_BAR_CELLS: Final = (3, 24)  # fewer cannot be compared by eye, more say nothing further
_SHARE_CELLS: Final = len("100.0 %")


def stage_table(report: Report, screen: Screen, marks: Marks) -> list[Text]:
    """Return the lines of the table of stages, as wide as the screen allows.

    On a narrow screen columns are left out, the stage and its share last; on a wide one that draws, the share
    has a bar.
    """
    lines = stage_lines(report)
    shown = _affordable({name: _column(name, lines, Marks()) for name in _COLUMNS}, lines, screen)
    columns = [_column(name, lines, marks) for name in shown]
    figure_cells = _figure_cells(columns)
    names = _names(lines, screen, screen.width - figure_cells - _SHARE_CELLS)
    name_cells = max(map(cell_len, names))
    shares = _share_column(lines, screen, marks, screen.width - name_cells - figure_cells)
    padded = [name + " " * (name_cells - cell_len(name)) for name in names]
    texts = []
    for row, (name, share) in enumerate(zip(padded, shares, strict=True)):
        middle = "".join(_gap(columns[:i]) + column[row] for i, column in enumerate(columns)) + _gap(columns)
        style = "bold" if row == 0 else lines[row - 1].colour if screen.colour else ""
        text = Text.assemble((name, style), (screen.text(middle), "bold" if row == 0 else ""), (share, style))
        text.no_wrap, text.overflow = True, "ellipsis"
        texts.append(text)
    return texts


def _gap(before: Sequence[Sequence[str]]) -> str:
    # The place of a mark is gap enough.
    return " " if before and any(cell.endswith(WEAK) for cell in before[-1]) else "  "


def _figure_cells(columns: Sequence[Sequence[str]]) -> int:
    gaps = sum(len(_gap(columns[: i + 1])) for i in range(len(columns)))
    return gaps + len(_gap([])) + sum(len(column[0]) for column in columns)


def _affordable(columns: dict[str, list[str]], lines: Sequence[StageLine], screen: Screen) -> Sequence[str]:
    longest = max((cell_len(screen.text(line.name)) for line in lines), default=0)
    least = max(len(_STAGE), min(longest, _NAME_CELLS[1])) + _SHARE_CELLS
    shown = dict(columns)
    for name in _DISPENSABLE:
        if screen.wide or least + _figure_cells(list(shown.values())) <= screen.width:
            break
        del shown[name]
    return list(shown)


def _names(lines: Sequence[StageLine], screen: Screen, room: int) -> list[str]:
    # Beyond their usual width names get only what is left when the bars have all that they can use.
    usual = max(_NAME_CELLS[0], min(room, _NAME_CELLS[2]))
    width = max(usual, room - _BAR_CELLS[1] - 1)
    return [_STAGE, *(screen.name(line.name, width) for line in lines)]


def _share_column(lines: Sequence[StageLine], screen: Screen, marks: Marks, room: int) -> list[str]:
    spare = room - 1 - _SHARE_CELLS
    bar = min(spare, _BAR_CELLS[1]) if screen.draws and spare >= _BAR_CELLS[0] else 0
    header = next((title for title in _SHARES if len(title) <= room), _SHARES[-1])
    cells = [_bar(line, screen, bar) + screen.text(_share(line, marks)).rjust(_SHARE_CELLS) for line in lines]
    width = max(map(cell_len, [header, *cells]))
    return [" " * (width - cell_len(cell)) + cell for cell in (header, *cells)]


def _bar(line: StageLine, screen: Screen, width: int) -> str:
    if not width or line.phase is not None or line.stage is None or line.tenths is None:
        return " " * (width + 1) if width else ""
    bar = screen.bar(line.tenths / 1000, width)
    return bar + " " * (width + 1 - cell_len(bar))


def _share(line: StageLine, marks: Marks) -> str:
    return marks.or_absent(figures.ABSENT if line.tenths is None else figures.percent(line.tenths / 1000))


def _column(name: str, lines: Sequence[StageLine], marks: Marks) -> list[str]:
    """Return a column, its title first, right-aligned; beside a marked figure the others keep a place."""
    cells = [name, *_cells(name, lines, marks)]
    if any(cell.endswith(WEAK) for cell in cells):
        cells = [cell if cell.endswith(WEAK) else f"{cell} " for cell in cells]
    width = max(map(len, cells))
    return [cell.rjust(width) for cell in cells]


def _cells(name: str, lines: Sequence[StageLine], marks: Marks) -> list[str]:
    if name == "calls":
        return [figures.count(line.stage.n_calls) if line.stage else "" for line in lines]
    if name == "each":
        return [_each(line, marks) for line in lines]
    if name == "self":
        unit = figures.common_unit(line.stage.self_ns for line in lines if line.stage)
        return [marks.duration(line.stage.self_ns, unit) if line.stage else "" for line in lines]
    unit = figures.common_unit(line.percentile_ns(name) for line in lines)
    return [line.percentile(name, marks, unit) for line in lines]


def _each(line: StageLine, marks: Marks) -> str:
    if line.stage is None:
        return ""
    per_request = line.stage.calls_per_request
    return marks.or_absent(figures.mean(None if per_request is None else per_request.mean))
