"""How many spans of each trace there are in files of OTLP/JSON, counted before they are read.

With it a trace can be let go as soon as its last span came.  Nothing but the trace ids is decoded: a tenth of
the time that reading takes.  Of other formats, and of what can be read only once, nothing is
counted; whatever cannot be counted for sure is left out, and then waits until the end.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from hotspan.analysis.readers import ids
from hotspan.analysis.readers.source import MAX_DOCUMENT_BYTES, STDIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hotspan.analysis.readers.source import Source

MIN_BYTES: Final = 32 << 20  # of all files together: of less everything fits in memory
_BLOCK_BYTES: Final = 1 << 20
_MAX_BAD_LINES: Final = 1_000
_ANY_ID: Final = re.compile(rb'"trace_?[iI]d"\s*:\s*"([^"]*)"')
_DECODE_ERRORS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Span(msgspec.Struct, rename="camel", gc=False):
    trace_id: str = ""


class _ScopeSpans(msgspec.Struct, gc=False):
    spans: list[_Span] = []


class _ResourceSpans(msgspec.Struct, rename="camel", gc=False):
    scope_spans: list[_ScopeSpans] = []
    instrumentation_library_spans: list[_ScopeSpans] = []


class _Export(msgspec.Struct, rename="camel", gc=False):
    resource_spans: list[_ResourceSpans] = []
    batches: list[_ResourceSpans] = []


_decode = msgspec.json.Decoder(_Export | list[_Export], strict=False).decode


def count_spans(sources: Iterable[Source]) -> dict[str, int]:
    """Return trace id -> its spans, of the traces whose spans could all be counted; empty for small files."""
    paths = [Path(source.name) for source in sources if source.name != STDIN]
    files = [path for path in paths if path.is_file()]
    if sum(path.stat().st_size for path in files) < MIN_BYTES or len(files) < len(paths):
        return {}
    return counts_in(itertools.chain.from_iterable(map(_lines, files))) or {}


def counts_in(lines: Iterable[bytes]) -> dict[str, int] | None:
    """Return trace id -> its spans in some lines; `None` if they are no lines of OTLP/JSON.

    Args:
        lines: With their line ends; those that are too long have to be cut behind `MAX_DOCUMENT_BYTES`.
    """
    counts: Counter[str] = Counter()
    usual: Counter[bytes] = Counter()
    doubtful: set[str] = set()
    if not _count(lines, usual, counts, doubtful):
        return None
    for text in [text for text in counts if ids.trace_id(text) != text]:  # in another spelling
        counts[ids.trace_id(text) or ""] += counts.pop(text)
    counts.update({raw.decode("ascii", "replace"): n for raw, n in usual.items()})
    for text in doubtful:
        counts.pop(ids.trace_id(text) or "", None)
    return counts


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb", buffering=_BLOCK_BYTES) as file:
        while line := file.readline(MAX_DOCUMENT_BYTES + 1):
            yield line


def _count(lines: Iterable[bytes], usual: Counter[bytes], counts: Counter[str], doubtful: set[str]) -> bool:
    """Count the spans in lines, those of lines in the usual layout apart; return whether they are lines."""
    n_bad = 0
    for line in lines:
        if len(line) > MAX_DOCUMENT_BYTES:
            return False
        if found := _usual_ids(line):
            usual.update(found)
            continue
        try:
            exports: Any = _decode(line)
        except _DECODE_ERRORS:
            # What the reader makes of it remains to be seen.
            doubtful.update(text.decode(errors="replace") for text in _ANY_ID.findall(line))
            n_bad += bool(line.strip())
            if n_bad > _MAX_BAD_LINES:
                return False
            continue
        for spans in _spans(exports if isinstance(exports, list) else [exports]):
            counts.update([span.trace_id for span in spans])
    return True


# In the usual layout the ids stand at the beginning of each span, and tell it from a link.
_CUT: Final = b'{"traceId":"'
_IDS: Final = slice(0, ids.TRACE_DIGITS)
_TO_SPAN_ID: Final = slice(32, 44), {b'","spanId":"'}
_TO_THE_REST: Final = slice(60, 65), {b'","pa', b'","fl', b'","na'}  # parentSpanId, flags, name


def _usual_ids(line: bytes) -> list[bytes]:
    """Return the trace id of each span of a line in the usual layout, without a decoder; else none."""
    if line[-2:] != b"}\n":
        return []
    texts = line.split(_CUT)[1:]
    fit = all({text[where] for text in texts} <= usual for where, usual in (_TO_SPAN_ID, _TO_THE_REST))
    return [text[_IDS] for text in texts] if fit else []


def _spans(exports: Iterable[_Export]) -> Iterator[list[_Span]]:
    for export in exports:
        for group in (*export.resource_spans, *export.batches):
            for scoped in (*group.scope_spans, *group.instrumentation_library_spans):
                yield scoped.spans
