"""Case 074: OTLP/JSON as generic protobuf printers write it."""

from __future__ import annotations

import base64
import json

import pytest

from hotspan.analysis import load

TRACE, ROOT, CHILD = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7"


def _base64(digits):
    return base64.b64encode(bytes.fromhex(digits)).decode()


def _camel():
    def span(span_id, parent_id):
        return {
            "traceId": _base64(TRACE),
            "spanId": _base64(span_id),
            "parentSpanId": _base64(parent_id) if parent_id else "",
            "name": span_id,
            "kind": "SPAN_KIND_SERVER",
            "startTimeUnixNano": "1700000000000000000",
            "endTimeUnixNano": 1700000000000000500,
            "status": {"code": "STATUS_CODE_OK"},
            "attributes": [{"key": "snake_case_key", "value": {"intValue": 3}}],
        }

    return {"resourceSpans": [{"scopeSpans": [{"spans": [span(CHILD, ROOT), span(ROOT, None)]}]}]}


def _snake(value):
    if isinstance(value, list):
        return [_snake(item) for item in value]
    if isinstance(value, dict):
        return {
            "".join(f"_{c.lower()}" if c.isupper() else c for c in key): _snake(v) for key, v in value.items()
        }
    return value


@pytest.mark.parametrize("spelling", [_camel, lambda: _snake(_camel())], ids=["camelCase", "snake_case"])
def test_ids_are_decoded_to_hex_and_the_tree_is_the_same(tmp_path, spelling):
    """Base64 ids, names of enums, numbers for strings, either spelling of the keys."""
    path = tmp_path / "traces.json"
    path.write_text(json.dumps(spelling()))

    (trace,) = load(path)

    assert trace.trace_id == TRACE
    (root,) = trace.roots
    assert (root.span_id, root.kind, root.status, root.duration_ns) == (ROOT, "server", "ok", 500)
    assert [span.span_id for span in trace.children_of(root)] == [CHILD]
    assert root.attributes == {"snake_case_key": 3}
