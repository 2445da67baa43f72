"""Text in terminal cells: cut to a width, packed into lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len

if TYPE_CHECKING:
    from collections.abc import Iterable


def cut(text: str, width: int, ellipsis: str = "…") -> str:
    """Return the text within `width` terminal cells, cut in the middle when it is longer.

    Both ends stay, because names that are alike differ at their ends.  Wide characters count as two cells;
    a pile of combining marks, which counts as none, is cut by its number of characters.
    """
    if len(text) <= 4 * width and cell_len(text) <= width:
        return text
    kept = max(width - len(ellipsis), 0)
    return (_take(text, kept - kept // 2) + ellipsis + _take(text[::-1], kept // 2)[::-1])[:width]


def _take(text: str, width: int) -> str:
    taken = 0
    for index, char in enumerate(text[: 2 * width]):
        taken += cell_len(char)
        if taken > width:
            return text[:index]
    return text[: 2 * width]


def pack(parts: Iterable[str], gap: str, width: int) -> list[str]:
    """Join parts to lines of at most `width` cells, broken only between parts.

    A part that is wider than a line stands on a line of its own, whole.
    """
    lines: list[str] = []
    for part in parts:
        if lines and cell_len(lines[-1] + gap + part) <= width:
            lines[-1] += gap + part
        else:
            lines.append(part)
    return lines
