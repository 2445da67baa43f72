"""From a source to what it holds, whatever its format.

The first document that is known tells the format of the whole source.  What cannot be read of it costs itself
only, and is said with file and line; a source of which nothing can be read is a `TraceFileError`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from hotspan.analysis.readers import (
    framing,
    otlp_json,
    otlp_metrics,
    otlp_proto,
    parquet,
    plausible,
    printed,
    sniff,
    values,
)
from hotspan.analysis.readers.items import Flaw, Item, OtherLines, RefusedSpan
from hotspan.analysis.readers.otlp_text import TextDecoder
from hotspan.analysis.readers.source import HEAD_BYTES
from hotspan.tracer.errors import TraceFileError
from hotspan.tracer.record import SpanRecord

if TYPE_CHECKING:
    from hotspan.analysis.readers.framing import Document
    from hotspan.analysis.readers.source import Source

Warn = Callable[[str], None]

_PARQUET: Final = b"PAR1"
_BLANK: Final = b" \t\r\n\xef\xbb\xbf\0"
_SHOWN: Final = 60
_MAX_UNKNOWN: Final = 1000  # documents that are no spans before the first one that is
_MANY_BYTES: Final = 4 << 20
_MAX_CONTAINERS: Final = (
    4_000_000  # objects and arrays of one document: each takes far more memory than in the file
)
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_BEGIN: Final = 64  # bytes in which an object's first key lies, in whatever layout
_ALIKE: Final = 12  # bytes in which the lines of one writer begin alike
_OTLP_STARTS: Final = tuple(b'{"%b"' % key.encode() for key in sniff.OTLP_KEYS)
_NOTHING: Final = b'{"resourceSpans":[]}'
_LINE: Final = re.compile(rb"[^\n]+")
_BEGUN: Final = (b"{", b"[")  # with which an object, or a list of them, begins
_PRETTY: Final = frozenset({b"{", b"["})  # what begins an object over many lines


def items(source: Source, warn: Warn) -> Iterator[Item]:
    """Yield what a source holds.

    Raises:
        TraceFileError: The source is empty, of no known format, or holds nothing that can be read.
        MissingDependencyError: A package that its format needs is not installed.
    """
    yield from plausible.checked(_items(source, warn), source.name, warn)
    if source.is_cut:
        warn(
            f"{source.name}: the compressed data breaks off before its end; what was read until there is kept"
        )


def is_plain_otlp_lines(source: Source) -> bool:
    """Return whether a source is a file, not compressed, in which every line is an OTLP/JSON object."""
    if not source.is_plain_file() or sniff.binary_format(source.head()) is not None:
        return False
    return source.first_lines().startswith(_OTLP_STARTS) and _has_lines(source)


def items_of_lines(
    source: Source, lines: Iterable[tuple[int, bytes]], warn: Warn, *, has_others: bool
) -> Iterator[Item]:
    """Yield what some lines of such a file hold.

    Args:
        source: The file.
        lines: Number, from 1, and text of each, in order; an empty one stands for others that follow.
        warn: As for `items`.
        has_others: Spans of the others were read elsewhere, and have times of our days.
    """
    documents = (
        document._replace(line=number)
        for number, text in lines
        for document in framing.lines([text or _NOTHING])
    )
    found = _Text(source, warn, is_rest=True).otlp(documents)
    yield from found if has_others else plausible.checked(found, source.name, warn)


def _items(source: Source, warn: Warn) -> Iterator[Item]:
    head = source.head()
    begin = head.lstrip(_BLANK)
    binary = sniff.binary_format(head)
    if not begin and b"\0" not in head and len(head) < HEAD_BYTES:
        why = "The writer recorded nothing, or has not flushed it yet: hotspan.flush()."
        msg = f"{source.name}: is empty. {why}"
        raise TraceFileError(msg)
    if not head.strip(b"\0") and len(head) == HEAD_BYTES and not source.is_plain_file():
        what = f"begins with {HEAD_BYTES:,} NUL bytes, and may have no end"
        msg = f"{source.name}: {what}. Name the file that holds the traces."
        raise TraceFileError(msg)
    if binary is None and begin[:1] in _PRETTY:
        yield from _Text(source, warn).items()
    elif head.startswith(_PARQUET):
        yield from parquet.read(source)
    elif otlp_proto.is_protobuf(head):
        yield from otlp_proto.read(source, warn)
    elif binary in {None, sniff.BINARY}:
        yield from _text_in(source, warn, binary)
    else:
        raise _refusal(source, str(binary))


def _text_in(source: Source, warn: Warn, binary: str | None) -> Iterator[Item]:
    """Yield what a text holds; of a damaged one, what is whole: only where nothing is, the file is none."""
    is_any = False
    try:
        for item in _Text(source, warn).items():
            is_any = True
            yield item
    except TraceFileError as exc:
        if binary is None or is_any:
            raise
        raise _refusal(source, binary) from exc


def _refusal(source: Source, name: str) -> TraceFileError:
    msg = (
        f"{source.name}: is {name}, which is not read. Export the traces as OTLP/JSON, one object with "
        "resourceSpans per line, or in another of the formats of docs/formats.md."
    )
    return TraceFileError(msg)


class _Text:
    """JSON of any dialect, in any framing."""

    def __init__(self, source: Source, warn: Warn, *, is_rest: bool = False) -> None:
        self._source = source
        self._is_any_read = is_rest
        self._warn = warn
        self._is_lines = _has_lines(source)
        self._looked_at: tuple[Document, Sequence[Any]] | None = (
            None  # what told the dialect: a file may be one
        )

    def items(self) -> Iterator[Item]:
        if not self._is_lines_of_otlp() and printed.is_printed(self._source):
            yield from self._printed()
            return
        documents = (
            framing.lines(self._source.lines()) if self._is_lines else framing.values(self._source.blocks())
        )
        first, dialect = self._first_known(documents)
        found = itertools.chain([first], documents)
        if dialect is None:
            yield from self.otlp(found)
        else:
            yield from self._not_empty(dialect, dialect.read(self._parsed(found, dialect)))

    def _is_lines_of_otlp(self) -> bool:
        return self._is_lines and self._source.head().startswith(_OTLP_STARTS)

    def _printed(self) -> Iterator[Item]:
        found = printed.Printed()
        documents = found.documents(self._source.lines())
        yield from sniff.CONSOLE.read(self._parsed(documents, sniff.CONSOLE))
        if found.n_others:
            yield OtherLines(found.n_others)

    def _not_empty(self, dialect: sniff.Dialect, found: Iterator[Item]) -> Iterator[Item]:
        first = next(found, None)
        if first is None:
            raise _no_spans(self._source, dialect.name)
        yield first
        yield from found

    def _first_known(self, documents: Iterator[Document]) -> tuple[Document, sniff.Dialect | None]:
        """Return the first document whose format is known, and its dialect; `None` for OTLP.

        Raises:
            TraceFileError: None is.
        """
        unknown: list[tuple[Document, str]] = []
        for document in itertools.islice(documents, _MAX_UNKNOWN):
            if document.wrapper in sniff.OTLP_KEYS:
                dialect, why = None, document.problem
            else:
                dialect, why = self._format_of(document)
            if not why:
                for other, reason in unknown:
                    self._leave_out(other, reason)
                return document, dialect
            unknown.append((document._replace(text=document.text[: _SHOWN + 1]), why))
        raise self._nothing(unknown)

    def _format_of(self, document: Document) -> tuple[sniff.Dialect | None, str]:
        """Return the dialect of a document, `None` for OTLP, and why it is not known."""
        try:
            parsed = _parse(document)
        except ValueError as exc:
            return None, str(exc)
        for value in parsed:
            if sniff.is_otlp(value):
                return None, ""
            if dialect := sniff.dialect_of(value):
                self._looked_at = document, parsed
                return dialect, ""
        other = next(filter(None, map(sniff.other_format, parsed)), None)
        return None, f"JSON of {other or 'no known trace format'}"

    def _nothing(self, unknown: Sequence[tuple[Document, str]]) -> TraceFileError:
        if not unknown:
            return _no_spans(self._source, "JSON")
        document, why = unknown[0]
        what = f"what stands in its {document.wrapper}" if document.wrapper else "it"
        msg = (
            f"{self._source.name}:{document.line}: is {why}; {what} begins with {_shown(document.text)}. "
            "Hotspan reads OTLP/JSON, as hotspan.configure(file=...) writes it, and what docs/formats.md "
            "lists; a file that was cut off has to be copied or recorded again."
        )
        return TraceFileError(msg)

    def _parsed(self, documents: Iterable[Document], dialect: sniff.Dialect) -> Iterator[tuple[int, Any]]:
        for document, value in self._each(documents, self._values):
            found = sniff.dialect_of(value)
            if found is None or found.read is not dialect.read:
                self._leave_out(document, f"not of {dialect.name}, as the rest of the file")
            else:
                yield document.line, value

    def _values(self, document: Document) -> Sequence[Any]:
        looked_at, self._looked_at = self._looked_at, None
        return looked_at[1] if looked_at and looked_at[0] is document else _parse(document)

    def otlp(self, documents: Iterable[Document]) -> Iterator[Item]:
        """Yield what documents of OTLP/JSON hold."""
        decoder = otlp_json.Decoder()
        texts = TextDecoder(decoder)

        def decoded(document: Document) -> list[Sequence[Item]]:
            # Most files are lines in one layout, and of those one item a line is handed on.
            drafts = texts.drafts(document.text) if self._is_lines and not document.problem else None
            found = _decoded(decoder, document) if drafts is None else (drafts,)
            if not found and not document.wrapper:
                _check_nothing_is_lost(document)
            return [found]

        for _, found in self._each(documents, decoded):
            yield from found

    def _each(
        self, documents: Iterable[Document], decode: Callable[[Document], Iterable[Any]]
    ) -> Iterator[tuple[Document, Any]]:
        """Yield what each document holds, with the document; what cannot be read is said and left out."""
        bad: tuple[Document, str] | None = None  # the latest: whether it was the last is known afterwards
        for document in documents:
            if bad:
                self._leave_out(*bad)
                bad = None
            try:
                for value in decode(document):
                    self._is_any_read = True
                    yield document, value
            except (ValueError, *_UNREADABLE) as exc:
                bad = document, framing.TOO_DEEP if isinstance(exc, RecursionError) else _why(exc)
                yield from self._rest_of(document, decode)
        if bad and not self._is_any_read:
            raise self._nothing([bad])
        if bad:
            document, why = bad
            is_begun = self._is_lines and document.text.startswith(_BEGUN)
            is_half = is_begun and not document.problem and why != framing.TOO_DEEP
            self._leave_out(document, framing.HALF_WRITTEN if is_half else why)

    def _rest_of(
        self, document: Document, decode: Callable[[Document], Iterable[Any]]
    ) -> Iterator[tuple[Document, Any]]:
        # A writer was killed in mid-line and another went on behind it: the second one's object is whole.
        start = document.text.rfind(document.text[:_ALIKE])
        if self._is_lines and start > 0:
            rest = document._replace(text=document.text[start:])
            try:
                found = list(decode(rest))
            except (ValueError, *_UNREADABLE):
                return
            yield from ((rest, value) for value in found)

    def _leave_out(self, document: Document, why: str) -> None:
        where = f"{self._source.name}:{document.line}"
        what = "the line" if self._is_lines else "what begins here"
        self._warn(f"{where}: {what} is {why}; left out. It begins with {_shown(document.text)}")


def _why(exc: Exception) -> str:
    is_typed = isinstance(exc, msgspec.ValidationError)
    return f"not as the rest of the file: {exc}" if is_typed else str(exc)


def _no_spans(source: Source, what: str) -> TraceFileError:
    msg = (
        f"{source.name}: is {what}, but holds no spans. The writer recorded none, or what it was asked for "
        "has none: look at the time range, the project or the service."
    )
    return TraceFileError(msg)


def _has_lines(source: Source) -> bool:
    """Return whether every line is a document of its own.

    The second line tells it too, as the first one may be the end of one that was cut.
    """
    first, second = (*_two_lines(source.first_lines()), b"", b"")[:2]
    if first.startswith(b"{") and _is_complete(first):
        return second not in _PRETTY and (bool(second) or first.startswith(_OTLP_STARTS))
    return first not in _PRETTY and second.startswith(b"{") and _is_complete(second)


def _two_lines(text: bytes) -> list[bytes]:
    lines = (line[0].strip(_BLANK) for line in _LINE.finditer(text))
    return list(itertools.islice(filter(None, lines), 2))


def _is_complete(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except _UNREADABLE:
        return False
    return True


def _parse(document: Document) -> Sequence[Any]:
    """Return what a document holds: one value, or the elements of an array.

    Raises:
        ValueError: It cannot be read.
    """
    _check(document)
    value = values.from_json(document.text)
    return value if isinstance(value, list) else _unwrapped(value)


def _unwrapped(value: Any) -> Sequence[Any]:
    """Return the elements of an API's answer that stands on one line, and everything else as it is."""
    wrapped = sniff.wrapped(value)
    return [value] if wrapped is None else wrapped


def _check(document: Document) -> None:
    text = document.text
    if document.problem:
        raise ValueError(document.problem)
    if len(text) > _MANY_BYTES and text.count(b"{") + text.count(b"[") > _MAX_CONTAINERS:
        msg = f"more than {_MAX_CONTAINERS:,} objects and arrays in one"
        raise ValueError(msg)


def _check_nothing_is_lost(document: Document) -> None:
    """Raise a ValueError where a document without OTLP's spans has those of another format."""
    for value in _parse(document):
        if not sniff.is_otlp(value) and (dialect := sniff.dialect_of(value)):
            msg = f"{dialect.name}, and not OTLP/JSON as the rest of the file"
            raise ValueError(msg)


def _decoded(decoder: otlp_json.Decoder, document: Document) -> list[Item]:
    _check(document)
    text = document.text
    if otlp_metrics.MARK in text[:_BEGIN]:
        return list(otlp_metrics.metric_points(text))
    if document.wrapper:
        text = b'{"%b":[%b]}' % (document.wrapper.encode(), text)
    try:
        found = decoder.decode(text)
        return [item if type(item) is SpanRecord else _placed(item, document.line) for item in found]
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # What Python writes and JSON has not, such as NaN: as null.
        return list(decoder.decode(msgspec.json.encode(values.from_json(text))))


def _placed(item: Item, line: int) -> Item:
    return item._replace(line=line) if isinstance(item, RefusedSpan | Flaw) else item


def _shown(text: bytes) -> str:
    begin = text[:_SHOWN].decode(errors="replace").strip()
    return repr(begin + ("…" if len(text) > _SHOWN else ""))
