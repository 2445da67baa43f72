"""A sign of life while work takes long."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

CODE = """
import sys
from hotspan.cli.progress import progress
with progress("Reading [bold]x[/]", patience_s=0):
    sys.stdin.readline()
print("done", file=sys.stderr)
"""


def test_a_terminal_sees_a_bar_that_goes_away():
    """The bar appears on standard error while the work runs, and leaves with it."""
    ours, terminal = pty.openpty()
    environ = {"PATH": os.environ["PATH"], "TERM": "xterm"}
    with subprocess.Popen(
        [sys.executable, "-c", CODE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=terminal,
        env=environ,
    ) as process:
        os.close(terminal)
        seen = b""
        while b"Reading [bold]x[/]" not in seen:
            seen += os.read(ours, 4096)
        output, _ = process.communicate(b"\n")
        while b"done" not in seen:
            seen += os.read(ours, 4096)
        os.close(ours)
    assert process.returncode == 0
    assert output == b""
    assert b"\x1b[2K" in seen  # the line of the bar was erased


def test_a_pipe_sees_nothing():
    """Standard error that is no terminal stays empty."""
    result = subprocess.run([sys.executable, "-c", CODE], input=b"\n", capture_output=True, check=True)
    assert result.stderr == b"done\n"
