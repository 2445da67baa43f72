"""JSON documents of a text: one per line, or values that go over many lines, or the elements of an array.

A document is a JSON object.  An array is taken apart, and so is the array under one of `WRAPPERS`, as an
API's answer or a whole export has it, so that of a file of any size one element at a time is in memory.  What
stands between the documents, such as what a program printed beside them, is handed on as a document too: it
says of itself, when it is decoded, that it is none.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from hotspan.analysis.readers.source import MAX_DOCUMENT_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

WRAPPERS: Final = frozenset({b"resourceSpans", b"batches", b"resource_spans", b"data", b"traces", b"runs"})

# Strings and all else up to the next bracket, or to a string that goes on in what was not read yet.
_BRACKET_AHEAD: Final = re.compile(rb'(?:[^\[\]{}"]++|"(?:[^"\\]++|\\.)*+")*+[\[\]{}"]', re.DOTALL)
_KEY: Final = re.compile(rb'"(\w+)"\s*:\s*\Z')
_MAX_KEY: Final = 64
_OPENING: Final = re.compile(rb"[\[{]")
_NEXT_LINE: Final = re.compile(rb"\n[\[{]")
_BETWEEN: Final = b" \t\r\n,\x1e\xef\xbb\xbf"  # also RFC 7464's separator and the byte order mark
_MAX_BETWEEN: Final = 1 << 16
_BLOCK_BYTES: Final = 1 << 20
_MAX_IDLE: Final = 4 << 20
_MAX_RESTARTS: Final = 100
_QUOTE, _BRACE, _BRACKET = b'"{['
MAX_DEPTH: Final = 10_000  # of brackets: no decoder follows that far
TOO_DEEP: Final = "nested too deeply"
NULS: Final = "of NUL bytes, as a loss of power leaves them"
HALF_WRITTEN: Final = "half-written, as a killed process leaves it"
NO_OBJECT: Final = f"without an object for {_MAX_IDLE >> 20} MiB"
TOO_LONG: Final = f"longer than {MAX_DOCUMENT_BYTES >> 20} MiB"


class Document(NamedTuple):
    """One JSON object of a file."""

    line: int  # where it begins, from 1
    text: bytes
    wrapper: str = ""  # the key of the array that it is an element of
    problem: str = ""  # why it cannot be read, where that is known: the text is only its beginning


def lines(pieces: Iterable[bytes]) -> Iterator[Document]:
    """Yield a document for each line that is not blank; NUL bytes around it are one of their own."""
    for number, line in enumerate(pieces, start=1):
        text = line.strip(_BETWEEN)
        if text and not (text[0] and text[-1]):
            yield Document(number, text[:_MAX_KEY], problem=NULS)
            text = text.strip(_BETWEEN + b"\0")
        if text:
            yield Document(number, text, problem=TOO_LONG if len(line) > MAX_DOCUMENT_BYTES else "")


def values(blocks: Iterator[bytes]) -> Iterator[Document]:
    """Yield the documents of a text in which they may go over many lines.

    One that breaks off, or is longer than `MAX_DOCUMENT_BYTES`, is yielded with its `problem`.  Behind one
    that breaks off, as where another process wrote on, the next line that begins an object begins a document.
    """
    return _Splitter(blocks).documents()


class _Splitter:
    """Finds where documents begin and end, by nothing but brackets and strings."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._text = b""  # what is in memory
        self._at = 0  # read so far
        self._line, self._line_at = 1, 0  # number of the line at a position
        self._depth = 0
        self._levels = [0]  # the depths at which documents begin; the innermost array's is the last
        self._wrapper = ""
        self._start: int | None = None  # of the document that is open
        self._between = 0  # end of the document before
        self._n_idle, self._idle_from = 0, 0  # bytes without a document before the text, and from where in it

    def documents(self) -> Iterator[Document]:
        while self._read_on():
            yield from self._scan()
            if problem := self._problem():
                yield self._document(self._kept_from(), self._kept_from() + _MAX_BETWEEN, problem)
                if problem != TOO_LONG or not self._skip():
                    return
        for _ in range(_MAX_RESTARTS):
            if self._start is None:
                break
            yield self._document(self._start, self._start + _MAX_BETWEEN, problem=HALF_WRITTEN)
            if not self._restart():
                return
            yield from self._scan()
        if not self._depth:
            yield from self._text_between(len(self._text))

    def _problem(self) -> str:
        """Return why nothing more is read, whatever comes."""
        if self._depth > MAX_DEPTH:
            return TOO_DEEP
        if len(self._text) - self._kept_from() > MAX_DOCUMENT_BYTES:
            return TOO_LONG
        is_idle = self._start is None and self._n_idle + self._at - self._idle_from > _MAX_IDLE
        return NO_OBJECT if is_idle else ""

    def _kept_from(self) -> int:
        if self._start is not None:
            return self._start
        return self._at if self._depth else self._between

    def _read_on(self) -> bool:
        """Read at least as much as is kept, so that what is kept is not copied again and again."""
        kept = self._kept_from()
        self._count_lines(kept)
        parts = [self._text[kept:]]
        n_kept = n_bytes = len(parts[0])
        while n_bytes <= 2 * n_kept and (block := next(self._blocks, b"")):
            parts.append(block)
            n_bytes += len(block)
        self._text = b"".join(parts)
        self._n_idle += max(0, kept - self._idle_from)
        self._idle_from = max(0, self._idle_from - kept)
        self._at -= kept
        self._between -= kept
        self._line_at = 0
        if self._start is not None:
            self._start = 0
        return n_bytes > n_kept

    def _count_lines(self, position: int) -> int:
        self._line += self._text.count(b"\n", self._line_at, position)
        self._line_at = max(position, self._line_at)
        return self._line

    def _document(self, start: int, end: int, problem: str = "") -> Document:
        self._n_idle, self._idle_from = 0, end
        return Document(self._count_lines(start), self._text[start:end], self._wrapper, problem)

    def _restart(self) -> bool:
        begin = _NEXT_LINE.search(self._text, (self._start or 0) + 1)
        if begin is None:
            return False
        self._begin_anew(begin.start() + 1)
        return True

    def _skip(self) -> bool:
        """Pass over what is open, up to the next line that begins an object; return whether there is one."""
        start = self._kept_from() + 1
        while (begin := _NEXT_LINE.search(self._text, start)) is None:
            self._count_lines(len(self._text) - 1)
            block = next(self._blocks, b"")
            if not block:
                return False
            self._text, self._line_at, start = self._text[-1:] + block, 0, 0
        self._count_lines(begin.start() + 1)
        rest = self._text[begin.start() + 1 :]
        blocks = (rest[at : at + _BLOCK_BYTES] for at in range(0, len(rest), _BLOCK_BYTES))
        self._blocks = itertools.chain(blocks, self._blocks)
        self._text, self._line_at = b"", 0
        self._begin_anew(0)
        self._n_idle = self._idle_from = 0
        return True

    def _begin_anew(self, position: int) -> None:
        self._at = self._between = position
        self._depth, self._levels, self._wrapper, self._start = 0, [0], "", None

    def _scan(self) -> Iterator[Document]:
        before = -1
        while before < self._at < len(self._text) and not self._problem():
            before = self._at
            yield from self._inside() if self._depth else self._outside()

    def _outside(self) -> Iterator[Document]:
        opening = _OPENING.search(self._text, self._at)
        self._at = opening.start() if opening else len(self._text)
        if opening or self._at - self._between > _MAX_BETWEEN:
            yield from self._text_between(self._at)
        if opening:
            self._opens(self._text[self._at], self._at)
            self._at += 1

    def _text_between(self, end: int) -> Iterator[Document]:
        start, self._between = self._between, end
        text = self._text[start:end].strip(_BETWEEN + b"]}")
        if text:
            yield Document(self._count_lines(self._text.index(text, start)), text)

    def _inside(self) -> Iterator[Document]:
        text = self._text
        while match := _BRACKET_AHEAD.match(text, self._at):
            at = match.end() - 1
            token = text[at]
            if token == _QUOTE:  # the string goes on in what was not read yet
                return
            self._at = at + 1
            if token in (_BRACE, _BRACKET):
                self._opens(token, at)
                if self._depth > MAX_DEPTH:
                    return
            else:
                self._between = at + 1
                yield from self._closes(at + 1)
                if not self._depth:
                    return

    def _opens(self, token: int, position: int) -> None:
        level = self._levels[-1]
        if self._depth == level:
            if token == _BRACKET and not level:
                self._levels.append(1)
            else:
                self._start = position
        elif (
            self._depth == level + 1
            and token == _BRACKET
            and not self._wrapper
            and (key := self._key(position))
        ):
            self._wrapper = key
            self._levels.append(self._depth + 1)
            self._start = None
            self._n_idle, self._idle_from = 0, position
        self._depth += 1

    def _key(self, position: int) -> str:
        """Return the key of the array that begins here, if it is one of `WRAPPERS`."""
        found = _KEY.search(self._text, max(0, position - _MAX_KEY), position)
        return found[1].decode() if found and found[1] in WRAPPERS else ""

    def _closes(self, end: int) -> Iterator[Document]:
        self._depth -= 1
        level = self._levels[-1]
        if self._depth < level:
            self._levels.pop()
            self._wrapper = ""
        elif self._start is not None and self._depth == level:
            yield self._document(self._start, end)
            self._start = None
