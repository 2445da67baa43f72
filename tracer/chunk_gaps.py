"""The times between the chunks of one answer."""

from __future__ import annotations

from itertools import pairwise
from operator import sub
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

MAX_GAPS: Final = 1_000  # of one answer, evenly thinned above it: every k-th gap, k = ceil(n / MAX_GAPS)


def gaps_between(stamps: array[int], held: AbstractSet[int]) -> Iterable[int]:
    """Return the gaps between consecutive stamps, in order, without those that begin or end at a held one."""
    if held.isdisjoint(stamps):
        return map(sub, stamps[1:], stamps)
    return (end - start for start, end in pairwise(stamps) if start not in held and end not in held)


def thinned(gaps: Iterable[int]) -> list[int]:
    """Return at most `MAX_GAPS` of these."""
    kept = list(gaps)
    return kept[:: -(-len(kept) // MAX_GAPS)] if len(kept) > MAX_GAPS else kept
