"""The overhead benchmark: its one command, on the contenders that need the least to be installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
BESIDE = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])

needs_uv = pytest.mark.skipif(shutil.which("uv", path=BESIDE) is None, reason="uv makes the environments")


def run(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the benchmark with these arguments."""
    command = [sys.executable, str(BENCHMARKS / "overhead.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


@pytest.fixture
def harness(monkeypatch):
    """The benchmark's own modules."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from contenders.harness import environments, rows, sink, table  # noqa: PLC0415 - found from here on

    return SimpleNamespace(environments=environments, rows=rows, sink=sink, table=table)


@needs_uv
def test_measures_hotspan_beside_the_sdk():
    """Every row comes out for both, and Hotspan loses no span."""
    done = run("--contenders", "hotspan,opentelemetry_sdk", "--rounds", "1", "--spans", "500")

    assert done.returncode == 0, done.stderr
    table = [line for line in done.stdout.splitlines() if line.startswith("|")]
    head, _, ours, sdk, _goal = ([cell.strip() for cell in line.strip("|").split("|")] for line in table)
    assert len(head) == 1 + 8
    assert ours[0].startswith("**Hotspan**")
    assert sdk[0].startswith("OpenTelemetry SDK")
    for cell in ours[1:]:
        assert re.match(r"[\d.,]+ \((1/|×)[\d.,]+\)", cell), cell  # noqa: RUF001 - as the table writes it
    assert all(re.match(r"[\d.,]+", cell) for cell in sdk[1:])
    assert all("0 lost" in cell for title, cell in zip(head, ours, strict=True) if "sustained" in title)
    assert "not measured" not in done.stdout
    assert "round 1/1" in done.stderr


def test_says_what_cannot_be_installed(tmp_path):
    """A contender whose environment cannot be made is in the table, with the reason."""
    tool = tmp_path / "uv"
    tool.write_text("#!/bin/sh\necho no such package >&2\nexit 1\n")
    tool.chmod(0o755)
    env = {**os.environ, "UV": str(tool), "HOTSPAN_CACHE": str(tmp_path)}

    done = run("--contenders", "logfire", "--rows", "sync", env=env)

    assert done.returncode == 0, done.stderr
    assert "- logfire: not measured: not installed: no such package" in done.stdout


def test_refuses_what_it_does_not_know():
    """An unknown contender or row is an error of usage that names those that there are."""
    done = run("--contenders", "hotspan,nobody")

    assert done.returncode == 2
    assert "no contender 'nobody'" in done.stderr
    assert "opentelemetry_sdk" in done.stderr


def test_contenders_say_what_the_table_needs(harness):
    """Every contender's constants can be read without its library, and name rows and targets that exist."""
    contenders = harness.environments.contenders()

    assert {"floor", "hotspan", "opentelemetry_sdk", "langfuse", "mlflow"} <= set(contenders)
    for contender in contenders.values():
        assert contender.title
        assert set(contender.notes) <= set(harness.rows.BY_KEY), contender.key
        assert set(contender.targets) <= {"drop", "file", "otlp", "hang", "keep"}, contender.key
        assert all("{url}" in value or "{" not in value for value in contender.environment.values())


def test_collector_counts_spans(harness):
    """The collector's reading of a protobuf message agrees with OpenTelemetry's encoder."""
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans  # noqa: PLC0415 - here alone
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - here alone

    provider = TracerProvider()
    spans = []
    for scope, n_spans in (("a", 3), ("b", 2)):
        for number in range(n_spans):
            span = provider.get_tracer(scope).start_span(
                "x" * 200, attributes={"number": number, "ratio": 0.5}
            )
            span.end()
            spans.append(span)

    assert harness.sink.count_spans(encode_spans(spans).SerializeToString()) == 5


def test_table_goes_between_its_markers(harness, tmp_path):
    """Writing the table replaces what is between the markers, and nothing else."""
    page = tmp_path / "README.md"
    page.write_text(f"before\n{harness.table.BEGIN}\nold\n{harness.table.END}\nafter\n")

    harness.table.write(page, "| new |\n")

    assert page.read_text() == f"before\n{harness.table.BEGIN}\n\n| new |\n\n{harness.table.END}\nafter\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(0.5, "1/2.00", id="half"),
        pytest.param(1 / 15, "1/15.0", id="a part"),
        pytest.param(3.2, "×3.20", id="a multiple"),  # noqa: RUF001 - as the table writes it
    ],
)
def test_ratios_read_as_they_are_said(harness, value, text):
    """A ratio below one is a part, any other a multiple."""
    assert text == harness.table.ratio(value)
