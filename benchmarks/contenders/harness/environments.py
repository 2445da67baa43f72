"""A virtual environment for each contender, made by `uv` once and kept outside of the repository."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

BENCHMARKS: Final = Path(__file__).resolve().parents[2]
ROOT: Final = BENCHMARKS.parent
CONTENDERS: Final = BENCHMARKS / "contenders"
THIS_PROJECT: Final = "{root}"  # in a contender's packages: the working tree itself
INSTALL_TIMEOUT_S: Final = 900
_FIRST: Final = ("floor", "hotspan", "opentelemetry_sdk")
_CONSTANTS: Final = frozenset({"TITLE", "PACKAGES", "TARGETS", "ENVIRONMENT", "NOTES"})

_VERSIONS = """
import json, sys
from importlib import metadata
print(json.dumps({name: metadata.version(name) for name in sys.argv[1:]}))
"""


class InstallError(RuntimeError):
    """A contender's environment could not be made; the message is for the table."""


@dataclass(frozen=True, slots=True)
class Contender:
    """What the benchmark must know of a contender before it can be imported.

    Attributes:
        key: Name of its file, and what `--contenders` calls it.
        title: What the table calls it.
        packages: What is installed for it; the first is the one that it is known by.
        targets: The kinds of target that it can send to; see `Target`.
        environment: Environment variables of its process; `{url}` is the collector's.
        notes: Row -> what its figure there does not contain, or contains beside.
    """

    key: str
    title: str
    packages: tuple[str, ...]
    targets: tuple[str, ...]
    environment: dict[str, str]
    notes: dict[str, str]


def contenders() -> dict[str, Contender]:
    """Return every contender in the folder: floor, Hotspan and the SDK first, the others by name."""
    others = {path.stem for path in CONTENDERS.glob("*.py") if not path.stem.startswith("_")} - set(_FIRST)
    return {name: _read(name) for name in (*_FIRST, *sorted(others))}


def _read(name: str) -> Contender:
    """Read a contender's constants from its source: importing it needs the library that it is about."""
    found: dict[str, Any] = {}
    for node in ast.parse((CONTENDERS / f"{name}.py").read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            key = node.targets[0].id
            if key in _CONSTANTS:
                found[key] = ast.literal_eval(node.value)
    return Contender(
        name,
        found["TITLE"],
        found["PACKAGES"],
        found.get("TARGETS", ("drop",)),
        found.get("ENVIRONMENT", {}),
        found.get("NOTES", {}),
    )


def cache() -> Path:
    """Return the folder of the environments: `$HOTSPAN_CACHE/bench`, or `hotspan/bench` in the user cache."""
    own = os.environ.get("HOTSPAN_CACHE")
    if own:
        return Path(own) / "bench"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hotspan" / "bench"


def is_ready(contender: Contender) -> bool:
    """Whether the contender's environment is there."""
    return _ready_file(_folder(contender)).exists()


def provide(contender: Contender) -> Path:
    """Return the Python of the contender's environment, which is made if it is not there.

    Raises:
        InstallError: Why it cannot be made.
    """
    folder = _folder(contender)
    python = folder / "bin" / "python"
    if is_ready(contender):
        return python
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    uv = find_uv()
    _run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)])
    packages: list[str] = []
    for package in contender.packages:
        packages += ["--editable", str(ROOT)] if package == THIS_PROJECT else [package]
    if packages:
        _run([uv, "pip", "install", "--quiet", "--python", str(python), *packages])
    _ready_file(folder).touch()
    return python


def versions(contender: Contender, python: Path) -> dict[str, str]:
    """Return the installed version of each of the contender's packages, by name."""
    names = [re.split("[<>=]", package)[0].replace(THIS_PROJECT, "hotspan") for package in contender.packages]
    return json.loads(_run([str(python), "-c", _VERSIONS, *names])) if names else {}  # type: ignore[no-any-return]  # ours


def find_uv() -> str:
    """Return the command that runs `uv`: `$UV`, the one beside this Python, or the one on the path.

    Raises:
        InstallError: There is none.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    found = os.environ.get("UV") or shutil.which("uv", path=path)
    if found is None:
        msg = "uv was not found: install it with 'python -m pip install uv'"
        raise InstallError(msg)
    return found


def _folder(contender: Contender) -> Path:
    what = [*contender.packages, platform.python_version()]
    if THIS_PROJECT in contender.packages:
        what += [str(ROOT), (ROOT / "pyproject.toml").read_text()]
    return cache() / f"{contender.key}-{hashlib.sha256(json.dumps(what).encode()).hexdigest()[:12]}"


def _ready_file(folder: Path) -> Path:
    return folder / "ready"


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False)  # noqa: S603 - ours
    except subprocess.TimeoutExpired as exc:
        msg = f"not installed within {INSTALL_TIMEOUT_S} s"
        raise InstallError(msg) from exc
    if done.returncode:
        raise InstallError("not installed: " + " ".join((done.stderr or done.stdout).split())[-300:])
    return done.stdout
