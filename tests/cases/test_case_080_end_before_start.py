"""Case 080: spans that end before they start, or have no end."""

from __future__ import annotations

import json

import pytest

from hotspan.analysis import analyse, load
from hotspan.exporters.reports import waterfall
from hotspan.exporters.reports.choose import choose
from hotspan.exporters.reports.json import render_request
from hotspan.exporters.reports.screen import Screen

START = 1_700_000_000_000_000_000


def _span(number, start, end, parent=None):
    return {
        "traceId": "0af7651916cd43dd8448eb211c80319c",
        "spanId": f"{number:016x}",
        "parentSpanId": f"{parent:016x}" if parent else None,
        "name": "search" if parent else "request",
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": end,
        "attributes": [
            {"key": "hotspan.stage", "value": {"stringValue": "retrieval" if parent else "request"}}
        ],
    }


@pytest.mark.parametrize(
    ("start", "end", "counted"),
    [
        pytest.param(START + 50, str(START + 40), (1, 0), id="backwards"),
        pytest.param(START + 50, "0", (0, 1), id="end-zero"),
        pytest.param(START + 50, None, (0, 1), id="end-missing"),
        pytest.param(0, str(START + 40), (1, 0), id="start-missing"),
    ],
)
def test_it_is_counted_and_in_no_percentile(tmp_path, start, end, counted):
    """Neither 585 million years nor a negative time: the span is left out, and said."""
    spans = [
        _span(1, START, str(START + 100)),
        _span(2, START + 10, str(START + 30), 1),
        _span(3, start, end, 1),
    ]
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))

    report = analyse(load(path))

    assert (report.evidence.n_invalid_spans, report.evidence.n_unfinished_spans) == counted
    (row,) = [row for row in report.stages if row.stage == "retrieval"]
    assert (row.n_calls, row.duration_ns.n, row.duration_ns.max) == (1, 1, 20)
    assert report.request.duration_ns.max == 100


def test_show_names_what_it_does_not_draw(tmp_path):
    """An unfinished span is shown as one, by its name; one of another request is not."""
    spans = [
        _span(1, START, str(START + 100)),
        _span(2, START + 10, "0", 1),
        _span(3, START + 50, str(START + 40), 2),
        _span(4, START + 20, str(START + 30), 2),
        _span(5, START, str(START + 50)),
        _span(6, START + 10, "0", 5),
    ]
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))

    view = choose(load(path))
    text = waterfall.render(view, Screen())

    assert [shown.span.span_id for shown in view.spans] == [f"{number:016x}" for number in (1, 4)]
    assert "! 1 unfinished span, not drawn: search\n" in text
    assert "! 1 span with an impossible time, not drawn: search\n" in text
    found = {span["span_id"][-1]: span["reason"] for span in json.loads(render_request(view))["left_out"]}
    assert found == {"2": "unfinished", "3": "invalid"}
