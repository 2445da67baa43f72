"""Bytes of a trace file: a path or standard input, plain or compressed, block by block or line by line.

Every failure is a `TraceFileError` that names the file and the next step.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from hotspan.analysis.readers import compression, temporary
from hotspan.tracer.errors import TraceFileError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence
    from io import FileIO

STDIN: Final = "-"
HEAD_BYTES: Final = 1 << 16  # enough to tell a format
MAX_DOCUMENT_BYTES: Final = 64 << 20  # of one line, JSON object or message: what bounds the memory


class Source:
    """One input, read once from front to back.

    Args:
        path: A file, or `-` for standard input.
        is_named: The user named it, rather than a directory that it lies in.

    Attributes:
        is_cut: The compressed data broke off before its end; known when everything was read.

    Raises:
        TraceFileError: The file is missing, a directory, or may not be read.
    """

    def __init__(self, path: str | os.PathLike[str], *, is_named: bool = True) -> None:
        self.name = os.fspath(path)
        self.is_named = is_named
        self.is_cut = False
        self._seen = b""  # what was looked at, and is still to be handed on
        self._rest: Generator[bytes, None, None] | None = None
        self._is_plain = False  # not compressed; known when something was read
        if self.name != STDIN:
            _check_readable(self.name)

    def head(self, n_bytes: int = HEAD_BYTES) -> bytes:
        """Return the first bytes, unpacked, without using them up; fewer where the file has no more."""
        seen = [self._seen]
        n_seen = len(self._seen)
        while n_seen < n_bytes and (block := next(self._unread(), b"")):
            seen.append(block)
            n_seen += len(block)
        self._seen = b"".join(seen)
        return self._seen[:n_bytes]

    def is_plain_file(self) -> bool:
        """Return whether it is a file on the disk, and not compressed."""
        self.head()
        return self._is_plain and Path(self.name).is_file()

    def first_lines(self) -> bytes:
        """Return at least the first two lines, likewise; of longer ones `MAX_DOCUMENT_BYTES`."""
        n_bytes = HEAD_BYTES
        while True:
            text = self.head(n_bytes)
            if len(text) < n_bytes or n_bytes >= MAX_DOCUMENT_BYTES or text.lstrip().count(b"\n") > 1:
                return text
            n_bytes *= 4

    def blocks(self) -> Iterator[bytes]:
        """Yield what the file holds, unpacked."""
        seen, self._seen = self._seen, b""
        if seen:
            yield seen
        yield from self._unread()

    def close(self) -> None:
        """Let go of the file; what was not handed on is lost."""
        if self._rest is not None:
            self._rest.close()

    def lines(self) -> Iterator[bytes]:
        """Yield the lines without their line ends.

        A line of more than `MAX_DOCUMENT_BYTES` is cut behind that many.
        """
        begun: list[bytes] = []
        n_begun = 0
        for block in self.blocks():
            first, *others = block.split(b"\n")
            if n_begun < MAX_DOCUMENT_BYTES:
                begun.append(first)
                n_begun += len(first)
            if others:
                yield _cut(begun)
                *lines, last = others
                yield from lines
                begun, n_begun = [last], len(last)
        if n_begun:
            yield _cut(begun)

    @contextmanager
    def file(self) -> Iterator[IO[bytes]]:
        """Give what the file holds, unpacked, as a file that can be sought; a temporary copy if need be."""
        if self.is_plain_file():
            with Path(self.name).open("rb") as file:
                yield file
            return
        with ExitStack() as stack:
            with temporary.used():
                # Not buffered: what does not fit fails where it is written, and not once more at the end.
                copy = stack.enter_context(tempfile.TemporaryFile(buffering=0))
            for block in self.blocks():
                with temporary.used():
                    _write(copy, block)
            copy.seek(0)
            yield copy

    def _unread(self) -> Iterator[bytes]:
        if self._rest is None:
            self._rest = self._read()
        return self._rest

    def _read(self) -> Generator[bytes, None, None]:
        if self.name == STDIN:
            yield from self._unpacked(sys.stdin.buffer)
            return
        with Path(self.name).open("rb", buffering=0) as file:
            yield from self._unpacked(file)

    def _unpacked(self, raw: IO[bytes]) -> Iterator[bytes]:
        head = b""
        while len(head) < compression.MAGIC_BYTES and (more := raw.read(compression.MAGIC_BYTES - len(head))):
            head += more  # a pipe may give less than asked for
        blocks = chain([head], iter(lambda: raw.read(compression.BLOCK_BYTES), b""))
        if compression.is_framed(head):
            yield from self._unframed(blocks)
        elif unpacker := compression.unpacker_of(head, self.name):
            yield from unpacker.blocks(blocks)
            self.is_cut = unpacker.is_cut
        else:
            self._is_plain = True
            yield from blocks

    def _unframed(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        try:
            yield from compression.unframed(blocks, self.name, MAX_DOCUMENT_BYTES)
        except ValueError:
            self.is_cut = True


def _write(file: FileIO, block: bytes) -> None:
    rest = memoryview(block)
    while rest:
        rest = rest[file.write(rest) :]


def _cut(pieces: Sequence[bytes]) -> bytes:
    whole = b"".join(pieces)
    return whole if len(whole) <= MAX_DOCUMENT_BYTES else whole[: MAX_DOCUMENT_BYTES + 1]


def all_sources(paths: Iterable[str | os.PathLike[str]]) -> tuple[Source, ...]:
    """Return the inputs that paths name: files, or all files of a directory and those below it.

    Raises:
        TraceFileError: A path is empty, or there is none such, a directory has no file, a file may not be
            read, or standard input is named more than once.
    """
    found = tuple(source for path in paths for source in _sources_of(path))
    if [source.name for source in found].count(STDIN) > 1:
        msg = f"{STDIN}: standard input is named more than once, and can be read only once. Name it once."
        raise TraceFileError(msg)
    return found


def _sources_of(path: str | os.PathLike[str]) -> list[Source]:
    name = os.fspath(path)
    if not name:
        msg = "'': is no file's name. Name the files that hold the traces, or - for standard input."
        raise TraceFileError(msg)
    if name == STDIN or not Path(name).is_dir():
        return [Source(name)]
    found = [Source(file, is_named=False) for file in _files_below(name)]
    if not found:
        msg = f"{name}: is a directory without files. Name the directory or the files that hold the traces."
        raise TraceFileError(msg)
    return found


def _files_below(name: str) -> Iterator[str]:
    for folder, folders, files in os.walk(name):
        folders[:] = sorted(entry for entry in folders if not entry.startswith("."))
        for file in sorted(files):
            path = os.path.join(folder, file)  # noqa: PTH118 - the name as the user wrote it
            if not file.startswith(".") and Path(path).is_file():
                yield path


def _check_readable(name: str) -> None:
    path = Path(name)
    try:
        if path.is_file() or not path.exists():  # to open a pipe and close it would break it
            path.open("rb").close()
    except FileNotFoundError as exc:
        near = f"the directory {path.parent} is there" if path.parent.is_dir() else f"nor is {path.parent}"
        msg = f"{name}: no such file ({near}). Check the path, or record one with `hotspan demo`."
        raise TraceFileError(msg) from exc
    except (OSError, ValueError) as exc:  # the latter: a name with a NUL
        reason = getattr(exc, "strerror", None) or exc
        msg = f"{name}: cannot be read ({reason}). Check its owner and permissions."
        raise TraceFileError(msg) from exc
