"""The report as Markdown: every block, and names that are no markup."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_traces import Call, many, request

from hotspan.analysis import analyse
from hotspan.exporters.reports import markdown


def test_the_whole_report(full_report, golden):
    """Every block, as a person last looked at it."""
    golden(markdown.render(full_report), "full.md")


@pytest.mark.parametrize(
    "name",
    [
        "a|b",
        "*bold*",
        "<img src=x onerror=y()>",
        "[link](http://x)",
        "@someone",
        "`code`",
        "a\nb",
        "# h",
    ],
)
def test_a_name_from_a_trace_is_no_markup(name):
    """A stage may be called anything: it is text, in its cell, and mentions nobody."""
    report = analyse(many(2, lambda k: request(k, 10, Call(name, name, 0, 10))))

    lines = markdown.render(report).splitlines()
    (row,) = [line for line in lines if line.count("|") == 9 and "100.0 %" in line]

    cell = row.split("|")[1]
    assert not set(cell) & set("<>@`*[]~\\\n")


def test_a_report_without_figures_has_no_empty_tables(full_report):
    """What is not there has no heading."""
    bare = replace(full_report, stages=(), findings=(), what_if=(), generation=type(full_report.generation)())

    text = markdown.render(bare)

    assert "| stage |" not in text
    assert "What would help" not in text
