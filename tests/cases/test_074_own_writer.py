"""Our own file has hex ids, enum numbers, 64-bit integers as strings, and no negative count (071)."""

import json

from hotspan.exporters.files import FileExporter
from hotspan.tracer.record import SpanRecord


def test_the_writer_spells_ids_enums_and_integers_as_otlp_does(tmp_path):
    """Another reader has to guess nothing: no base64, no enum names, no number that a double cannot hold."""
    path = tmp_path / "run.jsonl"
    span = SpanRecord(
        "5b8efff798038103d269b633813fc60c",
        "eee19b7ec3c1b174",
        "eee19b7ec3c1b173",
        "s",
        1_544_712_660_000_000_000,
        1_544_712_661_000_000_000,
        {"n": 2**62},
        kind="server",
        status="ok",
        n_dropped_attributes=-1,
        n_dropped_events=-1,
        n_dropped_links=-1,
    )
    FileExporter(path).export([span])

    (written,) = json.loads(path.read_bytes())["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert written == {
        "traceId": "5b8efff798038103d269b633813fc60c",
        "spanId": "eee19b7ec3c1b174",
        "parentSpanId": "eee19b7ec3c1b173",
        "name": "s",
        "kind": 2,
        "startTimeUnixNano": "1544712660000000000",
        "endTimeUnixNano": "1544712661000000000",
        "attributes": [{"key": "n", "value": {"intValue": "4611686018427387904"}}],
        "status": {"code": 1},
    }
