"""Reports for other programs."""

from __future__ import annotations

import itertools
import json

import pytest
from made_traces import answer, many, request

from hotspan.analysis import analyse
from hotspan.exporters.reports.choose import choose
from hotspan.exporters.reports.json import render, render_request
from hotspan.testing import build_trace

ZERO_NS = 1_700_000_000 * 10**9


def test_a_report_is_its_dictionary(full_report):
    """The JSON is what `Report.to_dict` says, and nothing else."""
    assert json.loads(render(full_report)) == full_report.to_dict()


def test_a_request_has_offsets_in_ms(rag_trace):
    """The critical path tiles the request; an inference server's span has no place on this clock."""
    document = json.loads(render_request(choose([rag_trace])))
    path = document["critical_path"]
    assert document["trace_id"] == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert document["duration_ms"] == 1840.0
    assert (path[0]["start_ms"], path[-1]["end_ms"]) == (0.0, 1840.0)
    assert all(before["end_ms"] == after["start_ms"] for before, after in itertools.pairwise(path))
    assert {segment["stage"] for segment in path} == {
        "request",
        "embedding",
        "retrieval",
        "rerank",
        "tool",
        "generation",
    }
    spans = {span["name"]: span for span in document["spans"]}
    assert spans["rerank"]["start_ms"] == 52.0
    assert spans["rerank"]["critical_path_ms"] == 212.0
    assert spans["log"]["end_ms"] == 1900.0
    assert spans["llm_request"]["engine"]
    assert spans["llm_request"]["start_ms"] is None


def test_whatever_an_attribute_holds_is_strict_json():
    """Infinite numbers are null, bytes are base64, half a surrogate pair and any script survive, in ASCII."""
    values = {
        "inf": float("inf"),
        "nan": float("nan"),
        "bytes": b"\xff",
        "half": "\ud800",
        "检索": ["a", {"b": None}],
    }
    trace = build_trace(
        ("answer", ZERO_NS, ZERO_NS + 1), stages={"answer": "request"}, attributes={"answer": values}
    )
    text = render_request(choose([trace]))
    attributes = json.loads(text)["spans"][0]["attributes"]
    assert text.isascii()
    assert attributes["inf"] is None
    assert attributes["nan"] is None
    assert attributes["bytes"] == "/w=="
    assert attributes["half"] == "\ud800"
    assert attributes["检索"] == ["a", {"b": None}]


def test_deep_attributes_are_bounded():
    """A nest of 900 lists is written down to a depth, and an ellipsis below."""
    deep = []
    for _ in range(900):
        deep = [deep]
    trace = build_trace(
        ("answer", ZERO_NS, ZERO_NS + 1), stages={"answer": "request"}, attributes={"answer": {"a": deep}}
    )
    json.loads(render_request(choose([trace])))


@pytest.mark.parametrize(("n", "weak"), [(5, ["p50", "p95"]), (25, ["p95"]), (220, [])])
def test_phases_say_which_of_their_percentiles_few_calls_carry(n, weak):
    """As the distributions of the stages do: fewer than 10 samples beyond it."""
    report = analyse(many(n, lambda k: request(k, 100, answer(0, 100, ttft=40, last=90))))
    (row,) = [row for row in json.loads(render(report))["stages"] if row["stage"] == "generation"]

    known = {phase["phase"]: phase["weak"] for phase in row["phases"]}

    assert known == dict.fromkeys(("first_token_wait", "decode", "stream_overhead", "unattributed"), weak)
