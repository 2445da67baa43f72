"""Text in terminal cells."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from hotspan.exporters.reports import names
from hotspan.exporters.reports.widths import cut, pack


@given(st.text(max_size=60), st.integers(min_value=1, max_value=40))
def test_a_cut_name_fits_and_keeps_both_ends(text, width):
    """The cut name is never wider than asked for, and a name that fits is never cut."""
    text = names.printable(text)
    shown = cut(text, width)
    assert cell_len(shown) <= width
    assert shown == text or cell_len(text) > width or len(text) > 4 * width


def test_a_name_is_cut_in_the_middle():
    """Names that are alike differ at their ends, so that both ends stay."""
    assert cut("retrieval-europe-west-1", 11) == "retri…est-1"


def test_a_megabyte_of_combining_marks_is_cut_too():
    """A pile of marks takes no width, and is bounded all the same."""
    assert len(cut("a" + "\u0301" * 1_000_000, 10)) <= 50


def test_lines_break_between_parts_only():
    """A figure is never parted from its unit."""
    assert pack(["p50 1.84 s", "p95 3.92 s", "0 errors"], "   ", 24) == [
        "p50 1.84 s   p95 3.92 s",
        "0 errors",
    ]
