"""`hotspan show`: one request as a waterfall with its critical path."""

from __future__ import annotations

from functools import partial

import click

import hotspan
from hotspan.analysis.readers.source import STDIN
from hotspan.cli.options import examples, format_option, wide_option
from hotspan.cli.output import emit, screen
from hotspan.cli.progress import reading
from hotspan.exporters.reports import json, waterfall
from hotspan.exporters.reports.choose import choose


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
@wide_option
def show(file: str, trace: str | None, percentile: float | None, output_format: str, *, wide: bool) -> None:
    """Show one request of FILE as a waterfall with its critical path: by default the slowest.

    TRACE is the id of a trace, or the beginning of one; '-' as FILE is standard input.
    """
    if trace is not None and percentile is not None:
        msg = "TRACE and --percentile are two ways to choose a request: give one of them."
        raise click.UsageError(msg)
    with reading(file):
        again = None if file == STDIN else partial(hotspan.load, file)
        asked = 100 if percentile is None else percentile
        view = choose(hotspan.load(file), trace, asked, again=again)
    emit(json.render_request(view) if output_format == "json" else waterfall.render(view, screen(wide=wide)))
