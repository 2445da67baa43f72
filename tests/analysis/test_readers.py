"""Readers take OTLP/JSON in every form that writers give it, and refuse the rest with a sentence."""

from __future__ import annotations

import gzip
import io
import json
import sys

import pytest

from hotspan.analysis import analyse, load
from hotspan.tracer import semconv
from hotspan.tracer.errors import TraceFileError

TRACE = "0af7651916cd43dd8448eb211c80319c"


def _span(number, parent=None, **extra):
    return {
        "traceId": TRACE,
        "spanId": f"{number:016x}",
        **({"parentSpanId": f"{parent:016x}"} if parent else {}),
        "name": f"span {number}",
        "kind": 1,
        "startTimeUnixNano": str(1_700_000_000_000_000_000 + number),
        "endTimeUnixNano": "1700000000000001000",
        "attributes": [
            {"key": "hotspan.stage", "value": {"stringValue": "request" if not parent else "tool"}}
        ],
        **extra,
    }


def _export(*spans, key="resourceSpans", scopes="scopeSpans", resource=(("service.name", "demo"),)):
    attributes = [{"key": k, "value": {"stringValue": v}} for k, v in resource]
    return {
        key: [
            {
                "resource": {"attributes": attributes},
                scopes: [{"scope": {"name": "test"}, "spans": list(spans)}],
            }
        ]
    }


ONE = _export(_span(1), _span(2, 1))


def _lines(*documents):
    return "".join(json.dumps(document) + "\n" for document in documents)


def _read(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    reader = load(path)
    return list(reader), reader.evidence


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(_lines(ONE), id="one-line"),
        pytest.param(
            _lines(_export(_span(2, 1)), _export(_span(1))), id="child-before-parent-on-another-line"
        ),
        pytest.param(json.dumps(ONE), id="no-line-end"),
        pytest.param(json.dumps(ONE, indent=2), id="pretty-printed"),
        pytest.param(json.dumps([ONE]), id="array"),
        pytest.param(json.dumps([ONE], indent=2), id="pretty-printed-array"),
        pytest.param("[\n" + json.dumps(ONE) + "\n]", id="array-of-lines"),
        pytest.param(
            json.dumps(_export(_span(1)), indent=2) + "\n" + json.dumps(_export(_span(2, 1)), indent=2),
            id="several-pretty-printed",
        ),
        pytest.param(_lines(_export(_span(1), _span(2, 1), key="batches")), id="batches"),
        pytest.param(
            _lines(_export(_span(1), _span(2, 1), scopes="instrumentationLibrarySpans")), id="old-scopes"
        ),
        pytest.param("\ufeff" + _lines(ONE), id="byte-order-mark"),
        pytest.param("\n\n" + _lines(ONE) + "\n  \n", id="blank-lines"),
        pytest.param(_lines(ONE).replace("\n", "\r\n"), id="crlf"),
        pytest.param(gzip.compress(_lines(ONE).encode()), id="gzip"),
    ],
)
def test_every_form_of_a_file_gives_the_same_trace(tmp_path, text):
    """The form is told by content; the file's name says nothing."""
    (trace,), evidence = _read(tmp_path / "trace.txt", text)

    by_name = {span.name: span for span in trace.spans}
    assert trace.trace_id == TRACE
    assert by_name["span 2"].parent_id == by_name["span 1"].span_id
    assert by_name["span 1"].parent_id is None
    assert by_name["span 1"].resource.attributes == {"service.name": "demo"}
    assert by_name["span 1"].scope.name == "test"
    assert evidence.warnings == []


def test_spans_of_one_trace_in_several_files_come_together(tmp_path):
    """One process, one file: a request goes through several."""
    for number, parent in ((1, None), (2, 1)):
        (tmp_path / f"{number}.jsonl").write_text(_lines(_export(_span(number, parent))))

    reader = load(tmp_path / "1.jsonl", str(tmp_path / "2.jsonl"))

    (trace,) = reader
    assert len(trace) == 2
    assert reader.evidence.files == (str(tmp_path / "1.jsonl"), str(tmp_path / "2.jsonl"))


def test_standard_input_is_a_dash(monkeypatch):
    """`-` reads what is piped in, compressed or not."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(_lines(ONE).encode()))))

    (trace,) = load("-")

    assert len(trace) == 2


def test_a_half_written_last_line_costs_itself_only(tmp_path):
    """A killed process leaves it: the rest is kept, and the warning names file and line."""
    traces, evidence = _read(tmp_path / "run.jsonl", _lines(ONE) + json.dumps(ONE)[:100])

    assert [len(trace) for trace in traces] == [2]
    (warning,) = evidence.warnings
    assert warning.startswith(f"{tmp_path / 'run.jsonl'}:2: ")
    assert "half-written" in warning


def test_what_was_written_behind_a_half_written_line_is_kept(tmp_path):
    """Another process went on in the same line: its object is whole."""
    torn = json.dumps(_export(_span(9)))[:80] + json.dumps(ONE) + "\n"

    traces, evidence = _read(
        tmp_path / "run.jsonl", _lines(_export(_span(3, 1))) + torn + _lines(_export(_span(4, 1)))
    )

    assert [len(trace) for trace in traces] == [4]
    assert len(evidence.warnings) == 1


def test_a_file_whose_first_line_was_cut_off_is_read_from_the_second(tmp_path):
    """The end of a long file, as `tail -c` gives it."""
    text = json.dumps(_export(_span(9)))[50:] + "\n" + _lines(ONE)

    traces, evidence = _read(tmp_path / "tail.jsonl", text)

    assert [len(trace) for trace in traces] == [2]
    (warning,) = evidence.warnings
    assert "tail.jsonl:1: the line is not JSON" in warning


def test_a_compressed_file_that_breaks_off_is_read_to_there(tmp_path):
    """The same for a compressed file: what can be unpacked is kept."""
    whole = gzip.compress(_lines(*[_export(_span(n)) for n in range(1, 2000)]).encode())

    traces, evidence = _read(tmp_path / "run.jsonl.gz", whole[: len(whole) // 2])

    assert 0 < len(traces[0]) < 1999
    assert any("breaks off" in warning for warning in evidence.warnings)


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        pytest.param(b"", ["is empty", "flush"], id="empty"),
        pytest.param(b"\n \n", ["is empty"], id="blank"),
        pytest.param(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", ["binary data", "OTLP/JSON"], id="binary"),
        pytest.param(b"PK\x03\x04\x14\0", ["a zip archive", "not read"], id="zip"),
        pytest.param('{"resourceSpans": []}'.encode("utf-16"), ["UTF-16", "-Encoding utf8"], id="utf-16"),
        pytest.param(b"\x1f\x8b\x08\x00garbage", ["gzip", "cannot be unpacked"], id="broken-gzip"),
        pytest.param(b"hello, world\n", [":1: is not JSON", "'hello, world'"], id="text"),
        pytest.param(
            b'{"resourceSpans": [{"scopeSp', [":1: is half-written", "recorded again"], id="only-half-a-line"
        ),
        pytest.param(b'{"answer": 42}', ["no known trace format", '{"answer": 42}'], id="other-json"),
        pytest.param(b"17", ["no known trace format"], id="a-number"),
        pytest.param(
            b'{"data": [{"traceID": "1", "spans": []}]}',
            ["is Jaeger JSON, but holds no spans", "look at"],
            id="jaeger-without-spans",
        ),
        pytest.param(
            b'{"data": [], "total": 0, "errors": null}', ["holds no spans"], id="an-answer-without-traces"
        ),
        pytest.param(b'{"resourceLogs": []}', ["OTLP logs"], id="logs"),
        pytest.param(b'{"traceEvents": []}', ["Chrome trace"], id="chrome"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_where_and_the_next_step(tmp_path, content, parts):
    """One sentence that names the file, what it is, and what to do."""
    path = tmp_path / "input"
    path.write_bytes(content)

    with pytest.raises(TraceFileError) as caught:
        list(load(path))

    message = str(caught.value)
    assert message.startswith(str(path))
    assert all(part in message for part in parts), message


def test_an_empty_name_is_no_directory():
    """A variable of the shell that is not set, most likely: nothing is read from where one stands."""
    with pytest.raises(TraceFileError, match="is no file's name"):
        load("")


def test_missing_files_and_empty_directories_are_refused_at_once(tmp_path):
    """Before anything is read: the paths are what is wrong."""
    (tmp_path / "run.jsonl").write_text(_lines(ONE))
    (tmp_path / "empty").mkdir()

    with pytest.raises(TraceFileError, match="no such file"):
        load(tmp_path / "run.jsonl", tmp_path / "none.jsonl")
    with pytest.raises(TraceFileError, match="is a directory without files"):
        load(tmp_path / "empty")


VALUES = [
    pytest.param({"stringValue": ""}, "", id="empty-string"),
    pytest.param({"intValue": "-7"}, -7, id="int-as-string"),
    pytest.param({"intValue": 9007199254740993}, 9007199254740993, id="int-beyond-a-float"),
    pytest.param({"doubleValue": 0}, 0.0, id="zero"),
    pytest.param({"doubleValue": "Infinity"}, float("inf"), id="infinity"),
    pytest.param({"boolValue": False}, False, id="false"),
    pytest.param({"arrayValue": {"values": [{"intValue": "1"}, {}]}}, (1, None), id="array"),
    pytest.param({"arrayValue": {}}, (), id="empty-array"),
    pytest.param(
        {"kvlistValue": {"values": [{"key": "a", "value": {"boolValue": True}}]}}, {"a": True}, id="map"
    ),
    pytest.param({"bytesValue": "AAE="}, b"\0\1", id="bytes"),
    pytest.param({}, None, id="null"),
]


@pytest.mark.parametrize(("value", "expected"), VALUES)
def test_attribute_values_keep_their_type(tmp_path, value, expected):
    """Every kind of value that OTLP has, also where 64-bit integers are strings."""
    span = _span(1, attributes=[{"key": "k", "value": value}])

    (trace,), _ = _read(tmp_path / "run.jsonl", _lines(_export(span)))

    found = trace.spans[0].attributes["k"]
    assert found == expected
    assert type(found) is type(expected)


def test_events_links_status_and_kind_are_read(tmp_path):
    """Names of enums, numbers of enums, and numbers in strings are one thing."""
    rich = {
        "status": {"code": "STATUS_CODE_ERROR", "message": "timeout"},
        "kind": "SPAN_KIND_CLIENT",
        "events": [{"name": "exception", "timeUnixNano": "5", "attributes": []}],
        "links": [{"traceId": TRACE.upper(), "spanId": "00000000000000FF"}],
        "flags": 257,
        "traceState": "a=b",
    }
    spans = _export(_span(1, **rich), _span(2, status={"code": 2}, kind=3), _span(3, kind=99, status=None))

    (trace,), _ = _read(tmp_path / "run.jsonl", _lines(spans))

    first, second, third = trace.spans
    assert (first.status, first.status_message, first.kind) == ("error", "timeout", "client")
    assert (second.status, second.kind) == ("error", "client")
    assert (third.status, third.kind) == ("unset", "unspecified")
    assert first.events[0].time_ns == 5
    assert first.links[0][:2] == (TRACE, "00000000000000ff")
    assert (first.flags, first.trace_state) == (257, "a=b")


def test_one_bad_span_costs_itself_only(tmp_path):
    """A span whose fields are of the wrong type is left out and counted; its neighbours are read."""
    bad = _span(2, 1, startTimeUnixNano={"seconds": 5})

    traces, evidence = _read(tmp_path / "run.jsonl", _lines(_export(_span(1), bad, _span(3, 1))))

    assert [span.name for span in traces[0].spans] == ["span 1", "span 3"]
    assert evidence.n_refused_spans == 1
    report = analyse(load(tmp_path / "run.jsonl"))
    assert (report.evidence.n_spans, report.evidence.n_invalid_spans) == (3, 1)


def test_a_line_without_spans_says_how_many_its_writer_lost(tmp_path):
    """The note of a loss is durable: it is in the file, and in the evidence."""
    note = {
        "resourceSpans": [
            {
                "resource": {"attributes": [{"key": semconv.LOST_SPANS, "value": {"intValue": str(n)}}]},
                "scopeSpans": [],
            }
            for n in (5, 7)
        ]
    }
    path = tmp_path / "run.jsonl"
    path.write_text(_lines(ONE, note))

    report = analyse(load(path))

    assert report.evidence.n_dropped_spans == 12
    assert report.evidence.files == (str(path),)
    assert report.findings[0].id == "spans-lost"


@pytest.mark.parametrize(
    ("key", "says"),
    [
        pytest.param(semconv.FAULTS, "3 faults of Hotspan itself", id="faults"),
        pytest.param(semconv.BROKEN_CALLS, "3 calls failed with the worker process", id="broken-calls"),
    ],
)
def test_a_line_without_spans_says_what_went_wrong(tmp_path, key, says):
    """What the writers noted becomes one warning with the sum."""
    note = {
        "resourceSpans": [
            {"resource": {"attributes": [{"key": key, "value": {"intValue": str(n)}}]}} for n in (1, 2)
        ]
    }
    path = tmp_path / "run.jsonl"
    path.write_text(_lines(ONE, note))

    (warning,) = analyse(load(path)).evidence.warnings

    assert warning.startswith(says)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 100_000, id="open"),
        pytest.param("[" * 100_000 + "]" * 100_000, id="closed"),
        pytest.param('{"resourceSpans":' * 50_000, id="objects"),
        pytest.param('{"resourceSpans":\n' * 50_000 + "1" + "}" * 50_000, id="over-lines"),
        pytest.param('{"resourceSpans":' + "[" * 50_000 + "]" * 50_000 + "}", id="inside-a-trace-file"),
    ],
)
def test_json_that_is_nested_without_end_is_refused_with_a_sentence(tmp_path, text):
    """No depth of nesting ends in a traceback."""
    (tmp_path / "deep.json").write_text(text)

    with pytest.raises(TraceFileError, match=r"deep\.json"):
        list(load(tmp_path / "deep.json"))


def test_a_line_that_is_nested_without_end_costs_itself_only(tmp_path):
    """The lines around it are read, and it is said."""
    deep = '{"resourceSpans":[],"extra":' + "[" * 50_000 + "]" * 50_000 + "}\n"
    (trace,), evidence = _read(
        tmp_path / "a.jsonl", _lines(_export(_span(1))) + deep + _lines(_export(_span(2, 1)))
    )

    assert len(trace) == 2
    assert [":2: the line is nested too deeply" in warning for warning in evidence.warnings] == [True]


@pytest.mark.parametrize("key", ["trace", "result", "data"])
@pytest.mark.parametrize("indent", [None, 1])
def test_an_answer_of_an_api_is_read_through_its_wrapper(tmp_path, key, indent):
    """Tempo and Jaeger's third API put the export under a key of their own."""
    path = tmp_path / "answer.json"
    path.write_text(json.dumps({key: _export(_span(1))}, indent=indent))

    (trace,) = load(path)

    assert [span.name for span in trace.spans] == ["span 1"]


@pytest.mark.parametrize(
    "field", ["schemaUrl", "resource", "scopeSpans.schemaUrl", "scopeSpans.scope", "batches"]
)
def test_null_is_as_good_as_left_out(tmp_path, field):
    """Protobuf's JSON allows it for every field."""
    document = _export(_span(1))
    group = document["resourceSpans"][0]
    owner = document if field == "batches" else group["scopeSpans"][0] if "." in field else group
    owner[field.rpartition(".")[2]] = None
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps(document))

    reader = load(path)

    assert [span.name for trace in reader for span in trace.spans] == ["span 1"]
    assert not reader.evidence.warnings
