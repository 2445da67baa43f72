"""Which calls follow each other at once: a drawing for each branch."""

from __future__ import annotations

import pytest
from made_traces import Call, answer, request

from hotspan.analysis import analyse


def tools(*intervals, name="tool"):
    """Calls of one name."""
    return [Call("tool", name, start, end) for start, end in intervals]


def row(*calls):
    """The runs of one request: calls in them, and the time beyond each run's longest."""
    found = analyse([request(1, 1000, *calls)]).patterns.runs
    return [(run.n_calls, run.n_runs, (run.total_ns - run.longest_calls_ns) / 1e6) for run in found]


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        # |-----|-----|--|          back to back
        pytest.param(tools((0, 100), (100, 200), (200, 250)), [(3, 1, 150)], id="three-in-a-row"),
        # |-----|.|-----|           a pause of less than a tenth of the call before
        pytest.param(tools((0, 100), (109, 209)), [(2, 1, 100)], id="a-short-pause"),
        # |-----|...|-----|         somebody works on the result
        pytest.param(tools((0, 100), (150, 250)), [], id="a-pause"),
        # |-----|
        #    |-----|                at once already
        pytest.param(tools((0, 100), (50, 150)), [], id="at-once"),
        # |-----|                   beside something longer: nobody waits for them
        # |-----|-----|
        pytest.param(
            [*tools((0, 100), (100, 200)), Call("retrieval", "search", 0, 900)],
            [],
            id="off-the-critical-path",
        ),
        # |aaaaa|bbbbb|             another name may need the first one's result
        pytest.param([*tools((0, 100)), *tools((100, 200), name="other")], [], id="another-name"),
        # |-----|mmm|-----|         a model call between them
        pytest.param([*tools((0, 100), (160, 260)), answer(100, 160)], [], id="another-call-between"),
        # model calls answer each other
        pytest.param([answer(0, 400), answer(400, 800)], [], id="model-calls"),
        # two rows with a pause between them
        pytest.param(tools((0, 100), (100, 200), (400, 500), (500, 600)), [(4, 2, 200)], id="two-rows"),
    ],
)
def test_calls_in_a_row(calls, expected):
    """Same stage and name, one parent, back to back, waited for."""
    assert row(*calls) == expected


def test_a_second_try_is_no_row():
    """The first call failed: the second is not more of the same work."""
    first, second = tools((0, 100), (100, 200))
    first.status = "error"

    assert row(first, second) == []


def test_rows_are_added_up_over_requests():
    """With the number of requests and the longest row."""
    traces = [request(k, 1000, *tools(*((100 * i, 100 * i + 100) for i in range(k)))) for k in range(1, 5)]

    (found,) = analyse(traces).patterns.runs

    assert (found.n_requests, found.n_runs, found.n_calls, found.n_longest) == (3, 3, 2 + 3 + 4, 4)
