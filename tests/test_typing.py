"""Decorated code is still type-checked: right use passes mypy --strict, and each mistake is found."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("mypy")
ROOT = Path(__file__).parent.parent
CASES = Path(__file__).parent / "typing"


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    """Return a function that checks one file against the package, laid out as it is when it is installed.

    Static checkers cannot follow the mapping of folders that an editable install uses.
    """
    site = tmp_path_factory.mktemp("site")
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    folders = sorted(setuptools["package-dir"].items())
    for package, folder in folders:
        shutil.copytree(ROOT / folder, site / package.replace(".", "/"), dirs_exist_ok=True)

    def check(path):
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--follow-imports=silent", path],
            cwd=site,
            env={"MYPYPATH": str(site), "PATH": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr

    return check


def test_right_use_passes(mypy):
    """Decorated functions, methods, coroutines and generators keep their types."""
    assert mypy(CASES / "api.py") == ""


def test_every_mistake_is_found(mypy):
    """Each line that is marked as wrong has the error that it is marked with, and no other line has one."""
    lines = (CASES / "wrong.py").read_text("utf-8").splitlines()
    marked = {(i, m[1]) for i, line in enumerate(lines, 1) if (m := re.search(r"# error: ([\w-]+)$", line))}

    found = re.findall(r"wrong\.py:(\d+): error: .*\[([\w-]+)\]", mypy(CASES / "wrong.py"))

    assert {(int(line), code) for line, code in found} == marked
