"""Whether times are in the unit that their format has: some write microseconds where nanoseconds belong."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from hotspan.tracer.record import SpanRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hotspan.analysis.readers.items import Item

_N_LOOKED_AT: Final = 1000  # a writer has one unit
_FROM_NS, _TO_NS = 946_684_800_000_000_000, 4_102_444_800_000_000_000  # 2000 to 2100
_TOO_SMALL: Final = {"microseconds": 1_000, "milliseconds": 1_000_000}


def checked(items: Iterator[Item], name: str, warn: Callable[[str], None]) -> Iterator[Item]:
    """Hand on every item; say it once if the times are of our days in another unit than they were read in.

    Nothing is corrected: a clock that counts from the start of a machine gives such times too.
    """
    for item in itertools.islice(items, _N_LOOKED_AT):
        said = _wrong_unit(item) if isinstance(item, SpanRecord) else None
        yield item
        if said:
            warn(f"{name}: {said}")
            break
    yield from items


def _wrong_unit(span: SpanRecord) -> str | None:
    if _FROM_NS <= span.start_ns <= _TO_NS:
        return None
    for unit, factor in _TOO_SMALL.items():
        if _FROM_NS <= span.start_ns * factor <= _TO_NS:
            return (
                f"span {span.name!r} starts {span.start_ns} ns after 1970, which is in 1970; as {unit} it "
                f"would be of our days. If the writer wrote {unit} where its format has another unit, every "
                f"time of this file is {factor} times too short. Nothing was corrected: look at the writer."
            )
    return None
