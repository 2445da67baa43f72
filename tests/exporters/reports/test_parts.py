"""What a report prints when it is about a part of a run, of its groups, or of its tail."""

from __future__ import annotations

import pytest
from made_traces import Call, answer, many, request
from rich.cells import cell_len

from hotspan.analysis import analyse, parse_where, select
from hotspan.analysis.shares import Shares
from hotspan.exporters.reports import console, tail_table
from hotspan.exporters.reports.screen import Screen


def run(number):
    """Two tenants, one of them slower and with longer answers; the last requests queue behind a tool."""
    is_slow = number % 2 == 0
    end = 400 if is_slow else 200
    waiting = 600 if number > 95 else 0
    calls = [
        Call("retrieval", "search", 0, 50),
        Call("tool", "look up", 50, 60 + waiting),
        answer(60 + waiting, end + waiting, ttft=20, last=end - 70, output=40 if is_slow else 10, prompt=100),
    ]
    return request(number, end + waiting, *calls, attributes={"tenant": "zoo" if is_slow else "acme"})


@pytest.fixture(scope="module")
def report():
    """A hundred such requests, by tenant, answers and searches alone."""
    traces = select(many(100, run), parse_where(["stage=generation|retrieval"]))
    return analyse(traces, by="tenant", tail=95)


@pytest.mark.parametrize(("width", "name"), [(80, "parts-80.txt"), (40, "parts-40.txt")])
def test_what_is_printed(report, golden, width, name):
    """The condition and what shares mean, the row of the rest, the tail, and a block of each value."""
    golden(console.render(report, Screen(width=width), tail=True), name)


@pytest.mark.parametrize("width", [20, 33, 60, 120])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_no_line_is_wider_than_the_screen(report, width, encoding):
    """Every block fits."""
    text = console.render(report, Screen(width=width, encoding=encoding), tail=True)

    assert max(map(cell_len, text.splitlines())) <= width
    text.encode(encoding)


def failing(number, *, ms=100.0):
    """A request with a model call that failed, and one of `ms` that succeeded after it."""
    return request(
        number,
        50 + ms,
        answer(0, 50, status="error", name="failed"),
        answer(50, 50 + ms, ttft=ms / 2, last=ms),
    )


def test_the_tails_phases_add_up_to_their_stage_with_a_rest():
    """Calls that failed have no phases; their time is in the stage's figures all the same."""
    report = analyse([failing(k, ms=400 if k == 20 else 100) for k in range(1, 21)], tail=95)
    found = {name: cells for name, _, cells in tail_table.rows(report.tail, Shares(report), 4)}

    assert found["generation"] == ["165 ms", "450 ms", "100.0 %", "100.0 %"]
    assert found[" first_token_wait"][:2] == ["57.5 ms", "200 ms"]
    assert found[" decode"][:2] == ["57.5 ms", "200 ms"]
    assert found[" rest"] == ["50.0 ms", "50.0 ms", "30.3 %", "11.1 %"]


def test_a_tail_without_failed_calls_has_no_rest():
    """The phases say it all."""
    report = analyse([request(k, 100, answer(0, 100, ttft=40, last=100)) for k in range(1, 21)])

    assert " rest" not in {name for name, _, _ in tail_table.rows(report.tail, Shares(report), 4)}
