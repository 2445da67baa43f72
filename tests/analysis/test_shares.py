"""A share of request time is the same figure wherever it is printed."""

from __future__ import annotations

import re

import pytest
from made_traces import Call, many, request

from hotspan.analysis import analyse
from hotspan.analysis.shares import Shares
from hotspan.exporters.reports import console, markdown
from hotspan.exporters.reports.screen import Screen

# Rounded one by one they are 99.9 %: retrieval, which loses most, is printed as 33.5 %.
MS = {"retrieval": 3344, "embedding": 3323, "generation": 3333}


@pytest.fixture
def report():
    """A report whose table gives a row a tenth more for the rows to be 100.0 %."""
    calls, cursor = [], 0
    for stage, ms in MS.items():
        calls.append(Call(stage, stage, cursor, cursor + ms))
        cursor += ms
    return analyse(many(100, lambda k: request(k, cursor, *calls)))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(lambda report: console.render(report, Screen(width=200), tail=True), id="console"),
        pytest.param(lambda report: markdown.render(report, tail=True), id="markdown"),
    ],
)
def test_table_finding_evidence_and_tail_have_one_figure(report, text):
    """The row of a stage, the sentence about it, its evidence and the comparison read the same."""
    row = f"{Shares(report).tenths('retrieval') / 10:.1f} %"

    found = re.findall(
        r"^\W*retrieval .* (\d+\.\d %)(?: \|)?$|part with (\d+\.\d %)|retrieval (\d+\.\d %)",
        text(report),
        re.MULTILINE,
    )

    assert [figure for groups in found for figure in groups if figure][:3] == [row] * 3


def test_the_rows_add_up_where_their_own_rounding_does_not(report):
    """Which is why a printed share is not the ratio rounded."""
    rounded = [round(1000 * row.critical_path_ratio) for row in report.stages if row.critical_path_ratio]
    shares = Shares(report)

    assert sum(rounded) != 1000
    assert sum(shares.tenths(stage) for stage in MS) + shares.tenths(None, "unattributed") == 1000


def test_a_stage_may_have_the_name_of_a_rest():
    """Users name stages as they like."""
    named = analyse(many(5, lambda k: request(k, 1000, Call("not selected", "x", 0, 600))))

    assert Shares(named).tenths("not selected") == 600
    assert Shares(named).tenths(None, "not selected") == 0
    assert Shares(named).tenths(None, "unattributed") == 400


def test_what_is_no_share_is_its_own_rounding(report):
    """A ratio that the table has not."""
    assert Shares(report).percent(0.12345) == "12.3 %"
