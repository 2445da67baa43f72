"""Running an example as its reader would: from the command line, in an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def environment():
    """The environment of a reader who has set nothing of ours."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("HOTSPAN_", "OTEL_"))}


@pytest.fixture
def run_example(tmp_path, environment):
    """Run one example to its end and return what it printed; it must exit with 0."""

    def run(name: str, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, str(EXAMPLES / name), *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
