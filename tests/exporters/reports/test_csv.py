"""The stages as CSV: what a spreadsheet reads, and what it must not run."""

from __future__ import annotations

import csv as standard
import io

import pytest
from made_traces import Call, many, request

from hotspan.analysis import analyse, parse_where, select
from hotspan.analysis.frame import COLUMNS
from hotspan.exporters.reports import csv


def rows(report):
    """The rows of a report, as a reader of CSV finds them."""
    return list(standard.DictReader(io.StringIO(csv.render(report))))


def named(name):
    """A run whose one stage has this name."""
    return many(3, lambda k: request(k, 10, Call(name, "work", 0, 8), attributes={"tenant": "=1+1"}))


def test_every_column_of_every_stage(full_report):
    """The columns of the frame; shares add up with the unattributed rest; absent is empty."""
    found = rows(full_report)

    assert list(found[0]) == list(COLUMNS)
    assert [row["stage"] for row in found][-1] == "unattributed"
    assert sum(float(row["critical_path_ratio"] or 0) for row in found) == pytest.approx(1, abs=0.001)
    assert found[0]["critical_path_ms"] == ""


@pytest.mark.parametrize("name", ['a,b "c"', "-5+2", "=cmd|' /C calc'!A0", "@SUM(A1)"])
def test_a_name_is_a_text(name):
    """Commas and quotes stay in their cell; what a spreadsheet would compute has an apostrophe before it."""
    (row,) = [row for row in rows(analyse(named(name))) if row["calls"] == "3" and row["stage"] != "request"]

    assert row["stage"].removeprefix("'") == name
    assert row["stage"][0] not in "=+-@"


def test_groups_lead_each_row():
    """The value stands in the first column; the whole run is `(all)`."""
    found = rows(analyse(named("tool"), by="tenant"))

    assert [(row["tenant"], row["stage"]) for row in found] == [
        (value, stage) for value in ("(all)", "'=1+1") for stage in ("request", "tool", "unattributed")
    ]


def test_a_value_that_is_called_as_the_whole_run_is_told_from_it():
    """A tenant may be called anything."""
    names = ("(all)", "(none)")
    traces = many(2, lambda k: request(k, 10, attributes={"tenant": names[k - 1]}))

    found = rows(analyse([*traces, request(3, 10)], by="tenant"))

    assert {row["tenant"] for row in found} == {"(all)", '"(all)"', "(none)", '"(none)"'}


def test_what_was_not_selected_is_a_row():
    """Shares add up under conditions too."""
    traces = many(3, lambda k: request(k, 10, Call("tool", "a", 0, 4), Call("rerank", "b", 4, 10)))

    found = rows(analyse(select(traces, parse_where(["stage=tool"]))))

    assert [(row["stage"], float(row["critical_path_ratio"])) for row in found] == [
        ("tool", pytest.approx(0.4)),
        ("unattributed", 0),
        ("not selected", pytest.approx(0.6)),
    ]
