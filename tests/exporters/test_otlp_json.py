"""The OTLP/JSON that is written: its exact form, and that every value survives."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotspan.exporters import otlp_json, otlp_lines
from hotspan.tracer import otlp_decode
from hotspan.tracer.record import KINDS, STATUSES, Event, Link, Resource, Scope, SpanRecord

TRACE, SPAN, PARENT = "5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174", "eee19b7ec3c1b173"

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
scalars = st.one_of(
    texts,
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.binary(max_size=40),
    st.none(),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
attributes = st.dictionaries(texts, values, max_size=4)
times = st.integers(0, 2**63)
counts = st.integers(0, 2**32 - 1)
ids = st.binary(min_size=8, max_size=8).filter(any).map(bytes.hex)
trace_ids = st.binary(min_size=16, max_size=16).filter(any).map(bytes.hex)
spans = st.builds(
    SpanRecord,
    trace_id=trace_ids,
    span_id=ids,
    parent_id=st.none() | ids,
    name=texts,
    start_ns=times,
    end_ns=st.none() | st.integers(1, 2**63),
    attributes=attributes,
    kind=st.sampled_from(KINDS),
    status=st.sampled_from(STATUSES),
    status_message=texts,
    events=st.lists(st.builds(Event, texts, times, attributes, counts), max_size=2).map(tuple),
    links=st.lists(st.builds(Link, trace_ids, ids, attributes, texts), max_size=2).map(tuple),
    resource=st.builds(Resource, attributes, texts),
    scope=st.builds(Scope, texts, texts, attributes, texts),
    trace_state=texts,
    flags=counts,
    n_dropped_attributes=counts,
    n_dropped_events=counts,
    n_dropped_links=counts,
)


def attribute(value):
    """Return how a value is written."""
    return json.loads(otlp_json.attributes_json({"k": value}))[0]["value"]


def listed(*values):
    """Return how a list of these values is written."""
    return {"arrayValue": {"values": list(values)}}


A_SPAN = SpanRecord(
    TRACE,
    SPAN,
    PARENT,
    "search",
    1_544_712_660_000_000_000,
    1_544_712_661_000_000_000,
    {"hotspan.stage": "retrieval", "n": 3, "score": 0.5, "ok": True},
    kind="server",
    status="error",
    status_message="no index",
    events=(Event("exception", 1_544_712_660_500_000_000, {"exception.type": "OSError"}),),
    links=(Link(TRACE, PARENT),),
    resource=Resource({"service.name": "bot"}, "https://schema"),
    scope=Scope("hotspan", "0.1.0"),
    flags=257,
)
AS_WRITTEN = {
    "resourceSpans": [
        {
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "bot"}}]},
            "scopeSpans": [
                {
                    "scope": {"name": "hotspan", "version": "0.1.0"},
                    "spans": [
                        {
                            "traceId": TRACE,
                            "spanId": SPAN,
                            "parentSpanId": PARENT,
                            "flags": 257,
                            "name": "search",
                            "kind": 2,
                            "startTimeUnixNano": "1544712660000000000",
                            "endTimeUnixNano": "1544712661000000000",
                            "attributes": [
                                {"key": "hotspan.stage", "value": {"stringValue": "retrieval"}},
                                {"key": "n", "value": {"intValue": "3"}},
                                {"key": "score", "value": {"doubleValue": 0.5}},
                                {"key": "ok", "value": {"boolValue": True}},
                            ],
                            "events": [
                                {
                                    "timeUnixNano": "1544712660500000000",
                                    "name": "exception",
                                    "attributes": [
                                        {"key": "exception.type", "value": {"stringValue": "OSError"}}
                                    ],
                                }
                            ],
                            "links": [{"traceId": TRACE, "spanId": PARENT}],
                            "status": {"message": "no index", "code": 2},
                        }
                    ],
                }
            ],
            "schemaUrl": "https://schema",
        }
    ]
}


def test_a_span_is_written_as_the_collector_writes_it():
    """Hex ids, enums as numbers, 64-bit numbers as strings, nothing for what is not there."""
    (line,) = otlp_lines.lines([A_SPAN])

    assert line.endswith("\n")
    assert json.loads(line) == AS_WRITTEN


@pytest.mark.parametrize(
    ("value", "written"),
    [
        pytest.param(math.nan, {"doubleValue": "NaN"}, id="nan"),
        pytest.param(math.inf, {"doubleValue": "Infinity"}, id="infinity"),
        pytest.param(-math.inf, {"doubleValue": "-Infinity"}, id="minus-infinity"),
        pytest.param(2**63 - 1, {"intValue": "9223372036854775807"}, id="largest-integer"),
        pytest.param(2**63, {"stringValue": "9223372036854775808"}, id="integer-beyond-64-bits"),
        pytest.param(-(2**63) - 1, {"stringValue": "-9223372036854775809"}, id="integer-below-64-bits"),
        pytest.param("a\ud83db", {"stringValue": "a\ufffdb"}, id="lone-surrogate"),
        pytest.param("\ud83d\ude00", {"stringValue": "\U0001f600"}, id="surrogate-pair"),
        pytest.param('\0"\\\n\u2028', {"stringValue": '\0"\\\n\u2028'}, id="escapes"),
        pytest.param(b"\xff\x00", {"bytesValue": "/wA="}, id="bytes"),
        pytest.param(None, {}, id="none"),
        pytest.param([], listed(), id="empty-list"),
        pytest.param(
            (1, 2), {"arrayValue": {"values": [{"intValue": "1"}, {"intValue": "2"}]}}, id="integers"
        ),
        pytest.param(
            [1, True], {"arrayValue": {"values": [{"intValue": "1"}, {"boolValue": True}]}}, id="mixed"
        ),
        pytest.param([2**64], {"arrayValue": {"values": [{"stringValue": str(2**64)}]}}, id="large-in-list"),
        pytest.param(
            {"a": {"b": 1}},
            {
                "kvlistValue": {
                    "values": [
                        {
                            "key": "a",
                            "value": {"kvlistValue": {"values": [{"key": "b", "value": {"intValue": "1"}}]}},
                        }
                    ]
                }
            },
            id="nested-map",
        ),
    ],
)
def test_values_that_json_or_otlp_cannot_hold_are_written_readably(value, written):
    """Every value gives valid JSON that says what it was."""
    assert attribute(value) == written


def test_a_list_that_holds_itself_is_cut():
    """A cycle ends at a bound and costs neither the span nor the program."""
    cycle: list[object] = [1]
    cycle.append(cycle)

    assert "…" in json.dumps(attribute(cycle), ensure_ascii=False)


def test_an_object_that_cannot_be_printed_costs_only_its_value():
    """The fault of an object's own __str__ stays with it."""

    class Broken:
        def __str__(self):
            raise RuntimeError

    assert attribute(Broken()) == {"stringValue": "<Broken>"}


def test_counts_are_never_negative():
    """A negative dropped count would make the file unreadable to others; it is left out."""
    span = SpanRecord(TRACE, SPAN, None, "s", 1, 2, n_dropped_attributes=-1, n_dropped_events=2**40)

    written = json.loads(otlp_json.span_json(span))

    assert "droppedAttributesCount" not in written
    assert written["droppedEventsCount"] == 2**32 - 1


@pytest.mark.parametrize("number", range(len(STATUSES)))
def test_statuses_are_numbers(number):
    """The status code is OTLP's number; 0 is left out."""
    written = json.loads(
        otlp_json.span_json(SpanRecord(TRACE, SPAN, None, "s", 1, 2, status=STATUSES[number]))
    )

    assert written["status"] == ({"code": number} if number else {})


def test_spans_are_grouped_by_resource_and_scope():
    """A resource and a scope are written once for all their spans, whatever the order."""
    vllm, bot = Resource({"service.name": "vllm"}), Resource({"service.name": "bot"})
    order = [(bot, Scope("a")), (vllm, Scope("b")), (bot, Scope("a")), (bot, Scope("c"))]
    batch = [
        SpanRecord(TRACE, f"{i:016x}", None, str(i), 1, 2, resource=resource, scope=scope)
        for i, (resource, scope) in enumerate(order)
    ]

    (line,) = otlp_lines.lines(batch)

    groups = {
        (group["resource"]["attributes"][0]["value"]["stringValue"], part["scope"]["name"]): part["spans"]
        for group in json.loads(line)["resourceSpans"]
        for part in group["scopeSpans"]
    }
    names = {key: [span["name"] for span in found] for key, found in groups.items()}
    assert names == {("bot", "a"): ["0", "2"], ("bot", "c"): ["3"], ("vllm", "b"): ["1"]}


def test_lines_are_bounded():
    """A large batch becomes several lines; a span larger than a line has one of its own."""
    big = otlp_lines.MAX_LINE_CHARS
    sizes = [10, big // 2, big // 2, 2 * big, 10]
    batch = [SpanRecord(TRACE, SPAN, None, "s", 1, 2, {"text": "x" * size}) for size in sizes]

    lines = list(otlp_lines.lines(batch))

    assert [line.count('"spanId"') for line in lines] == [2, 1, 1, 1]


@settings(max_examples=60)
@given(st.lists(spans, max_size=3))
def test_what_is_written_reads_back_the_same(batch):
    """Write, then read with protobuf's own JSON parser: the same records, grouped."""
    back = []
    for line in otlp_lines.lines(batch):
        found, n_rejected = otlp_decode.records(otlp_decode.parse_json(line.encode()))
        assert n_rejected == 0
        back.extend(found)

    assert sorted(map(repr, back)) == sorted(map(repr, batch))
