"""Holds of a stream by its consumer, and whether its source went on meanwhile.

    consumer        ░░░░░░░░░░░░░░░░│  │░░░░░░
    producer   █████│               │█ │            the pull took next to nothing: the item was there already
    source     ═════ ═ ═ ═ ═ ═ ═ ═ ══            a network or an engine does not wait for the consumer

Tokens are stamped with the producer's own clock, which stands still in a hold.  That is right for a producer
that stands still too; where the source went on, the time to the next token is missing from its gap.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_HOLD_NS: Final = 1_000_000  # shorter ones are not looked at
_AT_ONCE_NS: Final = 1_000_000  # of a gap: no model is that fast, and what has arrived is
_AT_ONCE_RATIO: Final = 0.1  # of the hold before it

Holds = list[tuple[int, int]]  # tokens before the hold, all holds so far in ns; one entry for each long hold


def was_held(holds: Holds) -> bool:
    """Return whether there was a long hold after the first token; many short ones together are none."""
    return any(n_tokens and hold_ns > MIN_HOLD_NS / 2 for n_tokens, hold_ns in _lengths(holds))


def _lengths(holds: Holds) -> list[tuple[int, int]]:
    """Return the tokens before each hold, and how long it was at least."""
    pairs = pairwise([(0, 0), *holds])
    return [(n_tokens, until_ns - before_ns - MIN_HOLD_NS) for (_, before_ns), (n_tokens, until_ns) in pairs]


def n_at_once(stamps_ns: Sequence[int], holds: Holds) -> int:
    """Return how many tokens came at once after a long hold.

    Args:
        stamps_ns: Of all tokens, in order, on the producer's clock.
        holds: In order.  What lies between two entries is the hold itself and, before it, shorter ones of
            less than `MIN_HOLD_NS` together.
    """
    found = 0
    for n_tokens, hold_ns in _lengths(holds):
        if 0 < n_tokens < len(stamps_ns):
            gap_ns = stamps_ns[n_tokens] - stamps_ns[n_tokens - 1]
            found += gap_ns < min(_AT_ONCE_NS, hold_ns * _AT_ONCE_RATIO)
    return found
