"""Bytes of a trace file, line by line: a path or standard input, plain or gzip-compressed.

Every failure is a `TraceFileError` that names the file and the next step.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING

from hotspan.tracer.errors import TraceFileError

if TYPE_CHECKING:
    from collections.abc import Iterator

STDIN = "-"
_GZIP_MAGIC = b"\x1f\x8b"
_BUFFER_BYTES = 1 << 20


class Source:
    """One input, read once from front to back.

    Args:
        path: A file, or `-` for standard input.

    Raises:
        TraceFileError: The file is missing, a directory, or may not be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fspath(path)
        self.is_cut = False  # the compressed data broke off before its end
        if self.name != STDIN:
            _check_readable(self.name)

    def lines(self) -> Iterator[bytes]:
        """Yield the lines with their line ends; the last one may lack it."""
        if self.name == STDIN:
            yield from self._lines(sys.stdin.buffer)
            return
        with Path(self.name).open("rb", buffering=_BUFFER_BYTES) as file:
            yield from self._lines(file)

    def _lines(self, raw: IO[bytes]) -> Iterator[bytes]:
        buffered = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(raw, _BUFFER_BYTES)  # type: ignore[type-var]  # IO[bytes] is what the interpreter calls stdin's buffer
        if buffered.peek(2)[:2] != _GZIP_MAGIC:
            yield from buffered
            return
        try:
            with gzip.GzipFile(fileobj=buffered) as unzipped:
                yield from io.BufferedReader(unzipped, _BUFFER_BYTES)
        except EOFError:
            self.is_cut = True
        except (gzip.BadGzipFile, zlib.error) as exc:
            msg = f"{self.name}: begins like gzip, but cannot be unpacked ({exc}). Compress or copy it again."
            raise TraceFileError(msg) from exc


def _check_readable(name: str) -> None:
    path = Path(name)
    try:
        if path.is_dir():
            files = sorted(p.name for p in path.glob("*.json*"))[:3]
            hint = f", for example {' '.join(str(path / file) for file in files)}" if files else ""
            msg = f"{name}: is a directory. Name the trace files in it{hint}."
            raise TraceFileError(msg)
        path.open("rb").close()
    except FileNotFoundError as exc:
        near = f"the directory {path.parent} is there" if path.parent.is_dir() else f"nor is {path.parent}"
        msg = f"{name}: no such file ({near}). Check the path, or record one with `hotspan demo`."
        raise TraceFileError(msg) from exc
    except OSError as exc:
        msg = f"{name}: cannot be read ({exc.strerror or exc}). Check its owner and permissions."
        raise TraceFileError(msg) from exc
