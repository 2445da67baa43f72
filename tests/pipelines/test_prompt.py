"""Prompts under a token budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotspan.pipelines.prompt import cut, fit, join


@pytest.mark.parametrize(
    ("texts", "budget", "expected"),
    [
        pytest.param(["aaaa", "bbb", "cc"], 9, ["aaaa", "bbb"], id="as-many-as-fit"),
        pytest.param(["aaaa", "bbbbbbbbbb", "cc"], 8, ["aaaa", "cc"], id="a-long-one-is-passed-over"),
        pytest.param(["aaaaaaaa", "bb"], 4, ["bb"], id="first-too-long"),
        pytest.param(["aaaaaaaa", "bbbbbbbb"], 3, ["aaa"], id="none-fits-so-the-first-is-cut"),
        pytest.param([], 5, [], id="nothing"),
    ],
)
def test_fit(texts, budget, expected):
    """The most important texts that fit together, in order; never nothing where there is a text."""
    assert fit(texts, budget, len) == expected


@given(st.lists(st.text(max_size=40), max_size=8), st.integers(1, 60))
def test_the_budget_holds(texts, budget):
    """What is chosen has at most `budget` tokens, joined as it will be sent."""
    assert len(join(fit(texts, budget, len))) <= budget


@given(st.text(max_size=40), st.integers(0, 60))
def test_cut_is_the_longest_start_that_fits(text, budget):
    """The start of the text, as long as the budget allows."""
    assert cut(text, budget, len) == text[:budget]
