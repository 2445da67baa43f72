"""Text under a token budget, counted by the engine that will read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def fit(texts: Sequence[str], budget: int, count: Callable[[str], int]) -> list[str]:
    """Return the texts, in order, that fit into a budget of tokens together.

    One that does not fit is passed over, so that a shorter one behind it may; where not even one fits, the
    first is cut.

    Args:
        texts: Most important first.
        budget: Tokens, of the texts joined by blank lines; at least 1.
        count: How many tokens a text has.
    """
    chosen: list[str] = []
    for text in texts:
        if count(join([*chosen, text])) <= budget:
            chosen.append(text)
    return chosen or [cut(text, budget, count) for text in texts[:1]]


def join(texts: Sequence[str]) -> str:
    """Return the texts with a blank line between them."""
    return "\n\n".join(texts)


def cut(text: str, budget: int, count: Callable[[str], int]) -> str:
    """Return the start of a text that has at most `budget` tokens, by bisection on its length."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if count(text[:middle]) <= budget:
            low = middle
        else:
            high = middle - 1
    return text[:low]
