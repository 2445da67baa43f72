"""OTLP's protobuf, written with OpenTelemetry's own classes and with our exporter, in every framing."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from hotspan.analysis import analyse, load
from hotspan.exporters.otlp_parts import parts_of
from hotspan.tracer import semconv
from hotspan.tracer.errors import TraceFileError
from hotspan.tracer.record import Event, Link, Resource, Scope, SpanRecord

TRACE = bytes.fromhex("7c1f0e9a52b84d6e9d0b3a4c5e6f7081")
NOW_NS = 1_790_000_000_000_000_001


def _request(*numbers, message=ExportTraceServiceRequest):
    request = message()
    group = request.resource_spans.add()
    group.resource.attributes.add(key="service.name", value=AnyValue(string_value="handbook"))
    part = group.scope_spans.add(schema_url="https://example.org/1")
    part.scope.name = "test"
    for number in numbers:
        span = part.spans.add(
            trace_id=TRACE,
            span_id=number.to_bytes(8, "big"),
            parent_span_id=b"" if number == 1 else (1).to_bytes(8, "big"),
            name=f"span {number}",
            kind=3,
            start_time_unix_nano=NOW_NS + number,
            end_time_unix_nano=NOW_NS + 1000,
        )
        span.status.code, span.status.message = 2, "no answer"
    return request


def _read(tmp_path, data):
    (tmp_path / "traces.bin").write_bytes(data)
    reader = load(tmp_path / "traces.bin")
    return [span for trace in reader for span in trace.spans], reader.evidence


def _varint(number):
    return bytes((number & 0x7F | 0x80, number >> 7)) if number > 127 else bytes((number,))


def _fixed_length(message):
    return len(message).to_bytes(4, "big") + message


FRAMINGS = [
    pytest.param(lambda *messages: b"".join(messages), id="one-after-the-other"),
    pytest.param(lambda *messages: b"".join(map(_fixed_length, messages)), id="behind-4-bytes"),
    pytest.param(lambda *messages: b"".join(_varint(len(m)) + m for m in messages), id="behind-a-varint"),
]


@pytest.mark.parametrize("message", [ExportTraceServiceRequest, TracesData])
@pytest.mark.parametrize("framed", FRAMINGS)
def test_every_framing_gives_the_same_spans(tmp_path, framed, message):
    """One message, or a stream of them, each behind its length."""
    messages = [_request(*numbers, message=message).SerializeToString() for numbers in ((2, 3), (1,))]

    spans, evidence = _read(tmp_path, framed(*messages))

    assert [span.name for span in spans] == ["span 2", "span 3", "span 1"]
    assert spans[0] == SpanRecord(
        TRACE.hex(),
        "0000000000000002",
        "0000000000000001",
        "span 2",
        NOW_NS + 2,
        NOW_NS + 1000,
        {},
        kind="client",
        status="error",
        status_message="no answer",
        resource=Resource({"service.name": "handbook"}),
        scope=Scope("test", "", {}, "https://example.org/1"),
    )
    assert spans[2].parent_id is None
    assert evidence.warnings == []


@pytest.mark.parametrize("framed", FRAMINGS)
def test_a_last_message_that_breaks_off_costs_itself_only(tmp_path, framed):
    """As a killed collector leaves it."""
    messages = [_request(1).SerializeToString(), _request(*range(2, 9)).SerializeToString()]

    spans, evidence = _read(tmp_path, framed(*messages)[:-20])

    assert [span.name for span in spans] == ["span 1"]
    (warning,) = evidence.warnings
    assert "traces.bin: the end of the file" in warning


def test_a_span_without_a_usable_id_costs_itself_only(tmp_path):
    """Counted, with the reason; its neighbours are read."""
    request = _request(1, 2, 3)
    request.resource_spans[0].scope_spans[0].spans[1].trace_id = b"short"

    spans, evidence = _read(tmp_path, request.SerializeToString())

    assert [span.name for span in spans] == ["span 1", "span 3"]
    assert evidence.n_refused_spans == 1
    assert "'span 2' has no usable id" in evidence.warnings[0]


def test_what_a_writer_lost_is_counted(tmp_path):
    """A resource without spans is its writer's note."""
    request = _request(1)
    note = request.resource_spans.add().resource.attributes
    note.append(KeyValue(key=semconv.LOST_SPANS, value=AnyValue(int_value=4)))
    (tmp_path / "traces.bin").write_bytes(request.SerializeToString())

    assert analyse(load(tmp_path / "traces.bin")).evidence.n_dropped_spans == 4


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
values = st.recursive(
    st.none()
    | texts
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.binary(),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
attributes = st.dictionaries(texts, values, max_size=3)
ids = st.integers(1, 2**64 - 1).map(lambda number: f"{number:016x}")
times = st.integers(NOW_NS, 2**63)
counts = st.integers(0, 2**32 - 1)
records = st.builds(
    SpanRecord,
    trace_id=ids.map(lambda digits: digits * 2),
    span_id=ids,
    parent_id=st.none() | ids,
    name=texts,
    start_ns=times,
    end_ns=st.none() | times,
    attributes=attributes,
    kind=st.sampled_from(["internal", "server"]),
    status=st.sampled_from(["unset", "error"]),
    status_message=texts,
    events=st.lists(st.builds(Event, texts, times, attributes, counts), max_size=2).map(tuple),
    links=st.lists(st.builds(Link, ids.map(lambda d: d * 2), ids, attributes, texts), max_size=2).map(tuple),
    resource=st.builds(Resource, attributes, texts),
    scope=st.builds(Scope, texts, texts, attributes, texts),
    trace_state=texts,
    flags=counts,
    n_dropped_attributes=counts,
    n_dropped_events=counts,
    n_dropped_links=counts,
)


@given(record=records)
def test_what_is_sent_over_otlp_is_read_back_as_it_was(tmp_path_factory, record):
    """Law 5: every field, with the type of every value."""
    path = tmp_path_factory.mktemp("proto") / "traces.bin"
    path.write_bytes(b"".join(part.data for part in parts_of([record], 1 << 20)))

    ((read,),) = (trace.spans for trace in load(path))

    assert read == record
    assert repr(read.attributes) == repr(record.attributes)


@given(data=st.binary(max_size=64), position=st.integers(0, 300), n_cut=st.integers(0, 8))
def test_damaged_bytes_are_spans_or_a_sentence(tmp_path_factory, data, position, n_cut):
    """No byte that is changed, lost or added ends in another exception."""
    whole = _request(1, 2).SerializeToString()
    at = position % len(whole)
    path = tmp_path_factory.mktemp("proto") / "traces.bin"
    path.write_bytes(whole[:at] + data + whole[at + n_cut :])

    with contextlib.suppress(TraceFileError):
        list(load(path))


def test_values_that_are_nested_without_end_are_cut(tmp_path):
    """Thousands of arrays in arrays: the value is cut, the span is kept."""
    value = b"\x0a\x01x"
    for _ in range(5000):
        array = b"\x0a" + _long_varint(len(value)) + value
        value = b"\x2a" + _long_varint(len(array)) + array
    pair = b"\x0a\x01k\x12" + _long_varint(len(value)) + value
    request = _request(1)
    span = request.resource_spans[0].scope_spans[0].spans[0].SerializeToString()
    span += b"\x4a" + _long_varint(len(pair)) + pair
    part = b"\x12" + _long_varint(len(span)) + span
    group = b"\x12" + _long_varint(len(part)) + part

    (found,), _ = _read(tmp_path, b"\x0a" + _long_varint(len(group)) + group)

    assert found.name == "span 1"
    assert "…" in repr(found.attributes["k"])


def _long_varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes((number,))


def _field(number, data):
    """A field of bytes, or a number, as it goes over the wire."""
    if isinstance(data, int):
        return _long_varint(number << 3) + _long_varint(data)
    return _long_varint(number << 3 | 2) + _long_varint(len(data)) + data


def _with(*, span=b"", scope=b"", group=b""):
    """A file of one span with further fields: of protobuf's several, the last counts."""
    whole = _request(1)
    found = whole.resource_spans[0].scope_spans[0].spans[0].SerializeToString() + span
    part = whole.resource_spans[0].scope_spans[0]
    del part.spans[:]
    parts = _field(2, part.SerializeToString() + scope + _field(2, found))
    return _field(1, _field(1, whole.resource_spans[0].resource.SerializeToString()) + group + parts)


BROKEN = b"\x0a\x7f"  # says that 127 bytes follow, and none does


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        pytest.param({"span": _field(5, 7)}, "the name of a span", id="number-as-name"),
        pytest.param({"span": _field(8, 7)}, "the end of a span", id="varint-as-end"),
        pytest.param({"span": _field(8, b"123")}, "the end of a span", id="end-of-3-bytes"),
        pytest.param({"span": _field(4, b"123")}, "its parent is missing", id="parent-of-3-bytes"),
        pytest.param({"span": _field(6, b"client")}, "the kind of a span", id="text-as-kind"),
        pytest.param({"span": _field(15, BROKEN)}, "the status of a span", id="broken-status"),
        pytest.param({"span": _field(15, 2)}, "the status of a span", id="number-as-status"),
        pytest.param({"span": _field(9, BROKEN)}, "one of the attributes of a span", id="broken-attribute"),
        pytest.param({"span": _field(11, BROKEN)}, "an event", id="broken-event"),
        pytest.param({"span": _field(11, _field(1, b"later"))}, "the time of an event", id="no-time"),
        pytest.param({"span": _field(13, 5)}, "a link", id="number-as-link"),
        pytest.param({"span": _field(10, b"")}, "a count of what was dropped", id="text-as-count"),
        pytest.param({"scope": _field(1, BROKEN)}, "a scope", id="broken-scope"),
        pytest.param({"group": _field(1, BROKEN)}, "a resource", id="broken-resource"),
        pytest.param({"group": _field(2, BROKEN)}, "a scope's spans", id="broken-group"),
    ],
)
def test_a_bad_field_costs_itself_only(tmp_path, fields, said):
    """The span is there with everything else, and what follows it; the field is named."""
    spans, evidence = _read(tmp_path, _with(**fields) + _request(2).SerializeToString())

    assert [span.span_id for span in spans] == ["0000000000000001", "0000000000000002"]
    assert spans[0].start_ns == NOW_NS + 1
    assert spans[1].name == "span 2"
    assert evidence.n_refused_spans == 0
    assert said in evidence.warnings[0]


def test_a_start_that_is_no_time_costs_the_span(tmp_path):
    """Without one it lies nowhere; its neighbours are read."""
    spans, evidence = _read(tmp_path, _with(span=_field(7, 5)) + _request(2).SerializeToString())

    assert [span.name for span in spans] == ["span 2"]
    assert evidence.n_refused_spans == 1


def test_the_attributes_beside_a_bad_one_are_kept(tmp_path):
    """Of the list, what can be read."""
    good = KeyValue(key="n", value=AnyValue(int_value=3)).SerializeToString()

    spans, _ = _read(tmp_path, _with(span=_field(9, BROKEN) + _field(9, good)))

    assert spans[0].attributes == {"n": 3}
