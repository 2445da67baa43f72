"""Names from traces are hostile text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotspan.exporters.reports import names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("plain name", "plain name", id="plain"),
        pytest.param("检索 🔎", "检索 🔎", id="any-script"),
        pytest.param("a\x1b[31mb", r"a\x1b[31mb", id="terminal-escape"),
        pytest.param("a\x9b31mb", r"a\x9b31mb", id="one-byte-escape"),
        pytest.param("a\r\nb\tc", r"a\r\nb\tc", id="line-breaks"),
        pytest.param("abc\u202edcba", r"abc\u202edcba", id="right-to-left-override"),
        pytest.param("a\u200bb", r"a\u200bb", id="zero-width"),
        pytest.param("a\ud800b", r"a\ud800b", id="half-a-surrogate-pair"),
        pytest.param("a\u2028b", r"a\u2028b", id="line-separator"),
        pytest.param("\u0645\u06cc\u200c\u062e", "\u0645\u06cc\u200c\u062e", id="joiners-are-spelling"),
    ],
)
def test_what_acts_on_the_terminal_is_shown_instead(text, expected):
    """Control and format characters are written as their escapes, letters of any script stay."""
    assert names.printable(text) == expected


@given(st.text())
def test_nothing_that_acts_is_left(text):
    """No category that moves the cursor or shows nothing survives, except the joiners."""
    shown = names.printable(text)
    assert all(unicodedata.category(char) not in {"Cc", "Cs", "Zl", "Zp"} for char in shown)


@pytest.mark.parametrize(
    ("text", "encoding", "expected"),
    [
        pytest.param(
            "12 µs → 3\N{MULTIPLICATION SIGN}", "ascii", "12 us -> 3x", id="symbols-have-plain-letters"
        ),
        pytest.param("12 µs", "latin-1", "12 µs", id="what-the-encoding-has-stays"),
        pytest.param("检索", "ascii", r"\u68c0\u7d22", id="letters-are-escaped"),
        pytest.param("检索", "utf-8", "检索", id="utf-8-has-all"),
        pytest.param("\ud800", "utf-8", r"\ud800", id="not-even-utf-8-has-surrogates"),
    ],
)
def test_every_encoding_can_write_it(text, encoding, expected):
    """What an encoding lacks is spelt with what it has."""
    shown = names.encodable(text, encoding)
    shown.encode(encoding)
    assert shown == expected
