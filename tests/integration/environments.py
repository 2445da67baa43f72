"""Virtual environments for applications whose libraries cannot share one; made by `uv` once, and kept.

They lie in `$HOTSPAN_CACHE/test-envs`, or `hotspan/test-envs` in the user's cache folder.
"""

import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def folder() -> Path:
    """Return the folder of all environments."""
    own = os.environ.get("HOTSPAN_CACHE")
    base = Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hotspan"
    return base / "test-envs"


def python_with(*packages: str) -> Path:
    """Return a Python that has this working tree and the packages; without `uv` the test is skipped."""
    what = [*packages, platform.python_version(), str(ROOT), (ROOT / "pyproject.toml").read_text()]
    made = folder() / f"{packages[0]}-{hashlib.sha256(json.dumps(what).encode()).hexdigest()[:12]}"
    made.parent.mkdir(parents=True, exist_ok=True)
    with made.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (made / "ready").exists():
            shutil.rmtree(made, ignore_errors=True)
            _make(made, packages)
            (made / "ready").touch()
    return made / "bin" / "python"


def _make(made: Path, packages: tuple[str, ...]) -> None:
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    uv = os.environ.get("UV") or shutil.which("uv", path=beside)
    if uv is None:
        pytest.skip("uv was not found: python -m pip install uv")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, made], check=True)
    into = ["--quiet", "--python", made / "bin" / "python", "--editable", ROOT]
    subprocess.run([uv, "pip", "install", *into, *packages], check=True)
