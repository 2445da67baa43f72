"""JSON documents of a source: one per line, or one that goes over many lines, or several of these.

A line that cannot be read costs itself only, and is said with file and line; a source of which nothing can be
read is a `TraceFileError`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from hotspan.analysis.readers import sniff
from hotspan.tracer.errors import TraceFileError

if TYPE_CHECKING:
    from hotspan.analysis.readers.source import Source

_BOM = b"\xef\xbb\xbf"
_OBJECT_STARTS = (b'{"resourceSpans"', b'{"batches"')
_SHOWN = 60
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # the last: nested beyond any depth

T = TypeVar("T")
Decode = Callable[[bytes], Iterable[T]]
Warn = Callable[[str], None]


def documents(source: Source, decode: Decode[T], warn: Warn) -> Iterator[T]:
    """Yield what `decode` makes of every document of a source.

    Raises:
        TraceFileError: The source is empty, binary, of another format, or holds nothing that can be read.
    """
    lines = source.lines()
    n_blank, first = _first_line(source, lines)
    second = next(lines, b"")
    if whole := next((line for line in (first, second) if _is_line(line, first)), None):
        _check_format(source, msgspec.json.decode(whole))
        numbered = enumerate(itertools.chain([first, second], lines), start=n_blank + 1)
        yield from _decoded_lines(source, numbered, decode, warn)
    else:
        yield from _whole(source, b"".join([first, b"\n", second, *lines]), decode, warn)
    if source.is_cut:
        warn(
            f"{source.name}: the compressed data breaks off before its end; what was read until there is kept"
        )


def _first_line(source: Source, lines: Iterator[bytes]) -> tuple[int, bytes]:
    """Return how many blank lines lead the source, and its first other line, checked to be text."""
    head = b""
    for n_blank, line in enumerate(lines):
        head += line[: sniff.HEAD_BYTES]
        if n_blank == 0:
            line = line.removeprefix(_BOM)  # noqa: PLW2901  # the byte order mark is no part of the line
        if stripped := line.strip():
            _check_text(source, head)
            return n_blank, stripped
    msg = f"{source.name}: is empty. The writer recorded nothing, or has not flushed it yet: hotspan.flush()."
    raise TraceFileError(msg)


def _check_text(source: Source, head: bytes) -> None:
    binary = sniff.format_of_bytes(head[: sniff.HEAD_BYTES])
    if binary is not None:
        _refuse(source, binary)


def _check_format(source: Source, document: Any) -> None:
    name = sniff.format_of_document(document)
    if name is None:
        shown = _shown(msgspec.json.encode(document))
        msg = (
            f"{source.name}: is JSON, but of no known trace format; it begins with {shown}. "
            "Hotspan reads OTLP/JSON: objects with resourceSpans, as hotspan.configure(file=...) writes them."
        )
        raise TraceFileError(msg)
    if name != sniff.OTLP_JSON:
        _refuse(source, name)


def _refuse(source: Source, name: str) -> None:
    msg = (
        f"{source.name}: {name}: not read by this version. "
        "Export the traces as OTLP/JSON, one object with resourceSpans per line."
    )
    raise TraceFileError(msg)


def _is_line(line: bytes, first: bytes) -> bool:
    """Return whether a line is a document of its own, so that the source has one per line.

    The second line tells it too, as the first one may be the end of one that was cut; unless an array over
    several lines begins.
    """
    if line is not first and (first == b"[" or not line.startswith(b'{"')):
        return False
    return _is_complete(line)


def _is_complete(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _decoded_lines(
    source: Source, lines: Iterable[tuple[int, bytes]], decode: Decode[T], warn: Warn
) -> Iterator[T]:
    bad: tuple[int, bytes, Exception] | None = (
        None  # the latest bad line: whether it was the last is known afterwards
    )
    for number, line in lines:
        if not line.strip():
            continue
        if bad:
            warn(_bad_line(source, *bad, is_last=False))
            bad = None
        try:
            yield from decode(line)
        except _UNREADABLE as exc:
            bad = number, line, exc
            yield from _rest_of(line, decode)
    if bad:
        warn(_bad_line(source, *bad, is_last=True))


def _rest_of(line: bytes, decode: Decode[T]) -> Iterator[T]:
    # A writer was killed in mid-line and another went on behind it: the second one's object is whole.
    start = max(line.rfind(mark) for mark in _OBJECT_STARTS)
    if start > 0:
        try:
            yield from decode(line[start:])
        except _UNREADABLE:
            return


def _bad_line(source: Source, number: int, line: bytes, exc: Exception, *, is_last: bool) -> str:
    is_half = is_last or line.lstrip().startswith(b"{")
    why = "half-written, as a killed process leaves it" if is_half else "not OTLP/JSON"
    if isinstance(exc, RecursionError):
        why = "nested too deeply"
    return f"{source.name}:{number}: the line is {why}; left out. It begins with {_shown(line)}"


def _whole(source: Source, text: bytes, decode: Decode[T], warn: Warn) -> Iterator[T]:
    """Decode documents that go over several lines: one, or several one after the other."""
    for index, (document, line) in enumerate(_concatenated(source, text, warn)):
        if not index:
            _check_format(source, document)
        try:
            yield from decode(msgspec.json.encode(document))
        except (msgspec.DecodeError, RecursionError) as exc:
            warn(f"{source.name}:{line}: the object is not OTLP/JSON ({exc}); left out")


def _concatenated(source: Source, text: bytes, warn: Warn) -> Iterator[tuple[Any, int]]:
    decoder = json.JSONDecoder()
    content = text.decode(errors="replace")
    position, n_read = 0, 0
    while position < len(content):
        try:
            document, end = decoder.raw_decode(content, position)
        except (json.JSONDecodeError, RecursionError) as exc:
            bad = exc if isinstance(exc, json.JSONDecodeError) else _too_deep(content, position)
            _report_bad(source, bad, content[position : position + _SHOWN], warn, n_read=n_read)
            return
        yield document, content.count("\n", 0, position) + 1
        n_read += 1
        position = end
        while position < len(content) and content[position] in " \t\r\n,":
            position += 1


def _too_deep(content: str, position: int) -> json.JSONDecodeError:
    return json.JSONDecodeError("nested too deeply", content, position)


def _report_bad(source: Source, exc: json.JSONDecodeError, begin: str, warn: Warn, *, n_read: int) -> None:
    where, shown = f"{source.name}:{exc.lineno}", _shown(begin.encode())
    if n_read:
        warn(f"{where}: not JSON from here on ({exc.msg}); left out. It begins with {shown}")
        return
    msg = (
        f"{where}: not JSON ({exc.msg} at column {exc.colno}); the file begins with {shown}. "
        "Name a trace file in OTLP/JSON; if its only object was cut off, record it again."
    )
    raise TraceFileError(msg)


def _shown(line: bytes) -> str:
    text = line[:_SHOWN].decode(errors="replace").strip()
    return repr(text + ("…" if len(line) > _SHOWN else ""))
