"""Case 083: spans whose ids are empty strings."""

from __future__ import annotations

import json

from hotspan.analysis import analyse, load


def test_spans_without_ids_are_refused_one_by_one(tmp_path):
    """No giant trace with the id "": each is counted as invalid, and the reason is said."""
    spans = [
        {
            "traceId": "",
            "spanId": "",
            "parentSpanId": "",
            "name": f"s{n}",
            "startTimeUnixNano": 1,
            "endTimeUnixNano": 2,
        }
        for n in range(7)
    ]
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))

    report = analyse(load(path))

    assert report.evidence.n_traces == 0
    assert report.evidence.n_invalid_spans == 7
    assert any("no usable id" in warning for warning in report.evidence.warnings)
