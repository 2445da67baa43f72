"""NO_COLOR, TERM=dumb, COLUMNS, and a pipe whose reader leaves: no tracker has a usable report of them."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

import pytest
from rich.cells import cell_len

ZERO_NS = 1_700_000_000 * 10**9
PARTS = "--tail 50 --by name --where request.duration>1s"


def span(number, start, end, parent=None, stage="tool"):
    """One span of a file, times in ms."""
    return {
        "traceId": f"{1:032x}",
        "spanId": f"{number:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "name": f"a name that is rather long for a terminal {number}",
        "startTimeUnixNano": str(ZERO_NS + start * 10**6),
        "endTimeUnixNano": str(ZERO_NS + end * 10**6),
        "attributes": [{"key": "hotspan.stage", "value": {"stringValue": stage}}],
    }


@pytest.fixture
def path(tmp_path):
    """A request with forty stages of its own."""
    spans = [span(1, 0, 4000, stage="request")]
    spans += [span(n, 100 * n, 100 * n + 90, parent=1, stage=f"stage {n} of mine") for n in range(2, 40)]
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}), encoding="utf-8")
    return path


def on_terminal(path, command, **environ):
    """Run a command on a pseudo-terminal and return what it wrote there."""
    ours, terminal = pty.openpty()
    environ = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8"} | environ
    argv = [sys.executable, "-m", "hotspan", *command.split(), str(path)]
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal, env=environ
    ) as process:
        os.close(terminal)
        received = b""
        try:
            while chunk := os.read(ours, 4096):
                received += chunk
        except OSError:  # Linux's way to say that the other end is closed
            pass
        os.close(ours)
    assert process.returncode == 0
    return received.decode()


@pytest.mark.parametrize("command", ["report", "show"])
@pytest.mark.parametrize(
    ("environ", "has_colour"),
    [
        pytest.param({}, True, id="terminal"),
        pytest.param({"NO_COLOR": "1"}, False, id="no-color"),
        pytest.param({"TERM": "dumb"}, False, id="dumb"),
    ],
)
def test_colour(path, command, environ, has_colour):
    """A terminal has colour unless NO_COLOR or TERM=dumb says otherwise; then not one escape is written."""
    assert ("\x1b" in on_terminal(path, command, **environ)) is has_colour


@pytest.mark.parametrize("command", ["report", f"report {PARTS}", "show"])
@pytest.mark.parametrize(
    "environ", [{}, {"TERM": "dumb"}, {"NO_COLOR": "1"}], ids=["plain", "dumb", "no-color"]
)
def test_forty_columns(path, command, environ):
    """COLUMNS=40 is kept to, on every kind of terminal."""
    text = on_terminal(path, command, COLUMNS="40", **({"NO_COLOR": "1"} | environ))
    assert max(cell_len(line) for line in text.splitlines()) <= 40


@pytest.mark.parametrize(
    "command",
    ["report", "show", "report --tail 50 --by name", "report --format csv", "report --format markdown"],
)
def test_a_pipe_has_no_escapes(path, command):
    """Piped output is plain text."""
    argv = [sys.executable, "-m", "hotspan", *command.split(), str(path)]
    environ = {"PATH": os.environ["PATH"], "TERM": "xterm-256color"}
    result = subprocess.run(argv, capture_output=True, check=True, env=environ)
    assert b"\x1b" not in result.stdout


@pytest.mark.parametrize(
    "command", ["report", "report --format csv", "report --format markdown", "show", "show --format json"]
)
def test_head_ends_it_quietly(path, command):
    """`| head -1` gets its line; the command exits with 0 and says nothing."""
    shell = f'set -o pipefail; "{sys.executable}" -m hotspan {command} "{path}" | head -1'
    result = subprocess.run(["bash", "-c", shell], capture_output=True, check=False)
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.count(b"\n") == 1


@pytest.mark.parametrize("command", ["report", "show"])
def test_a_reader_that_is_gone_already(path, command):
    """A pipe that nobody reads any more is no error."""
    reader, writer = os.pipe()
    os.close(reader)
    argv = [sys.executable, "-m", "hotspan", command, str(path)]
    result = subprocess.run(argv, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (result.returncode, result.stderr) == (0, b"")
