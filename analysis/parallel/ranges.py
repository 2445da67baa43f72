"""Which lines of a file each process reads."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hotspan.analysis.readers.source import MAX_DOCUMENT_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK_BYTES: Final = 1 << 20


class UnfitError(Exception):
    """The file is to be read by one process."""


class Range(NamedTuple):
    """The lines of a file that begin in some of its bytes."""

    path: str
    start: int
    end: int

    def lines(self) -> Iterator[bytes]:
        """Yield the lines with their line ends; the last one of a file may have none.

        Raises:
            UnfitError: A line is longer than any that is read.
        """
        with Path(self.path).open("rb", buffering=_BLOCK_BYTES) as file:
            at = self.start
            if at:  # a line that begins before belongs to the one before
                file.seek(at - 1)
                at += len(file.readline(MAX_DOCUMENT_BYTES + 1)) - 1
            while at < self.end and (line := file.readline(MAX_DOCUMENT_BYTES + 1)):
                if len(line) > MAX_DOCUMENT_BYTES:
                    raise UnfitError
                yield line
                at += len(line)

    def before(self, n_bytes: int) -> Range:
        """Return the range of so many bytes before this one."""
        return Range(self.path, max(0, self.start - n_bytes), self.start)


def ranges_of(path: str, n: int) -> list[Range]:
    """Return a file in `n` ranges of about as many bytes, in order."""
    size = Path(path).stat().st_size
    cuts = [size * i // n for i in range(n + 1)]
    return [Range(path, start, end) for start, end in itertools.pairwise(cuts)]
