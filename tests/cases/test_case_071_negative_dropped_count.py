"""Case 071, reading: a writer put -1 where the protocol has an unsigned number."""

from __future__ import annotations

import json

import pytest

from hotspan.analysis import load


@pytest.mark.parametrize("count", [-1, "-1", 4294967295, None])
def test_a_dropped_count_of_any_value_does_not_make_the_file_unreadable(tmp_path, count):
    """The field is not needed: whatever is in it, the span is read."""
    span = {
        "traceId": "0af7651916cd43dd8448eb211c80319c",
        "spanId": "b7ad6b7169203331",
        "name": "search",
        "startTimeUnixNano": "10",
        "endTimeUnixNano": "20",
        "droppedAttributesCount": count,
        "droppedEventsCount": count,
        "droppedLinksCount": count,
    }
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}))

    (trace,) = load(path)

    assert trace.spans[0].name == "search"
