"""A sign of life on standard error while work takes long."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hotspan.tracer.errors import TraceFileError

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATIENCE_S = 1.0


@contextmanager
def progress(what: str, *, patience_s: float = _PATIENCE_S) -> Iterator[None]:
    """Show a moving bar while the block runs, once that takes longer than a second.

    Nothing is written when standard error is no terminal, and nothing is left behind when the block ends.

    Args:
        what: What is being done: `Reading run.jsonl`.
        patience_s: Seconds before the bar appears.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    from hotspan.analysis.parallel.processes import WATCHER  # noqa: PLC0415 - only a terminal pays for it

    done = threading.Event()
    watcher = threading.Thread(target=_show, args=(what, done, patience_s), name=WATCHER, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


@contextmanager
def reading(*files: str) -> Iterator[None]:
    """Show progress while files are read; what the system says without a file's name gets the names.

    Raises:
        hotspan.TraceFileError: The system refused to read, and did not say which file.
    """
    shown = ", ".join(files)
    try:
        with progress(f"Reading {shown}"):
            yield
    except OSError as error:
        if error.filename is not None:
            raise
        reason = error.strerror or str(error)
        msg = f"{shown}: cannot be read ({reason}). Give a trace file, such as hotspan-demo.jsonl."
        raise TraceFileError(msg) from error


def _show(what: str, done: threading.Event, patience_s: float) -> None:
    if done.wait(patience_s):
        return
    from rich.console import Console  # noqa: PLC0415 - only slow work pays for it
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415 - as above

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        bar.add_task(what, total=None)
        done.wait()
