"""Case 083: spans whose ids are empty strings."""

from __future__ import annotations

import json

import pytest

from hotspan.analysis import analyse, load
from hotspan.tracer.errors import UnusableTraceError


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

    reader = load(path)

    with pytest.raises(UnusableTraceError, match="no usable id"):
        analyse(reader)

    assert reader.evidence.n_refused_spans == 7
    assert any("no usable id" in warning for warning in reader.evidence.warnings)


def test_so_are_those_of_jaeger(tmp_path):
    """The same in the other dialect: seven refusals, and not one trace."""
    spans = [
        {"traceID": "", "spanID": "", "operationName": f"s{n}", "startTime": 1, "duration": 1}
        for n in range(7)
    ]
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"data": [{"traceID": "", "spans": spans, "processes": {}}]}))

    reader = load(path)

    with pytest.raises(UnusableTraceError, match="no usable id"):
        analyse(reader)

    assert reader.evidence.n_refused_spans == 7
