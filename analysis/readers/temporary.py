"""The temporary folder, where waits what does not fit in memory: it is blamed when it takes no more."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hotspan.tracer.errors import TraceFileError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def used() -> Iterator[None]:
    """Do something with a temporary file.

    Raises:
        TraceFileError: The system refused: it is the folder that is full, and not the trace file that is bad.
    """
    try:
        yield
    except OSError as exc:
        msg = (
            f"{_folder()}: the temporary folder cannot be used ({exc.strerror or exc}). What does not fit in "
            "memory waits there: free some space in it, or set TMPDIR to a folder with more."
        )
        raise TraceFileError(msg) from exc


def _folder() -> str:
    try:
        return tempfile.gettempdir()
    except OSError:  # none can be written
        return "TMPDIR"
