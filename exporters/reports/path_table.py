"""The critical path of one request as a list: what it waited for, in order of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from hotspan.exporters.reports import figures, palette

if TYPE_CHECKING:
    from hotspan.exporters.reports.request_view import PathSegment, RequestView
    from hotspan.exporters.reports.screen import Screen

_SHOWN_FROM_RATIO: Final = 0.005  # shorter stretches stand together in one line at the end
_STRETCHES: Final = (5, 30)  # how many of the longest are shown where all are short, and at most
_FIGURE_CELLS: Final = 28  # start, time, share and the gaps
_NAME_CELLS: Final = (12, 48)


def path_table(view: RequestView, screen: Screen) -> Table:
    """Return the stretches of the critical path; their printed shares add up to 100.0 %."""
    long, short = _by_length(view, screen)
    short_ns = sum(segment.end_ns - segment.start_ns for segment in short)
    times = [segment.end_ns - segment.start_ns for segment in long] + [short_ns]
    tenths = figures.tenths_of_percent([time / max(view.duration_ns, 1) for time in times])
    table = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    for _ in range(3):
        table.add_column(justify="right", no_wrap=True)
    table.add_row(*(Text(title, "bold") for title in ("Critical path", "start", "time", "share")))
    width = max(_NAME_CELLS[0], min(screen.width - _FIGURE_CELLS, _NAME_CELLS[1]))
    for segment, time, share in zip(long, times, tenths, strict=False):
        name = Text(
            screen.name(_name(segment), width), palette.colour(segment.stage) if screen.colour else ""
        )
        table.add_row(name, *_figures(screen, segment.start_ns, time, share))
    if short:
        name = Text(screen.name(figures.counted(len(short), "shorter stretch", "shorter ones"), width), "dim")
        table.add_row(name, *_figures(screen, None, short_ns, tenths[-1]))
    return table


def _by_length(view: RequestView, screen: Screen) -> tuple[list[PathSegment], list[PathSegment]]:
    """Return the stretches that get a line, and the rest; both in order of time."""
    if screen.wide:
        return list(view.path), []
    lengths = [segment.end_ns - segment.start_ns for segment in view.path]
    ranked = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    least = _SHOWN_FROM_RATIO * view.duration_ns
    shown = {i for i in ranked[: _STRETCHES[1]] if lengths[i] >= least} or set(ranked[: _STRETCHES[0]])
    rest = [segment for i, segment in enumerate(view.path) if i not in shown]
    if len(rest) == 1:  # its own line is no longer than the line about it
        return list(view.path), []
    return [view.path[i] for i in sorted(shown)], rest


def _name(segment: PathSegment) -> str:
    is_said = segment.stage is None or segment.stage in segment.name
    return segment.name if is_said else f"{segment.stage}: {segment.name}"


def _figures(screen: Screen, start_ns: int | None, time_ns: int, tenths: int) -> list[Text]:
    start = "" if start_ns is None else figures.duration(start_ns)
    return [
        Text(screen.text(text)) for text in (start, figures.duration(time_ns), figures.percent(tenths / 1000))
    ]
