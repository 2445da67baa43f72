"""What a report prints when it is about a part of a run, of its groups, or of its tail."""

from __future__ import annotations

import pytest
from made_traces import Call, answer, many, request
from rich.cells import cell_len

from hotspan.analysis import analyse, parse_where, select
from hotspan.exporters.reports import console
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
