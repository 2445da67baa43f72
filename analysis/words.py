"""Numbers in words, one function each: the same figure reads the same in a table, a finding and a list."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def significant(value: float) -> str:
    """Return a number with three significant digits, without an exponent, thousands separated.

    Zeros at the end stay, because they are digits that were measured: 5.1 is `5.10`, 0.05 is `0.0500`.
    Zero itself is `0`.
    """
    if value == 0:
        return "0"
    rounded = float(f"{value:.3g}")  # first, so that 9.996 counts its digits as 10.0
    decimals = max(0, 2 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:,.{decimals}f}"


def percent(ratio: float) -> str:
    """Return a ratio as percent with one decimal: `78.1 %`."""
    return f"{100 * ratio:,.1f} %"


def tenths_of_percent(ratios: Sequence[float], total: int | None = None) -> list[int]:
    """Round ratios to tenths of a percent so that they add up as printed.

    Largest remainder: each is rounded down, and the tenths that are missing go to those that lost most.

    Args:
        ratios: Shares of one whole, each in [0, 1].
        total: What the tenths add up to; None for the rounded sum of the ratios (1000 where that is 1).

    Returns:
        One number per ratio, at most one away from it when `total` is their rounded sum.
    """
    exact = [1000 * ratio for ratio in ratios]
    tenths = [math.floor(value) for value in exact]
    missing = (round(math.fsum(exact)) if total is None else total) - sum(tenths)
    by_loss = sorted(range(len(exact)), key=lambda i: (tenths[i] - exact[i], i))
    for turn in range(min(max(missing, 0), len(exact))):
        tenths[by_loss[turn]] += 1
    return tenths
