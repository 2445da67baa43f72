"""Case 079: a parent that is not in the file."""

from __future__ import annotations

import csv
import io

import pytest

from hotspan.analysis import analyse, parse_where, select
from hotspan.exporters.reports import console, markdown, waterfall
from hotspan.exporters.reports import csv as csv_report
from hotspan.exporters.reports.choose import choose
from hotspan.exporters.reports.figures import ABSENT
from hotspan.exporters.reports.screen import Screen
from hotspan.tracer.errors import UnusableTraceError
from hotspan.tracer.record import SpanRecord, Trace
from hotspan.tracer.testing import build_trace

WHOLE = build_trace(("root", 0, 100), stages={"root": "request"}, trace_id="1")
PART = build_trace(
    ("search", 0, 5000, "elsewhere"),
    ("POST", 10, 20, "search"),
    ("answer", 20, 30, "search"),
    stages={"search": "retrieval", "answer": "generation"},
    trace_id="2",
)
RUN = build_trace(("root", 0, 100), ("look", 0, 40, "root"), stages={"root": "request", "look": "retrieval"})
TIMES_OF_REQUESTS = ("wall_ms", "self_ms", "critical_path_ms", "critical_path_ratio")


def test_a_partial_trace_is_counted_and_no_request():
    """Its calls are figures of their stage; its root's duration is no request's."""
    report = analyse([WHOLE, PART])

    assert (report.evidence.n_traces, report.evidence.n_partial_traces, report.evidence.n_orphan_spans) == (
        2,
        1,
        1,
    )
    assert (report.request.n, report.request.duration_ns.max) == (1, 100)
    (row,) = [row for row in report.stages if row.stage == "retrieval"]
    assert (row.n_calls, row.duration_ns.max, row.busy_ns) == (1, 5000, 5000)
    assert (row.wall_ns, row.self_ns, row.critical_path_ns, row.critical_path_ratio) == (None,) * 4
    assert row.calls_per_request.max == 0


def _with_root(end_ns):
    """Return the parts of a request together with its root, which ends so."""
    root = SpanRecord(PART.trace_id, f"{9:016x}", None, "root", 0, end_ns)
    top, *rest = PART.spans
    return Trace(PART.trace_id, [root, top._replace(parent_id=root.span_id), *rest])


@pytest.mark.parametrize(
    ("end_ns", "fault", "more", "next_step"),
    [
        pytest.param(
            None, "never ended", ": the program died or runs on, or the file was cut",
            "let the requests end before the program does", id="never-ended",
        ),
        pytest.param(-5, "has an impossible time", "", "both its root and a span", id="impossible"),
    ],
)  # fmt: skip
def test_a_root_that_is_there_is_not_called_missing(end_ns, fault, more, next_step):
    """Nobody is sent to look for it in another file, neither by the report nor by what shows a request."""
    part = _with_root(end_ns)

    report = analyse([part])
    text = console.render(report, Screen(width=250))

    assert f"1 partial trace (the root {fault}{more}): counted per stage" in text
    assert "the root is missing" not in text
    assert any(next_step in warning for warning in report.evidence.warnings)
    with pytest.raises(UnusableTraceError, match=f"partial: its root {fault}"):
        choose([part])
    assert f"partial: the root {fault}" in waterfall.render(choose([part], PART.trace_id), Screen())


@pytest.mark.parametrize("traces", [[PART], [WHOLE, PART]], ids=["alone", "beside-a-request"])
def test_what_lies_in_no_request_has_no_time_of_one(traces):
    """Not 0 but nothing, in every form, and one line says why."""
    report = analyse(traces)
    rows = {row["stage"]: row for row in report.to_dict()["stages"]}
    cells = {row["stage"]: row for row in csv.DictReader(io.StringIO(csv_report.render(report)))}
    frame = report.stages.columns()

    for stage in ("retrieval", "generation"):
        place = frame["stage"].index(stage)
        assert [rows[stage][key] for key in TIMES_OF_REQUESTS] == [None] * 4
        assert [cells[stage][key] for key in TIMES_OF_REQUESTS] == [""] * 4
        assert [frame[key][place] for key in TIMES_OF_REQUESTS] == [None] * 4
    assert [phase["critical_path_ratio"] for phase in rows["generation"]["phases"]] == [None]
    (reason,) = [said for said in report.evidence.warnings if "outside all complete requests" in said]
    assert "generation, retrieval" in reason


@pytest.mark.parametrize("traces", [[PART], [WHOLE, PART]], ids=["alone", "beside-a-request"])
def test_what_lies_in_no_request_is_a_dash(traces):
    """In the table and as Markdown: self time and share are not measured, and the legend says so."""
    report = analyse(traces)
    table, page = console.render(report, Screen(width=200)), markdown.render(report)

    (line,) = [line.split() for line in table.splitlines() if line.startswith("retrieval")]
    (row,) = [line.split(" | ") for line in page.splitlines() if line.startswith("| retrieval")]
    assert line[-2:] == [ABSENT, ABSENT]
    assert row[-2:] == [ABSENT, f"{ABSENT} |"]
    for text in (table, page):
        assert f"{ABSENT} not measured" in text
        assert "outside all complete requests" in text


def test_without_a_request_nothing_is_unattributed_or_left_out():
    """What shares are of is not known; with a request that has none of it, it is 0."""
    alone, beside = (analyse(select(t, parse_where(["stage=retrieval"]))) for t in ([PART], [RUN, PART]))

    empty = {"critical_path_ms": None, "critical_path_ratio": None}
    assert alone.to_dict()["unattributed"] == empty == alone.to_dict()["where"]["not_selected"]
    assert (beside.unattributed.critical_path_ns, beside.selection.other_ns) == (60, 0)
