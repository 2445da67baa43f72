"""One bad field of a span costs that field: the span is kept, and what was left out is said."""

from __future__ import annotations

import json

import dialect_files as files
import pytest

from hotspan.analysis import analyse, load
from hotspan.analysis.readers import values
from hotspan.tracer.errors import UnusableTraceError
from hotspan.tracer.record import STATUSES

START_NS = files.START_US * 1000


def _span(number=1, **more):
    span = {
        "traceId": files.TRACE,
        "spanId": f"{number:016x}",
        "name": "work",
        "startTimeUnixNano": str(START_NS),
        "endTimeUnixNano": str(START_NS + 1_000_000),
    }
    return span | more


def _written(tmp_path, *spans):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    return path


def _only_span(reader):
    (trace,) = reader
    (span,) = trace.spans
    return span


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        pytest.param(spelling, expected, id=str(spelling))
        for expected, spellings in {
            "error": (2, "2", "ERROR", "Error", "error", "StatusCode.ERROR", "STATUS_CODE_ERROR"),
            "ok": (1, "OK", "Ok", "StatusCode.OK", "status_code_ok"),
            "unset": (0, "UNSET", "StatusCode.UNSET", "Unset"),
        }.items()
        for spelling in spellings
    ],
)
def test_a_status_in_every_spelling(tmp_path, spelling, expected):
    """As numbers, and as each library writes the names; nothing is to be said of it."""
    reader = load(_written(tmp_path, _span(status={"code": spelling})))

    assert _only_span(reader).status == expected
    assert reader.evidence.warnings == []


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (2, "error"),
        (2.0, "error"),
        ("2", "error"),
        (0, "unset"),
        (3, None),
        (-1, None),
        (1.5, None),
        (True, None),
    ],
)
def test_a_number_in_a_table_or_a_text_is_otlps_own(value, meant):
    """Of a table's columns, too; what is no number of theirs is none."""
    assert values.member(value, STATUSES) == meant


@pytest.mark.parametrize(
    "spelling", [3, 3.0, "3", "CLIENT", "Client", "SpanKind.CLIENT", "SPAN_KIND_CLIENT", "span_kind_client"]
)
def test_a_kind_in_every_spelling(tmp_path, spelling):
    """Likewise."""
    reader = load(_written(tmp_path, _span(kind=spelling)))

    assert _only_span(reader).kind == "client"
    assert reader.evidence.warnings == []


@pytest.mark.parametrize(
    ("field", "said"),
    [
        pytest.param({"status": {"code": "FATAL"}}, "status 'FATAL'", id="status"),
        pytest.param({"kind": "sideways"}, "kind 'sideways'", id="kind"),
    ],
)
def test_a_spelling_that_is_not_known_is_said(tmp_path, field, said):
    """Once for a file, with how often."""
    reader = load(_written(tmp_path, *(_span(number, **field) for number in (1, 2, 3))))

    assert len(next(reader).spans) == 3
    assert list(reader) == []
    (warning,) = reader.evidence.warnings
    assert said in warning
    assert "3 times" in warning


_GOOD = {"key": "a", "value": {"stringValue": "b"}}


@pytest.mark.parametrize(
    ("field", "said"),
    [
        pytest.param({"name": None}, "", id="null-name"),
        pytest.param({"status": None, "events": None, "attributes": None, "kind": None}, "", id="nulls"),
        pytest.param({"status": {"code": None, "message": None}}, "", id="nulls-in-status"),
        pytest.param({"name": 5}, "name", id="number-as-name"),
        pytest.param({"status": 5}, "status", id="number-as-status"),
        pytest.param({"links": "x"}, "links", id="text-as-links"),
        pytest.param({"events": [None]}, "events", id="null-event"),
        pytest.param({"events": [{"timeUnixNano": "noon"}]}, "noon", id="no-time-of-an-event"),
        pytest.param({"attributes": [None, _GOOD]}, "attributes", id="null-attribute"),
        pytest.param({"attributes": 7}, "attributes", id="number-as-attributes"),
        pytest.param({"endTimeUnixNano": []}, "endTimeUnixNano", id="list-as-end"),
    ],
)
def test_a_bad_field_costs_itself_only(tmp_path, field, said):
    """The span is there with everything else; null is a default, which nothing is said of."""
    good = _span(2, attributes=[_GOOD])
    reader = load(_written(tmp_path, _span(1, **field), good))

    (trace,) = reader

    assert [span.span_id for span in trace.spans] == [f"{1:016x}", f"{2:016x}"]
    assert trace.spans[0].start_ns == START_NS
    assert trace.spans[1].attributes == {"a": "b"}
    assert reader.evidence.n_refused_spans == 0
    assert [said in warning for warning in reader.evidence.warnings] == ([True] if said else [])


def test_the_attributes_beside_a_bad_one_are_kept(tmp_path):
    """Of a list, what can be read."""
    reader = load(_written(tmp_path, _span(attributes=[None, _GOOD, 5])))

    assert _only_span(reader).attributes == {"a": "b"}


@pytest.mark.parametrize(
    "parent",
    [
        pytest.param("zz", id="no-digits"),
        pytest.param("12345678901234567890", id="too-long"),
        pytest.param("3f0c8f1e-4f6a-4c39-9b0e-0a8d5a1c7e21", id="uuid-of-nobody"),
    ],
)
def test_a_span_whose_parents_id_is_none_is_no_complete_request(tmp_path, parent):
    """It has a parent, which nobody can find: an orphan."""
    path = _written(tmp_path, _span(1), _span(2, parentSpanId=parent))

    evidence = analyse(load(path)).evidence

    assert evidence.n_orphan_spans == 1


@pytest.mark.parametrize("parent", ["", "0", "0000000000000000", None])
def test_a_parent_of_zeros_is_none(tmp_path, parent):
    """As some writers spell a root."""
    reader = load(_written(tmp_path, _span(parentSpanId=parent)))

    assert _only_span(reader).parent_id is None
    assert reader.evidence.warnings == []


def test_uuids_are_ids(tmp_path):
    """Of a trace all of it, of a span its random half; parents are found by it."""
    trace, root, child = (
        "11111111-2222-4333-8444-555555555555",
        "3f0c8f1e-4f6a-4c39-9b0e-0a8d5a1c7e21",
        "3f0c8f1e-4f6a-4c39-9b0e-0a8d5a1c7e22",
    )
    reader = load(
        _written(
            tmp_path,
            _span(traceId=trace, spanId=root),
            _span(traceId=trace, spanId=child, parentSpanId=root),
        )
    )

    (found,) = reader

    assert found.trace_id == trace.replace("-", "")
    assert found.spans[1].parent_id == found.spans[0].span_id == "9b0e0a8d5a1c7e21"


@pytest.mark.parametrize("wrong", [{"spanId": "zz"}, {"traceId": 5}, {"startTimeUnixNano": []}])
def test_a_file_of_unusable_spans_only_is_an_error(tmp_path, wrong):
    """Never an empty report; the first reason is named."""
    with pytest.raises(UnusableTraceError, match="none of the spans can be used"):
        analyse(load(_written(tmp_path, _span(**wrong))))


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        pytest.param("1.7e18", 1_700_000_000_000_000_000, id="exponent-in-a-text"),
        pytest.param(1.7e18, 1_700_000_000_000_000_000, id="exponent"),
        pytest.param("2023-11-14T22:13:20.000000007Z", 1_700_000_000_000_000_007, id="iso"),
        pytest.param("2023-11-14T23:13:20+01:00", 1_700_000_000_000_000_000, id="iso-in-a-zone"),
        pytest.param("soon", None, id="no-time"),
        pytest.param("1e999", None, id="no-end"),
    ],
)
def test_a_time_is_read_in_any_writing_or_its_span_is_refused_with_it(tmp_path, time, expected):
    """Protobuf's JSON allows an exponent, other writers know ISO 8601; what is no time is named."""
    good, odd = _span(1), _span(2, startTimeUnixNano=time)

    reader = load(_written(tmp_path, good, odd))
    starts = {span.span_id: span.start_ns for trace in reader for span in trace.spans}

    assert starts.get(odd["spanId"]) == expected
    assert bool(expected) != any("is none" in warning for warning in reader.evidence.warnings)


def test_the_times_of_ends_and_events_are_read_in_iso_8601_too(tmp_path):
    """As those of starts: a document is written by one library."""
    at = "2023-11-14T22:13:20.5Z"

    (trace,) = load(
        _written(tmp_path, _span(1, endTimeUnixNano=at, events=[{"name": "e", "timeUnixNano": at}]))
    )

    assert trace.spans[0].end_ns == trace.spans[0].events[0].time_ns == 1_700_000_000_500_000_000


@pytest.mark.parametrize("time", ["--5", "+-5", "1e", "0x10", "NaN", "-Infinity"])
def test_a_time_that_is_no_number_costs_its_span_alone(tmp_path, time):
    """What only looks like one, too."""
    reader = load(_written(tmp_path, _span(), _span(2, startTimeUnixNano=time)))

    assert _only_span(reader).span_id == f"{1:016x}"
    assert reader.evidence.n_refused_spans == 1
