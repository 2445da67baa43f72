"""`hotspan show`: one request as a waterfall with its critical path."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

import hotspan
from hotspan.analysis import adjust_skew
from hotspan.analysis.garbage import seldom_collected
from hotspan.analysis.readers.source import STDIN
from hotspan.cli.options import examples, format_option, skew_option, wide_option
from hotspan.cli.output import emit, screen, warn
from hotspan.cli.progress import reading
from hotspan.exporters.reports import json, waterfall
from hotspan.exporters.reports.choose import choose

if TYPE_CHECKING:
    from hotspan.analysis.readers import TraceReader
    from hotspan.analysis.skew import Adjusted


@click.command(
    epilog=examples(
        ("hotspan show run.jsonl", "the slowest request"),
        ("hotspan show --percentile 50 run.jsonl", "a typical one"),
        ("hotspan show run.jsonl 4bf92f35", "the one whose trace id begins like this"),
        ("hotspan show --format json run.jsonl", "for another program"),
    )
)
@click.argument("file")
@click.argument("trace", required=False)
@click.option(
    "--percentile",
    type=click.FloatRange(0, 100, min_open=True),
    help="Show the request at this percentile of all durations.  [default: 100, the slowest]",
)
@format_option
@skew_option
@wide_option
def show(  # noqa: PLR0913 - one argument for each option
    file: str,
    trace: str | None,
    percentile: float | None,
    output_format: str,
    *,
    skew_adjust: bool,
    wide: bool,
) -> None:
    """Show one request of FILE as a waterfall with its critical path: by default the slowest.

    TRACE is the id of a trace, or the beginning of one; '-' as FILE is standard input.
    """
    if trace is not None and percentile is not None:
        msg = "TRACE and --percentile are two ways to choose a request: give one of them."
        raise click.UsageError(msg)
    with reading(file), seldom_collected():
        again = None if file == STDIN else partial(_traces, file, skew_adjust=skew_adjust)
        asked = 100 if percentile is None else percentile
        traces = _traces(file, skew_adjust=skew_adjust)
        view = choose(traces, trace, asked, again=again)
    if skew_adjust:
        warn(traces.evidence.warnings)
    with seldom_collected():
        shown = (
            json.render_request(view)
            if output_format == "json"
            else waterfall.render(view, screen(wide=wide))
        )
    emit(shown)


def _traces(file: str, *, skew_adjust: bool) -> Adjusted | TraceReader:
    traces = hotspan.load(file)
    return adjust_skew(traces) if skew_adjust else traces
