"""A report says what it could not use: jaegertracing/jaeger-ui#3907, vllm-project/vllm PR#26478."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

ZERO_NS = 1_700_000_000 * 10**9


def span(trace, span_id, start, end, parent=None):
    """One span of a file, times in ms; without an end when that is None."""
    return {
        "traceId": f"{trace:032x}",
        "spanId": f"{span_id:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "name": f"span {span_id}",
        "startTimeUnixNano": str(ZERO_NS + start * 10**6),
        **({} if end is None else {"endTimeUnixNano": str(ZERO_NS + end * 10**6)}),
        "attributes": [{"key": "hotspan.stage", "value": {"stringValue": "tool" if parent else "request"}}],
    }


SPANS = [
    span(1, 1, 0, 100),
    span(1, 2, 10, 20, parent=1),
    span(1, 2, 10, 20, parent=1),  # a copy
    span(1, 3, 30, 25, parent=1),  # ends before it starts
    span(1, 4, 40, None, parent=1),  # never ended
    span(1, 5, 50, 150, parent=1),  # ends after its parent
    span(2, 6, 0, 10, parent=99),  # its parent is not here
]
LOST = {
    "resource": {"attributes": [{"key": "hotspan.lost_spans", "value": {"intValue": "8"}}]},
    "scopeSpans": [],
}


@pytest.fixture
def path(tmp_path):
    """A file with one of every trouble."""
    path = tmp_path / "troubled.jsonl"
    lines = ({"resourceSpans": [{"scopeSpans": [{"spans": SPANS}]}]}, {"resourceSpans": [LOST]})
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def report(path, *options):
    """Run `hotspan report` as a user does."""
    argv = [sys.executable, "-m", "hotspan", "report", *options, str(path)]
    return subprocess.run(argv, capture_output=True, check=True, encoding="utf-8").stdout


def test_the_table_begins_with_it(path):
    """Files, spans and everything that was lost or repaired stand above the first figure."""
    head = report(path).split("\nRequest ")[0]
    for words in (
        "troubled.jsonl · 1 request · 6 spans",
        "8 spans lost by the traced program",
        "1 partial trace",
        "1 orphaned span",
        "1 unfinished span",
        "1 invalid span",
        "1 late span",
        "1 duplicated span",
    ):
        assert words in head
    assert "all complete" not in head


def test_the_json_counts_it(path):
    """The same counts for a program."""
    evidence = json.loads(report(path, "--format", "json"))["evidence"]
    expected = {
        "files": [str(path)],
        "spans": 6,
        "traces": 2,
        "requests": 1,
        "partial_traces": 1,
        "dropped_spans": 8,
        "duplicate_spans": 1,
        "orphan_spans": 1,
        "late_spans": 1,
        "invalid_spans": 1,
        "unfinished_spans": 1,
    }
    assert {key: evidence[key] for key in expected} == expected


def test_a_file_of_which_a_line_is_lost_is_not_complete(tmp_path):
    """No span is known to be missing, but who knows what stood there."""
    path = tmp_path / "half.jsonl"
    whole = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": SPANS[:1]}]}]})
    path.write_text(f"{whole}\n{whole[:90]}", encoding="utf-8")

    head = report(path).split("\nRequest ")[0]

    assert head.startswith("half.jsonl · 1 request · 1 span\n")
    assert "the line is half-written" in head
