"""One bad field costs that field in every dialect: the span is kept, and what was left out is said."""

from __future__ import annotations

import json
import math

import dialect_files as files
import pytest
from dialect_files import CHAT, ROOT, SEARCH

from hotspan.analysis import load
from hotspan.analysis.readers import framing

# Dialect -> the keys of a span's fields: parent, end, status, events, time of an event.
FIELDS = {
    "phoenix-spans": ("parent_id", "end_time", "status_code", "events", "timestamp"),
    "phoenix-otlp": ("parent_span_id", "end_time_unix_nano", "status", "events", "time_unix_nano"),
    "phoenix-frame": ("parent_id", "end_time", "status_code", "events", "timestamp"),
    "mlflow-traces": ("parent_span_id", "end_time_unix_nano", "status", "events", "time_unix_nano"),
    "mlflow-2": ("parent_id", "end_time", "status_code", "events", "timestamp"),
    "langsmith-lines": ("parent_run_id", "end_time", None, "events", "time"),
    "console": ("parent_id", "end_time", "status", "events", "timestamp"),
    "jaeger-trace": ("parentSpanID", "duration", None, "logs", "timestamp"),
}


def _documents(name):
    make, _ = files.FILES[name]
    found = framing.values(iter([make().encode()]))
    return [json.loads(each.text) for each in found if each.text[:1] == b"{"]


def _objects(value):
    """Yield every object of a document, the outer ones first."""
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _objects(inner)


def _read(tmp_path, name, key, value):
    """Read a file of the dialect in which `key` holds `value` wherever it stands."""
    documents = _documents(name)
    changed = [found for document in documents for found in _objects(document) if key in found]
    for found in changed:
        found[key] = value
    if not changed:
        for document in documents:
            for span in document["spans"]:
                span[key] = value
    path = tmp_path / "traces"
    path.write_text("\n".join(map(json.dumps, documents)))
    reader = load(path)
    spans = {span.span_id: span for trace in reader for span in trace.spans}
    return spans, [warning for warning in reader.evidence.warnings if "left out. It begins" not in warning]


def _cases(place):
    return [pytest.param(name, keys[place], id=name) for name, keys in FIELDS.items() if keys[place]]


WRONG = [pytest.param(value, id=type(value).__name__) for value in ([1], {"a": 1}, True)]


@pytest.mark.parametrize("value", [*WRONG, pytest.param("soon", id="text"), pytest.param(1e300, id="huge")])
@pytest.mark.parametrize(("name", "key"), _cases(1))
def test_an_end_that_is_no_time_leaves_the_span_unfinished(tmp_path, name, key, value):
    """What else the span says is kept; the key is named, once for the file."""
    spans, warnings = _read(tmp_path, name, key, value)

    assert {span_id: span.name for span_id, span in spans.items()} == files.NAMES
    assert {span.end_ns for span in spans.values()} == {None}
    (warning,) = warnings
    assert f"{key} of a " in warning
    assert "the spans are kept without it" in warning


@pytest.mark.parametrize("value", [None, math.nan])
@pytest.mark.parametrize(("name", "key"), _cases(1))
def test_an_end_that_is_not_there_is_not_said(tmp_path, name, key, value):
    """`null`, and what data frames write for it: the span has not ended, as it says."""
    spans, warnings = _read(tmp_path, name, key, value)

    assert {span.end_ns for span in spans.values()} == {None}
    assert warnings == []


@pytest.mark.parametrize("value", [*WRONG, pytest.param("nobody", id="text")])
@pytest.mark.parametrize(("name", "key"), _cases(0))
def test_a_parent_that_is_no_id_is_a_parent_nobody_can_find(tmp_path, name, key, value):
    """Never none: the span would be a request of its own."""
    spans, warnings = _read(tmp_path, name, key, value)

    assert len(spans) == 3
    assert all(spans[span_id].parent_id not in {None, ROOT, SEARCH, CHAT} for span_id in (SEARCH, CHAT))
    assert any("its parent is missing" in warning for warning in warnings)


@pytest.mark.parametrize("value", [[1], "FATAL"])
@pytest.mark.parametrize(("name", "key"), _cases(2))
def test_a_status_that_is_none_is_unset_and_said(tmp_path, name, key, value):
    """An unknown word is no success."""
    spans, warnings = _read(tmp_path, name, key, value)

    assert {span.status for span in spans.values()} == {"unset"}
    assert len(warnings) == 1 or name == "phoenix-otlp"
    assert "status" in warnings[0]


@pytest.mark.parametrize("value", ["x", 5, [None], [5, "x"]])
@pytest.mark.parametrize(("name", "key"), _cases(3))
def test_events_that_are_none_cost_themselves_only(tmp_path, name, key, value):
    """The list, or what is wrong in it."""
    spans, warnings = _read(tmp_path, name, key, value)

    assert len(spans) == 3
    assert all(span.end_ns for span in spans.values())
    assert key in warnings[0]


@pytest.mark.parametrize(("name", "key"), _cases(4))
def test_an_event_whose_time_is_none_is_left_out_and_said(tmp_path, name, key):
    """An event without a time says nothing."""
    spans, warnings = _read(tmp_path, name, key, "noon")

    assert [event for event in spans[CHAT].events if event.name == "new_token"] == []
    assert f"{key} of " in warnings[0]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("jaeger-trace", "spans"),
        ("jaeger-page", "spans"),
        ("phoenix-traces", "spans"),
        ("mlflow-traces", "spans"),
        ("langsmith-tree", "child_runs"),
    ],
)
def test_a_span_that_is_no_object_costs_itself_only(tmp_path, name, key):
    """It is counted as one that cannot be used: its neighbours are read."""
    documents = _documents(name)
    (spans,) = [found[key] for found in _objects(documents[0]) if found.get(key)]
    spans[0] = None
    path = tmp_path / "traces"
    path.write_text("\n".join(map(json.dumps, documents)))
    reader = load(path)

    (trace,) = reader

    assert len(trace.spans) == 2
    assert reader.evidence.n_refused_spans == 1
    assert "has no usable id" in reader.evidence.warnings[0]


def test_a_tag_that_is_none_costs_itself_only(tmp_path):
    """Jaeger's tags, of spans and of processes: the others say what they say."""
    trace = files.jaeger_trace()
    for span in trace["spans"]:
        span["tags"] = [None, 5, *span["tags"]]
    trace["processes"]["p1"]["tags"].append("x")
    path = tmp_path / "traces"
    path.write_text(json.dumps(trace))
    reader = load(path)

    (found,) = reader

    chat = found.by_id[CHAT]
    assert (chat.kind, chat.status, chat.resource.attributes["process.pid"]) == ("client", "error", 7)
    assert {warning.partition(": ")[2].partition(",")[0] for warning in reader.evidence.warnings} == {
        "one of the tags of a span cannot be read",
        "one of the tags of a process cannot be read; the spans are kept without it",
    }


def test_a_reference_of_an_unknown_type_is_a_link_and_said(tmp_path):
    """Not a parent: what else it could be nobody knows."""
    spans, warnings = _read(tmp_path, "jaeger-trace", "refType", 5)

    assert [link.span_id for link in spans[CHAT].links] == [ROOT]
    assert "the type of a reference cannot be read" in warnings[0]


def test_pairs_that_are_none_cost_themselves_only(tmp_path):
    """OTLP's pairs, as Phoenix's API has them."""
    documents = _documents("phoenix-otlp")
    chat = documents[0]
    chat["attributes"] += [
        None,
        {"key": 7},
        {"key": "n", "value": 5},
        {"key": "ok", "value": {"int_value": 1}},
    ]
    path = tmp_path / "traces"
    path.write_text("\n".join(map(json.dumps, documents)))
    reader = load(path)

    (trace,) = reader

    assert trace.by_id[CHAT].attributes == {"llm.model_name": "tiny", "ok": 1}
    assert "one of the attributes of a span cannot be read" in reader.evidence.warnings[0]


def test_a_row_of_a_table_without_a_name_is_a_span(tmp_path):
    """The other columns have it, whatever happened to the column of names."""
    spans, warnings = _read(tmp_path, "phoenix-frame-columns", "name", 5)

    assert set(spans) == set(files.NAMES)
    assert {span.name for span in spans.values()} == {""}
    assert "name of a table cannot be read" in warnings[0]


def test_a_run_whose_texts_are_no_json_keeps_what_else_it_says(tmp_path):
    """LangSmith's tables have `extra` and `outputs` as JSON texts."""
    spans, warnings = _read(tmp_path, "langsmith-lines", "extra", "{half")

    assert spans[CHAT].attributes["gen_ai.usage.input_tokens"] == 12
    assert "extra of a run cannot be read" in warnings[0]


def test_a_chunk_whose_time_is_none_is_left_out_and_said(tmp_path):
    """A step of NeMo Agent Toolkit is made of several lines: a bad one costs what it says."""
    documents = _documents("nat")
    (chunk,) = [found for found in documents if found["payload"]["data"]["chunk"]]
    chunk["payload"]["event_timestamp"] = "noon"
    path = tmp_path / "traces"
    path.write_text("\n".join(map(json.dumps, documents)))
    reader = load(path)

    (trace,) = reader

    assert [event.name for event in trace.by_id[CHAT].events] == ["new_token"]
    assert "event_timestamp of a step cannot be read" in reader.evidence.warnings[0]


ROW = {
    "trace_id": files.TRACE,
    "span_id": ROOT,
    "name": "answer",
    "start_ns": files.START_US * 1000,
    "end_ns": files.START_US * 1000 + 1,
    "attributes": '{"a": 1}',
    "events": '[{"name": "e", "time_ns": 1790000000123456000}]',
}


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("attributes", "{half", "attributes of a span"),
        ("events", "[1", "events of a span"),
        ("events", '[{"name": "e", "time_ns": "noon"}]', "time_ns of an event"),
        ("links", "[5]", "one of the links of a span"),
        ("resource", 5, "resource of a span"),
        ("scope", "x", "scope of a span"),
        ("end_ns", "soon", "end_ns of a span"),
        ("kind", "sideways", "the kind 'sideways'"),
    ],
)
def test_a_bad_column_of_a_table_costs_itself_only(tmp_path, column, value, said):
    """Hotspan's own table, of which every structure may be a JSON text."""
    path = tmp_path / "traces"
    path.write_text(json.dumps(ROW | {column: value}))
    reader = load(path)

    (trace,) = reader

    (span,) = trace.spans
    assert span.start_ns == ROW["start_ns"]
    assert column == "attributes" or span.attributes == {"a": 1}
    (warning,) = reader.evidence.warnings
    assert said in warning
