"""`hotspan report`: where the time of the requests in a file went."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import hotspan
from hotspan.analysis import adjust_skew, parse_where, select
from hotspan.cli.options import examples, skew_option, wide_option
from hotspan.cli.output import emit, screen, warn
from hotspan.cli.progress import reading
from hotspan.exporters.reports import console, csv, evidence, json, markdown
from hotspan.tracer.errors import UnusableTraceError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hotspan import Trace
    from hotspan.analysis import Report
    from hotspan.analysis.selection import Selected

_DEFAULT_TAIL = 95.0


@click.command(
    epilog=examples(
        ("hotspan report run.jsonl", "the breakdown of one run"),
        ("hotspan report worker-*.jsonl", "several files, read as one run"),
        ("zcat old.jsonl.gz | hotspan report -", "from standard input"),
        ("hotspan report --tail 95 run.jsonl", "what is different in the slowest 5 %"),
        ("hotspan report --by tenant run.jsonl", "one breakdown for each tenant"),
        ("hotspan report --where 'stage=rerank' run.jsonl", "the rerank calls alone"),
        ("hotspan report --where 'request.duration>2s' run.jsonl", "the requests over 2 s"),
        ("hotspan report --format json run.jsonl", "for another program"),
    )
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(("table", "json", "csv", "markdown")),
    default="table",
    show_default=True,
    help="A table for people, JSON for programs, CSV of the stages, or Markdown.",
)
@click.option(
    "--where",
    metavar="CONDITION",
    multiple=True,
    help="Only what fulfils it: stage=rerank, duration>500ms, request.outcome=error, …; repeatable.",
)
@click.option("--by", metavar="ATTRIBUTE", help="A breakdown for each value of an attribute of the requests.")
@click.option(
    "--tail",
    type=click.FloatRange(0, 100, min_open=True, max_open=True),
    metavar="PERCENTILE",
    help="Compare the requests from this percentile of the durations on with all.",
)
@skew_option
@wide_option
def report(  # noqa: PLR0913 - one argument for each option
    files: tuple[str, ...],
    output_format: str,
    where: tuple[str, ...],
    by: str | None,
    tail: float | None,
    *,
    skew_adjust: bool,
    wide: bool,
) -> None:
    """Print where the time of the requests in FILE... went, stage by stage.

    FILE is a trace file of any format that Hotspan reads, plain or compressed, told by its content; '-' is
    standard input.  Several files are read as one run: the spans of a trace may be spread over them.

    A CONDITION is FIELD OPERATOR VALUE, several joined by 'and'.  FIELD is stage, name, outcome, duration,
    service or the key of an attribute, of a call, or of a request behind 'request.'; OPERATOR is = != ~
    (contains) !~ > >= < <=; a VALUE of several words is in quotes, alternatives are joined by '|'.
    """
    condition = parse_where(where) if where else None
    with reading(*files):
        traces: Iterable[Trace] = hotspan.load(*files)
        traces = adjust_skew(traces) if skew_adjust else traces
        selected = None if condition is None else select(traces, condition)
        result = hotspan.analyse(selected or traces, by=by, tail=_DEFAULT_TAIL if tail is None else tail)
    if selected is not None:
        _check_selected(selected)
    _check(result, files)
    if output_format == "csv":
        warn(evidence.all_troubles(result))
    emit(_rendered(result, output_format, has_tail=tail is not None, wide=wide))


def _check_selected(selected: Selected) -> None:
    if not (selection := selected.selection).n_kept:
        msg = f"No request of {selection.n_read:,} fulfils: {selection.where}"
        raise UnusableTraceError("\n".join([msg, *selected.why_nothing()]))


def _check(result: Report, files: tuple[str, ...]) -> None:
    if not result.evidence.n_spans:
        why = result.evidence.warnings or ["Was it recorded by an application, and flushed at its end?"]
        msg = "\n".join([f"No span in {', '.join(files)}.", *why])
        raise UnusableTraceError(msg)


def _rendered(result: Report, output_format: str, *, has_tail: bool, wide: bool) -> str:
    if output_format == "table":
        return console.render(result, screen(wide=wide), tail=has_tail)
    if output_format == "markdown":
        return markdown.render(result, tail=has_tail)
    return json.render(result) if output_format == "json" else csv.render(result)
