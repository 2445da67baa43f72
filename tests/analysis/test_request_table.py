"""The model calls of many requests are added up in columns as one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hotspan.analysis.call_table import blank_rows
from hotspan.analysis.columns import MAX
from hotspan.analysis.request_table import NONE, RequestColumns, RequestTable

COUNTS = st.sampled_from((NONE, NONE, 0, 1, 7, MAX - 1, MAX)) | st.integers(0, 1000)


@given(
    st.integers(1, 4).flatmap(
        lambda n: st.lists(st.lists(COUNTS, min_size=n, max_size=n), min_size=1, max_size=5)
    )
)
def test_tokens_are_summed_over_the_calls_that_say_them(counts):
    """None where no call says any; a sum that does not fit is cut."""
    n, n_calls = len(counts), len(counts[0])
    calls = blank_rows(n * n_calls).reshape(n, n_calls)
    calls["output"] = counts
    zeros, ratios = np.zeros(n, dtype=np.int64), np.full(n, np.nan)
    table = RequestTable()
    table.extend(
        RequestColumns(
            calls=calls, agents=[NONE] * n_calls, has_agent=False, depth=zeros, busy_ns=zeros, wall_ns=zeros,
            time_ratio=ratios,
        )
    )  # fmt: skip

    expected = [[tokens for tokens in row if tokens != NONE] for row in counts]
    assert list(table.output) == [min(sum(row), MAX) if row else NONE for row in expected]
    assert list(table.n_calls) == [n_calls] * n
