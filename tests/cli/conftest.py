"""Trace files, and the command line as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

ZERO_NS = 1_700_000_000 * 10**9
MS = 1_000_000


def span(trace, span_id, name, interval_ms, parent=None, **attributes):
    """One span as OTLP/JSON; times in ms from a fixed moment."""
    start_ms, end_ms = interval_ms
    return {
        "traceId": f"{trace:032x}",
        "spanId": f"{span_id:016x}",
        **({"parentSpanId": f"{parent:016x}"} if parent else {}),
        "name": name,
        "startTimeUnixNano": str(ZERO_NS + int(start_ms * MS)),
        "endTimeUnixNano": str(ZERO_NS + int(end_ms * MS)),
        "attributes": [
            {"key": key.replace("__", "."), "value": {"stringValue": value}}
            for key, value in attributes.items()
        ],
    }


def request(trace, duration_ms, *, retrieval="retrieval"):
    """One request: retrieval takes a fifth of it, generation the rest."""
    middle = duration_ms / 5
    return [
        span(trace, 1, "answer", (0, duration_ms), hotspan__stage="request"),
        span(trace, 2, "search", (0, middle), 1, hotspan__stage=retrieval),
        span(trace, 3, "chat", (middle, duration_ms), 1, hotspan__stage="generation"),
    ]


def line(spans):
    """One line of an OTLP/JSON file."""
    return (
        json.dumps({"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": spans}]}]})
        + "\n"
    )


@pytest.fixture
def trace_file(tmp_path):
    """Ten requests of 100, 200, … 1000 ms."""
    path = tmp_path / "run.jsonl"
    path.write_text("".join(line(request(n, 100 * n)) for n in range(1, 11)), encoding="utf-8")
    return path


@pytest.fixture
def write(tmp_path):
    """Write lines of spans to a file and return its path."""

    def write(*lines, name="own.jsonl"):
        path = tmp_path / name
        path.write_text("".join(line(spans) for spans in lines), encoding="utf-8")
        return path

    return write


@pytest.fixture
def spans():
    """The builders of this file."""
    return {"span": span, "request": request, "line": line}


@pytest.fixture
def cli():
    """Run the command line in this process; returns click's result, its two streams apart."""
    from hotspan.cli import main  # noqa: PLC0415 - so that a test of imports sees them happen

    def run(*args, **options):
        return CliRunner().invoke(main, [str(arg) for arg in args], prog_name="hotspan", **options)

    return run


@pytest.fixture
def process():
    """Run the command line as a process of its own, output piped; `env` is added to a bare environment."""

    def run(*args, env=None, **options):
        bare = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "VIRTUAL_ENV")}
        command = [sys.executable, "-m", "hotspan", *map(str, args)]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 120} | options
        return subprocess.run(command, env=bare | (env or {}), check=False, **options)

    return run
