"""The slowest requests against all: which parts of a request grew, and what came with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from hotspan.analysis.shares import REST
from hotspan.analysis.tail import UNATTRIBUTED, TailPart
from hotspan.exporters.reports import figures, palette

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from hotspan.analysis.report import Tail
    from hotspan.analysis.shares import Shares
    from hotspan.exporters.reports.screen import Screen

_SEEN_RATIO: Final = 0.005  # of request time, of all or of the slowest: smaller parts say nothing
_MOST_PARTS: Final = 16
_NAME_CELLS: Final = (10, 32)
_FIGURE_CELLS: Final = 10
_SHARES_FROM: Final = 60  # columns of the screen
_TITLES: Final = ("mean of a request", "all", "slowest", "of all", "of slowest")


def heading(tail: Tail) -> str:
    """Return which requests are the slowest."""
    slowest = figures.counted(tail.n_requests, "request")
    from_ = figures.duration(tail.from_ns)
    return f"Slowest {100 - tail.percentile:g} %: {slowest} of {tail.n_all:,}, from {from_}"


def tail_table(tail: Tail, shares: Shares, screen: Screen) -> Iterator[RenderableType]:
    """Yield a heading, and a table of means a request: parts of the critical path, then counts."""
    yield Text(screen.text(heading(tail)), "bold")
    n_figures = 4 if screen.width >= _SHARES_FROM else 2
    width = max(_NAME_CELLS[0], min(screen.width - n_figures * (_FIGURE_CELLS + 2), _NAME_CELLS[1]))
    table = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    for _ in range(n_figures):
        table.add_column(justify="right", no_wrap=True)
    table.add_row(*(Text(title, "bold") for title in _TITLES[: n_figures + 1]))
    for name, stage, cells in rows(tail, shares, n_figures):
        style = palette.colour(stage) if screen.colour and stage else ""
        shown = [Text(screen.text(cell)) for cell in cells]
        table.add_row(Text(screen.name(name, width), style), *shown)
    yield table


def rows(tail: Tail, shares: Shares, n_figures: int) -> Iterator[tuple[str, str | None, list[str]]]:
    """Yield name, stage and at most `n_figures` figures of each line: the whole, its parts, the counts."""
    yield "request", None, [figures.duration(tail.all_ns), figures.duration(tail.slow_ns)]
    for part in _telling(tail.parts):
        cells = [figures.duration(part.all_ns), figures.duration(part.slow_ns)]
        cells += [shares.percent(part.all_ratio), shares.percent(part.slow_ratio)]
        name = f" {part.phase}" if part.phase else part.stage or UNATTRIBUTED
        yield name, part.stage or None, cells[:n_figures]
    for factor in tail.factors:
        yield (
            factor.name.replace("_", " "),
            None,
            [figures.mean(factor.all_mean), figures.mean(factor.slow_mean)],
        )


def _telling(parts: Sequence[TailPart]) -> Iterator[TailPart]:
    """Yield the parts that say something: stages, each followed by its phases and what these leave of it."""
    telling = [part for part in parts if _is_seen(part)][:_MOST_PARTS]
    for stage in (part for part in telling if part.phase is None):
        phases = [part for part in telling if part.phase is not None and part.stage == stage.stage]
        yield from (stage, *phases)
        if phases and _is_seen(rest := _rest(stage, phases)):
            yield rest


def _is_seen(part: TailPart) -> bool:
    return max(part.all_ratio, part.slow_ratio) >= _SEEN_RATIO


def _rest(stage: TailPart, phases: Sequence[TailPart]) -> TailPart:
    """Return what the phases leave of their stage: small ones, and the calls that failed, which have none."""
    return TailPart(
        stage.stage,
        REST,
        all_ns=stage.all_ns - sum(phase.all_ns for phase in phases),
        slow_ns=stage.slow_ns - sum(phase.slow_ns for phase in phases),
        all_ratio=stage.all_ratio - sum(phase.all_ratio for phase in phases),
        slow_ratio=stage.slow_ratio - sum(phase.slow_ratio for phase in phases),
    )
