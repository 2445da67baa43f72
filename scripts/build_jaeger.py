"""Build Jaeger once, from the Go module proxy, and print where the program lies.

    python scripts/build_jaeger.py

It lies under `$HOTSPAN_CACHE`, or `hotspan` in the user's cache folder, and is found there the next time.
Two builds at once wait for each other.  Only the tests need it: for daily use Jaeger's own container image
or download is the better way (docs/jaeger.md).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

VERSION = "1.76.0"
MODULE = "github.com/jaegertracing/jaeger/cmd/jaeger"
GO_MOD = "module hotspan.invalid/jaeger\n"
NO_GO = (
    "Go is needed to build Jaeger and `go` is not on the PATH. Install Go 1.24 or newer (https://go.dev/dl), "
    "or set HOTSPAN_JAEGER to the path of a Jaeger v2 program."
)


def cache_dir() -> Path:
    """Return the folder that the program is kept in."""
    xdg = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    root = os.environ.get("HOTSPAN_CACHE") or Path(xdg) / "hotspan"
    return Path(root) / f"jaeger-{VERSION}"


def build(into: Path) -> None:
    """Compile Jaeger and put the finished program at `into`.

    Raises:
        SystemExit: Go is not installed, or one of its commands failed; its output is on stderr.
    """
    if shutil.which("go") is None:
        sys.exit(NO_GO)
    print(f"Building Jaeger {VERSION} into {into.parent}: minutes the first time.", file=sys.stderr)
    # A name of its own until it is complete: whoever sees `into` sees a whole program.
    with tempfile.TemporaryDirectory(dir=into.parent) as work:
        Path(work, "go.mod").write_text(GO_MOD, encoding="utf-8")
        # `go install MODULE@VERSION` refuses a module with replace directives; a tool of an empty one builds.
        _go("get", "-tool", f"{MODULE}@v{VERSION}", cwd=work)
        _go("build", "-trimpath", "-ldflags=-s -w", "-o", "jaeger", MODULE, cwd=work)
        Path(work, "jaeger").replace(into)


def _go(*arguments: str, cwd: str) -> None:
    done = subprocess.run(["go", *arguments], cwd=cwd, stdout=sys.stderr, check=False)  # noqa: S603, S607 -- the user's Go
    if done.returncode:
        sys.exit(f"`go {' '.join(arguments)}` failed with {done.returncode}; its output is above.")


def main() -> None:
    """Print the path of the program, after building it where that is still to be done."""
    given = os.environ.get("HOTSPAN_JAEGER")
    program = Path(given) if given else cache_dir() / "jaeger"
    if given and not program.is_file():
        sys.exit(f"HOTSPAN_JAEGER names {given!r}, and no such file exists.")
    program.parent.mkdir(parents=True, exist_ok=True)
    if not program.is_file():
        with (program.parent / "build.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not program.is_file():
                build(program)
    print(program)


if __name__ == "__main__":
    main()
