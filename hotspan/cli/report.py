"""`hotspan report`: where the time of the requests in a file went."""

from __future__ import annotations

import click

import hotspan
from hotspan.cli.options import examples, format_option, wide_option
from hotspan.cli.output import emit, screen
from hotspan.cli.progress import reading
from hotspan.exporters.reports import console, json
from hotspan.tracer.errors import UnusableTraceError


@click.command(
    epilog=examples(
        ("hotspan report run.jsonl", "the breakdown of one run"),
        ("hotspan report worker-*.jsonl", "several files, read as one run"),
        ("zcat old.jsonl.gz | hotspan report -", "from standard input"),
        ("hotspan report --format json run.jsonl", "for another program"),
    )
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@format_option
@wide_option
def report(files: tuple[str, ...], output_format: str, *, wide: bool) -> None:
    """Print where the time of the requests in FILE... went, stage by stage.

    FILE is a trace file in OTLP/JSON lines, plain or gzip-compressed, told by its content; '-' is standard
    input.  Several files are read as one run: the spans of a trace may be spread over them.
    """
    with reading(*files):
        result = hotspan.analyse(hotspan.load(*files))
    if not result.evidence.n_spans:
        msg = f"No span in {', '.join(files)}: was it recorded by an application, and flushed at its end?"
        raise UnusableTraceError(msg)
    emit(json.render(result) if output_format == "json" else console.render(result, screen(wide=wide)))
