"""Names that come from traces, made safe to print.

A span's name, a stage, an attribute or an error's text was written by somebody else: it may hold terminal
escapes, line breaks, text that runs backwards, half a surrogate pair, or a megabyte.  Nothing of it may move
the cursor, colour the screen or break a line.
"""

from __future__ import annotations

import unicodedata
from typing import Final

UNNAMED: Final = "(no name)"

# Control, format (bidirectional overrides, zero-width marks), surrogate, private, unassigned; line and
# paragraph separators.  All act on the terminal or show nothing.
_UNPRINTABLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_JOINERS: Final = "\u200c\u200d"  # Persian, Indic scripts and emoji are spelt with them

# What an encoding without these characters gets in their place.
_ASCII: Final = str.maketrans(
    {
        "\N{EN DASH}": "-",
        "\N{EM DASH}": "-",
        "…": "..",
        "·": "|",
        "→": "->",
        "↳": "`-",
        "\N{MICRO SIGN}": "u",
        "\N{GREEK SMALL LETTER MU}": "u",
        "\N{MULTIPLICATION SIGN}": "x",
        "≤": "<=",
        "≥": ">=",
        "\N{LEFT SINGLE QUOTATION MARK}": "'",
        "\N{RIGHT SINGLE QUOTATION MARK}": "'",
        "\N{LEFT DOUBLE QUOTATION MARK}": '"',
        "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
        "█": "#",
        "░": ".",
        "▒": ":",
        "\N{NO-BREAK SPACE}": " ",
    }
)


def printable(text: str, *, keep: str = "") -> str:
    """Return the text with every character that acts instead of showing written as its escape.

    Args:
        text: Anything.
        keep: Characters that may stay as they are, such as the line breaks of a log.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(char) if char not in keep else char for char in text)


def _shown(char: str) -> str:
    if unicodedata.category(char) not in _UNPRINTABLE or char in _JOINERS:
        return char
    return char.encode("unicode_escape").decode("ascii")


def encodable(text: str, encoding: str) -> str:
    """Return the text as the encoding can hold it: symbols in plain letters, the rest as escapes."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "backslashreplace").decode(encoding)
    return text
