"""Case 078: the same span twice, and two spans under one id."""

from __future__ import annotations

import json

from hotspan.analysis import analyse, load
from hotspan.tracer.record import SpanRecord, Trace


def _export():
    def span(number, parent):
        return {
            "traceId": "0af7651916cd43dd8448eb211c80319c",
            "spanId": f"{number:016x}",
            "parentSpanId": f"{parent:016x}" if parent else "",
            "name": f"span {number}",
            "startTimeUnixNano": str(number),
            "endTimeUnixNano": str(100 - number),
            "attributes": [
                {"key": "hotspan.stage", "value": {"stringValue": "tool" if parent else "request"}}
            ],
        }

    return {"resourceSpans": [{"scopeSpans": [{"spans": [span(1, 0), span(2, 1)]}]}]}


def test_loading_overlapping_files_doubles_nothing(tmp_path):
    """A file and its copy: the figures of one, and the copies counted."""
    for name in ("run.jsonl", "rotated.jsonl"):
        (tmp_path / name).write_text(json.dumps(_export()) + "\n")

    once, twice = (
        analyse(load(*(tmp_path / name for name in names)))
        for names in (["run.jsonl"], ["run.jsonl", "rotated.jsonl"])
    )

    assert (once.evidence.n_duplicate_spans, twice.evidence.n_duplicate_spans) == (0, 2)
    assert (once.stages, once.request) == (twice.stages, twice.request)
    assert twice.evidence.n_spans == 2


def test_different_spans_under_one_id_are_both_kept():
    """Client and server of one call share an id in some systems: neither is dropped, and it is said."""
    client = SpanRecord("1", "a", None, "GET", 0, 100, {"hotspan.stage": "request"}, kind="client")
    server = client._replace(name="handle", start_ns=10, end_ns=90, kind="server", parent_id="a")
    child = SpanRecord("1", "b", "a", "work", 20, 30, {"hotspan.stage": "tool"})

    report = analyse([Trace("1", [client, server, child])])

    assert (report.evidence.n_same_id_spans, report.evidence.n_duplicate_spans) == (2, 0)
    assert report.evidence.n_spans == 3
    assert report.request.duration_ns.max == 100
