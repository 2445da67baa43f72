"""Bytes of a trace file, line by line: a path or standard input, plain or gzip-compressed.

Every failure is a `TraceFileError` that names the file and the next step.
"""

from __future__ import annotations

import itertools
import os
import sys
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING

from hotspan.tracer.errors import TraceFileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

STDIN = "-"
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP = 31  # zlib's number for a gzip header and the largest window
_BLOCK_BYTES = 1 << 20


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
        with Path(self.name).open("rb", buffering=0) as file:
            yield from self._lines(file)

    def _lines(self, raw: IO[bytes]) -> Iterator[bytes]:
        head = raw.read(len(_GZIP_MAGIC))
        blocks: Iterable[bytes] = itertools.chain([head], iter(lambda: raw.read(_BLOCK_BYTES), b""))
        if head == _GZIP_MAGIC:
            blocks = self._unzipped(blocks)
        rest = b""
        for block in blocks:
            *lines, rest = (rest + block).split(b"\n")
            yield from (line + b"\n" for line in lines)
        if rest:
            yield rest

    def _unzipped(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Unpack one member after the other; what can be unpacked of a damaged file is kept."""
        n_bytes = 0
        inflate = zlib.decompressobj(_GZIP)
        try:
            for packed in blocks:
                block = packed
                while block:
                    if inflate.eof:
                        inflate = zlib.decompressobj(_GZIP)
                    unpacked = inflate.decompress(block)
                    n_bytes += len(unpacked)
                    yield unpacked
                    block = inflate.unused_data.lstrip(b"\0")  # some writers pad to a block
            self.is_cut = not inflate.eof
        except zlib.error:
            self.is_cut = True
        if self.is_cut and not n_bytes:
            msg = f"{self.name}: begins like gzip, but cannot be unpacked. Compress or copy it again."
            raise TraceFileError(msg)


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
