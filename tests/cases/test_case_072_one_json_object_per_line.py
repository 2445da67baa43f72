"""Case 072: the spans of one trace on different lines, children first."""

from __future__ import annotations

import json

from hotspan.analysis import load

TRACE = "5b8aa5a2d2c872e8321cf37308d69df2"


def _line(name, span_id, parent_id=""):
    span = {
        "traceId": TRACE,
        "spanId": span_id,
        "parentSpanId": parent_id,
        "name": name,
        "startTimeUnixNano": "1",
        "endTimeUnixNano": "2",
    }
    return json.dumps({"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [span]}]}]})


def test_one_trace_over_four_lines_is_one_trace(tmp_path):
    """Four lines, child before parent, an empty string for no parent: one tree of four."""
    ids = {"main": "051581bf3cb55c13", "info": "5fb397be34d26b51"}
    path = tmp_path / "traces.jsonl"
    path.write_text(
        "\n".join(
            [
                _line("ohboy.do", "93564f51e1abe1c2", ids["info"]),
                _line("ohboy.do", "93564f51e1abe1c3", ids["info"]),
                _line("info", ids["info"], ids["main"]),
                _line("main", ids["main"]),
                "",
            ]
        )
    )

    (trace,) = load(path)

    (root,) = trace.roots
    assert (root.name, root.parent_id) == ("main", None)
    (info,) = trace.children_of(root)
    assert [span.name for span in trace.children_of(info)] == ["ohboy.do", "ohboy.do"]
