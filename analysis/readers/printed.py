"""The spans among whatever else a program printed: framing for the output of `ConsoleSpanExporter`.

Told by lines and not by brackets, so that no bracket or quote of the program's own can hide a span, and any
amount of other output may stand before, between and behind the spans.

    Listening on port 8000          of no span
    {                               a span begins: a line that ends so, and the name below it
        "name": "chat",
        …
    }                               and ends
    {"name": "chat", …}             a span on one line
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hotspan.analysis.readers import values
from hotspan.analysis.readers.framing import HALF_WRITTEN, TOO_LONG, Document
from hotspan.analysis.readers.source import MAX_DOCUMENT_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hotspan.analysis.readers.source import Source

_LOOKED_AT: Final = 2 << 20  # bytes in which the first span has to begin
# At the begin of a line: whoever made an array of the spans is read as any other JSON.
_SPAN: Final = re.compile(
    rb'^\{\s*"name": "(?:[^"\\\n]|\\.)*+",\s*"context": \{\s*"trace_id": "0x[^\n]*', re.MULTILINE
)
_ARRAY: Final = re.compile(rb"\s*\[\s*\{")
_NAME: Final = re.compile(rb'\s+"name"\s*:')
_ON_ONE_LINE: Final = re.compile(rb'\{\s*"name"\s*:')
_CONTEXT: Final = b'"context"'
_END: Final = b'"resource": {'  # the last field of a span
_NO_BEGIN: Final = "the end of a span whose beginning is missing"
_INDENTED: Final = (b" ", b"\t")
_MAX_SHOWN: Final = 1 << 16


def is_printed(source: Source) -> bool:
    """Return whether a source is such output, with each span on lines of its own."""
    head = source.head(_LOOKED_AT)
    found = None if _ARRAY.match(head) else _SPAN.search(head)
    return found is not None and (b"\n" in found[0] or _is_whole(found[0]))


def _is_whole(line: bytes) -> bool:
    try:
        values.from_json(line)
    except ValueError:
        return False
    return True


class Printed:
    """What a program printed, taken apart.

    Attributes:
        n_others: Lines that belong to no span: the program's own output.
    """

    def __init__(self) -> None:
        self.n_others = 0
        self._begun: list[bytes] = []  # lines of the span that is open
        self._n_bytes = 0  # of them
        self._begun_at = 0  # number of the first

    def documents(self, lines: Iterable[bytes]) -> Iterator[Document]:
        """Yield a document for each span; one that breaks off, or is too long, with its `problem`."""
        for number, line in enumerate(lines, start=1):
            text = line.rstrip()
            if text.endswith(b"{") and not text.startswith(_INDENTED):
                yield from self._broken(HALF_WRITTEN)
                self._begun, self._begun_at, self._n_bytes = [b"{"], number, 1
            elif self._begun and self._goes_on(text):
                self._begun.append(text)
                self._n_bytes += len(text)
                if text.startswith(b"}"):
                    yield from self._whole()
                elif self._n_bytes > MAX_DOCUMENT_BYTES:
                    yield from self._broken(TOO_LONG)
            elif text:
                yield from self._on_one_line(number, text)
        yield from self._broken(HALF_WRITTEN)

    def _goes_on(self, text: bytes) -> bool:
        """Return whether a line goes on with what is open; where it is no span, nothing is open any more."""
        if len(self._begun) == 1 and not _NAME.match(text):
            self._pass_over()
        return bool(self._begun)

    def _pass_over(self) -> None:
        self.n_others += len(self._begun)
        self._begun = []

    def _whole(self) -> Iterator[Document]:
        self._begun[-1] = b"}"  # whatever else stands on the line
        text = b"\n".join(self._begun)
        if _CONTEXT in text:
            self._begun = []
            yield Document(self._begun_at, text)
        else:
            self._pass_over()

    def _broken(self, problem: str) -> Iterator[Document]:
        if len(self._begun) > 1:
            yield Document(self._begun_at, b"\n".join(self._begun)[:_MAX_SHOWN], problem=problem)
            self._begun = []
        else:
            self._pass_over()

    def _on_one_line(self, number: int, text: bytes) -> Iterator[Document]:
        found = _ON_ONE_LINE.search(text)
        end = text.rfind(b"}") + 1
        if found is None and _END in text:
            yield Document(number, text[:_MAX_SHOWN], problem=_NO_BEGIN)
        elif found is None or (end and _CONTEXT not in text):
            self.n_others += 1
        elif len(text) > MAX_DOCUMENT_BYTES:
            yield Document(number, text[:_MAX_SHOWN], problem=TOO_LONG)
        else:
            is_half = end <= found.start()
            span = text[found.start() : None if is_half else end]
            yield Document(number, span, problem=HALF_WRITTEN if is_half else "")
