"""One request on a time axis: every span a bar, the critical path drawn through them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from hotspan.analysis.shares import MAIN_PHASES
from hotspan.exporters.reports import figures, palette
from hotspan.exporters.reports.path_table import path_table
from hotspan.exporters.reports.screen import hanging
from hotspan.exporters.reports.widths import pack

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from hotspan.exporters.reports.request_view import RequestView, ViewSpan
    from hotspan.exporters.reports.screen import Screen

_MOST_SPANS: Final = 100  # on a screen; those on the critical path and the longest are kept
_MOST_INDENT: Final = 10
_MOST_LEFT_OUT: Final = 5  # names
_FIGURE_CELLS: Final = 8
_NAME_CELLS: Final = (12, 48)
_AXIS_CELLS: Final = (8, 30, 100)  # least; enough for a column of starts beside it; most
_GAP: Final = 2
_SEEN_PHASE_RATIO: Final = 0.005  # of its call


def render(view: RequestView, screen: Screen) -> str:
    """Return one request as text: a waterfall, then its critical path in order of time."""
    return screen.print(_parts(view, screen))


def _parts(view: RequestView, screen: Screen) -> Iterator[RenderableType]:
    yield from (Text(line) for line in pack(_heading(view, screen), screen.text(" · "), screen.width))
    yield Text(f"trace {view.trace_id}")
    yield ""
    shown = _most_telling(view.spans, screen)
    yield _waterfall(view, shown, screen)
    if hidden := len(view.spans) - len(shown):
        yield Text(screen.text(f"… {figures.counted(hidden, 'shorter span')}: --wide shows all"), "dim")
    for what, names in _left_out(view, screen):
        yield hanging("!", f"{what}: {names}", palette.WARNING if screen.colour else "")
    yield from (Text(line, "dim") for line in pack(_legend(view, screen), "   ", screen.width))
    yield ""
    yield path_table(view, screen)


def _heading(view: RequestView, screen: Screen) -> Iterator[str]:
    yield screen.name(view.name, max(_NAME_CELLS[0], screen.width // 2))
    yield screen.text(figures.duration(view.duration_ns))
    yield view.why
    if view.outcome != "ok":
        yield view.outcome
    if view.root_fault:
        yield f"partial: the root {view.root_fault}"


def _left_out(view: RequestView, screen: Screen) -> Iterator[tuple[str, str]]:
    """Yield what is not drawn for its times, and the names of the first of it."""
    unfinished = [span.name for span in view.left_out if span.end_ns is None]
    invalid = [span.name for span in view.left_out if span.end_ns is not None]
    for names, what in ((unfinished, "unfinished span"), (invalid, "span with an impossible time")):
        if names:
            shown = ", ".join(screen.name(name, _NAME_CELLS[1]) for name in names[:_MOST_LEFT_OUT])
            more = ", …" if len(names) > _MOST_LEFT_OUT else ""
            plural = what.replace("span", "spans", 1)
            yield f"{figures.counted(len(names), what, plural)}, not drawn", shown + screen.text(more)


def _legend(view: RequestView, screen: Screen) -> Iterator[str]:
    on_path, off_path = _strokes(screen)
    yield f"{on_path} own time on the critical path"
    yield f"{off_path} other time of the span"
    yield "the path is read from the timing"
    if any(span.phases for span in view.spans):
        yield f"{'─' if screen.has_symbols else '-'} phase of a model call"
    if any(span.end_ns is not None and span.end_ns > view.duration_ns for span in view.spans):
        yield "> goes on after the request"


def _strokes(screen: Screen) -> tuple[str, str]:
    return ("█", "░") if screen.has_symbols else ("#", ".")


def _most_telling(spans: Sequence[ViewSpan], screen: Screen) -> Sequence[ViewSpan]:
    if screen.wide or len(spans) <= _MOST_SPANS:
        return spans
    ranked = sorted(range(1, len(spans)), key=lambda i: (-spans[i].path_ns, -spans[i].span.duration_ns, i))
    return [spans[i] for i in sorted({0, *ranked[: _MOST_SPANS - 1]})]


def _waterfall(view: RequestView, spans: Sequence[ViewSpan], screen: Screen) -> Table:
    room = screen.width - _FIGURE_CELLS - 2 * _GAP
    wanted = max(cell_len(_label(span, screen, _NAME_CELLS[1])) for span in spans)
    label_cells = max(_NAME_CELLS[0], min(wanted, room // 2))
    axis = room - label_cells
    has_starts = axis - _FIGURE_CELLS - _GAP >= _AXIS_CELLS[1]
    axis = max(_AXIS_CELLS[0], min(axis - has_starts * (_FIGURE_CELLS + _GAP), _AXIS_CELLS[2]))
    table = Table.grid(padding=(0, _GAP, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    for _ in range(1 + has_starts):
        table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    starts = ["start"] if has_starts else []
    table.add_row(*(Text(title, "bold") for title in ("Span", *starts, "time", _scale(view, axis, screen))))
    for span in spans:
        style = palette.colour(span.stage) if screen.colour else ""
        start = [Text(screen.text(_start(span)))] if has_starts else []
        time = Text(screen.text(figures.duration(span.span.duration_ns)))
        table.add_row(
            Text(_label(span, screen, label_cells), style), *start, time, _bar(span, view, axis, screen)
        )
        for name, start_ns, end_ns in _phases(span):
            label = Text(" " * (_indent(span, label_cells) + 1) + name, "dim")
            time = Text(screen.text(figures.duration(end_ns - start_ns)), "dim")
            stretch = _stretch(start_ns, end_ns, view, axis, screen)
            table.add_row(label, *([""] * has_starts), time, Text(stretch, "dim"))
    return table


def _indent(shown: ViewSpan, width: int) -> int:
    return min(shown.depth, _MOST_INDENT, width // 2)


def _label(shown: ViewSpan, screen: Screen, width: int) -> str:
    """Return a span's name, indented by its depth, with its stage and outcome where it does not say them."""
    indent = _indent(shown, width)
    name = shown.span.name
    stage = f"{shown.stage}: " if shown.is_staged and shown.stage and shown.stage not in name else ""
    outcome = "" if shown.outcome == "ok" else f" [{shown.outcome}]"
    return " " * indent + screen.name(stage + name + outcome, width - indent)


def _start(shown: ViewSpan) -> str:
    return "" if shown.start_ns is None else figures.duration(shown.start_ns)


def _scale(view: RequestView, axis: int, screen: Screen) -> str:
    end = screen.text(figures.duration(view.duration_ns))
    return "0" + end.rjust(axis - 1) if len(end) < axis else end


def _bar(shown: ViewSpan, view: RequestView, axis: int, screen: Screen) -> Text:
    style = palette.colour(shown.stage) if screen.colour else ""
    if shown.start_ns is None or shown.end_ns is None:
        return Text("")
    on_path, off_path = _strokes(screen)
    first, last = _cells(shown.start_ns, shown.end_ns, view.duration_ns, axis)
    cells = [" "] * first + [off_path] * (last - first)
    for start, end in shown.path:
        low, high = _cells(start, end, view.duration_ns, axis)
        cells[low:high] = [on_path] * (high - low)
    if shown.end_ns > view.duration_ns:
        cells[-1] = ">"
    return Text("".join(cells), style)


def _cells(start_ns: int, end_ns: int, duration_ns: int, axis: int) -> tuple[int, int]:
    """Return the cells that a stretch covers: at least one, and of two that meet none in common."""
    scale = max(duration_ns, 1)
    first = max(0, min(start_ns * axis // scale, axis - 1))
    return first, max(first + 1, min(end_ns * axis // scale, axis))


def _phases(shown: ViewSpan) -> Iterator[tuple[str, int, int]]:
    """Yield the phases of a model call that can be seen, with their place: laid out one after the other."""
    cursor = shown.start_ns or 0
    for phase in shown.phases:
        if phase.name in MAIN_PHASES or phase.ns >= _SEEN_PHASE_RATIO * shown.span.duration_ns:
            yield phase.name, cursor, cursor + phase.ns
        cursor += phase.ns


def _stretch(start_ns: int, end_ns: int, view: RequestView, axis: int, screen: Screen) -> str:
    first, last = _cells(start_ns, end_ns, view.duration_ns, axis)
    return " " * first + ("─" if screen.has_symbols else "-") * (last - first)
