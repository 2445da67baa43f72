"""What a reader of one JSON dialect is: parsed documents in, spans out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from hotspan.analysis.readers.items import Flaw, Item, RefusedSpan

if TYPE_CHECKING:
    from hotspan.analysis.readers.fields import Say
    from hotspan.tracer.record import SpanRecord

Documents = Iterable[tuple[int, Any]]  # the line at which each begins, and what it holds
Read = Callable[[Documents], Iterator[Item]]


def each(decode: Callable[[Any, Say], Iterable[SpanRecord | RefusedSpan]]) -> Read:
    """Return a reader of documents that have nothing to do with each other.

    Args:
        decode: Makes spans of one document; what it says could not be read is said with the document's line.
    """

    def read(documents: Documents) -> Iterator[Item]:
        for line, document in documents:
            flaws: list[str] = []
            for item in decode(document, flaws.append):
                yield item._replace(line=line) if isinstance(item, RefusedSpan) else item
            yield from (Flaw(flaw, line) for flaw in flaws)

    return read


def record_of(make: Callable[..., SpanRecord], *found: Any) -> SpanRecord | RefusedSpan:
    """Return the span that `make` makes of what was found, or why it cannot."""
    try:
        return make(*found)
    except ValueError as exc:
        return RefusedSpan(str(exc))
