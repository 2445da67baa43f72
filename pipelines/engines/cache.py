"""Files that are built once on this machine and kept outside the repository."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import hotspan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MANIFEST = "manifest.json"


def cache_folder() -> Path:
    """Return the folder that holds everything Hotspan builds: models, indexes, server logs.

    `HOTSPAN_CACHE` names it; without that it is `hotspan` in `$XDG_CACHE_HOME` or `~/.cache`.
    """
    own = os.environ.get("HOTSPAN_CACHE")
    if own:
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "hotspan"


def built_once(folder: Path, build: Callable[[Path], None]) -> Path:
    """Return `folder`, built by `build` if it is not there or not whole.

    `build` writes into an empty folder beside it, which is renamed when it is complete: nobody ever sees a
    part.  A manifest of names and sizes tells a whole folder from one that lost files.  Two processes at
    once: the second waits for the first and uses what it built.

    Args:
        folder: The final place; its name should contain a hash of the recipe.
        build: Called with the empty folder to write into.

    Returns:
        `folder`.

    Raises:
        hotspan.ConfigurationError: Nothing can be written there.
    """
    if _is_whole(folder):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder.with_name(f"{folder.name}.lock")):
            if not _is_whole(folder):
                _build(folder, build)
    except OSError as error:
        msg = (
            f"{folder.parent}: cannot be written ({error.strerror or error}), and what is built once "
            "is kept there. Set HOTSPAN_CACHE to a folder that can be written."
        )
        raise hotspan.ConfigurationError(msg) from error
    return folder


def _build(folder: Path, build: Callable[[Path], None]) -> None:
    # What lies at either place was left by a build that died: the lock says nobody works there now.
    unfinished = folder.with_name(f"{folder.name}.building")
    for left_over in (unfinished, folder):
        shutil.rmtree(left_over, ignore_errors=True)
    unfinished.mkdir()
    build(unfinished)
    (unfinished / _MANIFEST).write_text(json.dumps(_sizes(unfinished), indent=1), encoding="utf-8")
    unfinished.rename(folder)


def _sizes(folder: Path) -> dict[str, int]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != _MANIFEST)
    return {str(path.relative_to(folder)): path.stat().st_size for path in files}


def _is_whole(folder: Path) -> bool:
    try:
        expected = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(expected == _sizes(folder))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    # The kernel drops the lock with the process, however that ends; the empty file stays.
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
