"""Whether times are in the unit that their format has: some write microseconds where nanoseconds belong."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from hotspan.analysis.readers import values
from hotspan.analysis.readers.items import Drafts, RefusedSpan
from hotspan.tracer.record import SpanRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hotspan.analysis.readers.items import Item

_N_LOOKED_AT: Final = 1000  # a writer has one unit
FROM_NS, TO_NS = 946_684_800_000_000_000, 4_102_444_800_000_000_000  # 2000 to 2100
_UNITS: Final = {"microseconds": 1_000, "milliseconds": 1_000_000, "seconds": 1_000_000_000}


def checked(items: Iterator[Item], name: str, warn: Callable[[str], None]) -> Iterator[Item]:
    """Hand on every item; say it once if the times are of our days in another unit than they were read in.

    Nothing is corrected: a clock that counts from the start of a machine gives times that look too small.
    Those that are too large for the format are refused, each by itself.
    """
    for item in itertools.islice(items, _N_LOOKED_AT):
        if isinstance(item, Drafts):  # whose times are of our days
            yield item
            break
        if not isinstance(item, SpanRecord) or FROM_NS <= item.start_ns <= TO_NS:
            yield item
            continue
        if item.start_ns >= values.MAX_NS:
            yield from map(_refused, itertools.chain([item], items))
            return
        yield item
        if said := _too_small(item):
            warn(f"{name}: {said}")
            break
    yield from items


def _refused(item: Item) -> Item:
    if not isinstance(item, SpanRecord) or item.start_ns < values.MAX_NS:
        return item
    return RefusedSpan(f"span {item.name!r}: {values.too_large(item.start_ns, item.start_ns)}")


def _too_small(span: SpanRecord) -> str | None:
    for unit, factor in _UNITS.items():
        if FROM_NS <= span.start_ns * factor <= TO_NS:
            return (
                f"span {span.name!r} starts {span.start_ns} ns after 1970, which is in 1970; as {unit} it "
                f"would be of our days. If the writer wrote {unit} where its format has another unit, every "
                f"time of this file is {factor} times too short. Nothing was corrected: look at the writer."
            )
    return None
