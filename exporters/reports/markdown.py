"""The report as Markdown, for an issue, a pull request or a page: the console's words, order and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.analysis.shares import Shares
from hotspan.exporters.reports import advice, evidence, figures, model_calls, tail_table
from hotspan.exporters.reports.marks import Marks
from hotspan.exporters.reports.names import UNNAMED, printable
from hotspan.exporters.reports.stage_lines import StageLine, stage_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hotspan.analysis.report import Report, Tail

_COLUMNS: Final = ("stage", "calls", "each", "p50", "p95", "p99", "self", "critical path")
# What would be markup, a mention or the end of a cell, in a form that is none.
_HARMLESS: Final = str.maketrans({char: f"&#{ord(char)};" for char in "<>&@|`*_[]#~\\"})


def render(report: Report, *, tail: bool = False) -> str:
    """Return the report as GitHub-flavoured Markdown; names from traces are no markup.

    Args:
        report: The report; with groups, a section of each value at the end.
        tail: Compare the slowest requests with all.
    """
    marks = Marks()
    blocks = ["\n".join(block) for block in _blocks(report, marks, tail=tail) if block]
    if legend := marks.legend():
        blocks.append(_text(legend))
    return "\n\n".join(blocks) + "\n"


def _blocks(report: Report, marks: Marks, *, tail: bool) -> Iterator[list[str]]:
    yield [f"**{' · '.join(map(_text, evidence.summary(report.evidence)))}**"]
    yield [f"- **!** {_text(trouble)}" for trouble in evidence.all_troubles(report)]
    yield from _figures(report, marks)
    if tail and report.tail is not None:
        yield _tail(report.tail, Shares(report))
    yield from _advice(report, marks)
    if report.groups is not None:
        yield [f"- {_text(note)}" for note in evidence.group_notes(report.groups)]
        for value, part in report.groups.reports:
            yield [f"## {_text(evidence.group_name(report.groups, value))}"]
            yield from _figures(part, marks)


def _figures(report: Report, marks: Marks) -> Iterator[list[str]]:
    yield _bullets("Request", [evidence.request(report, marks)])
    if report.stages:
        yield _stages(report, marks)
    if report.generation.n_calls:
        yield _bullets("Generation", model_calls.generation(report.generation, marks))
    if lines := model_calls.amplification(report.amplification, marks):
        yield _bullets("Agent" if report.amplification.is_agent else "Model calls", lines)


def _bullets(label: str, lines: Iterable[Sequence[str]]) -> list[str]:
    return [f"**{label}**", "", *(f"- {' · '.join(map(_text, line))}" for line in lines)]


def _stages(report: Report, marks: Marks) -> list[str]:
    lines = [_stage(line, marks) for line in stage_lines(report)]
    return [_row(_COLUMNS), _row(["---", *["---:"] * (len(_COLUMNS) - 1)]), *map(_row, lines)]


def _stage(line: StageLine, marks: Marks) -> list[str]:
    name = _text(line.name.strip())
    share = marks.or_absent(figures.ABSENT if line.tenths is None else figures.percent(line.tenths / 1000))
    percentiles = [line.percentile(name, marks).replace("*", "&#42;") for name in ("p50", "p95", "p99")]
    if line.stage is None:
        return [
            f"&nbsp;&nbsp;{name}" if line.name.startswith(" ") else name,
            "",
            "",
            *percentiles,
            "",
            share,
        ]
    row, each = line.stage, line.stage.calls_per_request
    mean = marks.or_absent(figures.mean(None if each is None else each.mean))
    return [name, figures.count(row.n_calls), mean, *percentiles, marks.duration(row.self_ns), share]


def _tail(tail: Tail, shares: Shares) -> list[str]:
    rows = [
        _row([_text(name), *cells, *[""] * (4 - len(cells))])
        for name, _, cells in tail_table.rows(tail, shares, n_figures=4)
    ]
    titles = _row(["mean of a request", "all", "slowest", "share of all", "share of slowest"])
    return [f"**{_text(tail_table.heading(tail))}**", "", titles, _row(["---", *["---:"] * 4]), *rows]


def _advice(report: Report, marks: Marks) -> Iterator[list[str]]:
    if report.findings:
        shares = Shares(report)
        yield ["## What would help"]
        yield [
            line
            for number, finding in enumerate(report.findings, start=1)
            for line in (
                f"{number}. **{_text(finding.text)}**",
                f"   {_text(advice.evidence_of(finding.evidence, shares))}",
                f"   → {_text(finding.next_step)}",
            )
        ]
    for heading, rows in advice.changes(report, marks):
        lines = (
            f"- {_text(stage)}: request p50 {p50.strip()}, p95 {p95.strip()}" for stage, p50, p95 in rows
        )
        yield [f"**{heading}**", "", *lines]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text(text: str) -> str:
    """Return any text so that it is no markup, no mention and no end of a cell."""
    return printable(text).translate(_HARMLESS) or UNNAMED
