"""Which lines of a file each process reads."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hotspan.analysis.readers.source import MAX_DOCUMENT_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO

_BLOCK_BYTES: Final = 1 << 20


class UnfitError(Exception):
    """The file is to be read by one process."""


class Range(NamedTuple):
    """The lines of a file that begin in some of its bytes."""

    path: str
    start: int
    end: int

    def lines(self) -> Iterator[memoryview]:
        """Yield the lines with their ends, each until the next is asked for; a file's last may have none.

        Raises:
            UnfitError: A line is longer than any that is read.
        """
        with Path(self.path).open("rb", buffering=0) as file:
            at = file.seek(max(0, self.start - 1))  # a line that begins before belongs to the one before
            for line in _lines(file):
                if at >= self.end:
                    return
                if len(line) > MAX_DOCUMENT_BYTES:
                    raise UnfitError
                if at >= self.start:
                    yield line
                at += len(line)

    def before(self, n_bytes: int) -> Range:
        """Return the range of so many bytes before this one."""
        return Range(self.path, max(0, self.start - n_bytes), self.start)


def _lines(file: FileIO) -> Iterator[memoryview]:
    # Hot: the lines lie where they were read into.  Each as bytes of its own takes three times as long.
    buffer, n_kept = bytearray(_BLOCK_BYTES), 0
    while n_read := file.readinto(memoryview(buffer)[n_kept:]):
        begin, n_filled = 0, n_kept + n_read
        found = buffer.find(b"\n", n_kept, n_filled)
        while found >= 0:
            yield memoryview(buffer)[begin : found + 1]
            begin = found + 1
            found = buffer.find(b"\n", begin, n_filled)
        n_kept = n_filled - begin
        if n_kept > MAX_DOCUMENT_BYTES:  # more of it is not read
            raise UnfitError
        rest = buffer[begin:n_filled]
        if n_kept == len(buffer):
            buffer = bytearray(2 * n_kept)
        buffer[:n_kept] = rest
    if n_kept:
        yield memoryview(buffer)[:n_kept]


def ranges_of(path: str, n: int) -> list[Range]:
    """Return a file in `n` ranges of about as many bytes, in order."""
    size = Path(path).stat().st_size
    cuts = [size * i // n for i in range(n + 1)]
    return [Range(path, start, end) for start, end in itertools.pairwise(cuts)]
