"""The OTLP/protobuf that is written: OpenTelemetry's own classes read it, and every value survives."""

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotspan.exporters import otlp_parts
from hotspan.exporters.otlp import OtlpExporter, OtlpExportError
from hotspan.testing import capture
from hotspan.tracer import otlp_decode
from hotspan.tracer.channel import Channel
from hotspan.tracer.receiver import Receiver
from hotspan.tracer.record import KINDS, STATUSES, Event, Link, Resource, Scope, SpanRecord

TRACE, SPAN = "5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174"

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
scalars = st.one_of(
    texts,
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2**15),
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
times = st.integers(0, 2**64 - 1)
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


def read(parts):
    """Return the spans of the requests, as OpenTelemetry's classes read them."""
    found = []
    for part in parts:
        records, n_refused = otlp_decode.records(otlp_decode.parse_protobuf(part.data))
        assert (len(records), n_refused) == (len(part), 0)
        found += records
    return found


@given(st.lists(spans, min_size=1, max_size=5))
def test_what_is_written_is_read_back(written):
    """Every field of every span, with the type of every attribute value."""
    found = read(otlp_parts.parts_of(written, 1 << 20))

    assert sorted(map(repr, found)) == sorted(map(repr, written))


@given(st.lists(spans, min_size=1, max_size=8), st.integers(1, 2_000))
def test_parts_hold_every_span_once(written, max_bytes):
    """However small the requests are to be, none is lost; one over the bound holds a single span."""
    parts = list(otlp_parts.parts_of(written, max_bytes))

    assert sorted(map(repr, read(parts))) == sorted(map(repr, written))
    assert len(otlp_parts.Packed(written, max_bytes)) == len(written)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("", "", id="empty-text"),
        pytest.param("a\ud83d", "a\ufffd", id="lone-surrogate"),
        pytest.param(True, True, id="true"),
        pytest.param(0, 0, id="zero"),
        pytest.param(2**14 - 1, 2**14 - 1, id="two-bytes"),
        pytest.param(2**14, 2**14, id="three-bytes"),
        pytest.param(-1, -1, id="negative"),
        pytest.param(2**63, str(2**63), id="beyond-64-bits"),
        pytest.param(math.inf, math.inf, id="infinity"),
        pytest.param(object(), "<object>", id="any-object"),
    ],
)
def test_values_arrive_as_protobuf_can_hold_them(value, expected):
    """Each value by itself, the first time and when it was seen before."""
    for _ in range(2):
        (found,) = read(otlp_parts.parts_of([SpanRecord(TRACE, SPAN, None, "s", 1, 2, {"k": value})], 1_000))
        assert found.attributes == {"k": expected}
        assert type(found.attributes["k"]) is type(expected)


def test_one_and_true_are_told_apart():
    """Values that are equal to Python are what they were, also when one of them was seen before."""
    given_ = {"a": 1, "b": 1.0, "c": True, "d": 0, "e": 0.0, "f": False}
    for _ in range(2):
        (found,) = read(otlp_parts.parts_of([SpanRecord(TRACE, SPAN, None, "s", 1, 2, given_)], 1_000))
        assert repr(dict(found.attributes)) == repr(given_)


def test_a_list_that_holds_itself_ends():
    """Nesting is cut at a bound."""
    endless: list[object] = []
    endless.append(endless)

    assert read(otlp_parts.parts_of([SpanRecord(TRACE, SPAN, None, "s", 1, 2, {"k": endless})], 1_000))


@pytest.mark.parametrize("way_for_bytes", [True, False], ids=["bytes", "spans"])
@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_spans_arrive_with_and_without_a_way_for_bytes(way_for_bytes, protocol, monkeypatch):
    """Where OpenTelemetry's exporters take no bytes, they are given spans, and the result is the same."""
    if not way_for_bytes:
        monkeypatch.setattr("hotspan.exporters.otlp._way_for_bytes", lambda _sender: None)
    sent = [SpanRecord(TRACE, f"{i + 1:016x}", None, "s", 1, 2, {"i": i}) for i in range(3)]
    if protocol == "grpc":
        exporter = OtlpExporter("http://127.0.0.1:9", protocol=protocol, timeout_s=0.2)
        with pytest.raises(OtlpExportError, match="3 of 3"):
            exporter.export(exporter.pack(sent))
        exporter.shutdown()
        return
    with Receiver() as receiver, capture() as captured:
        exporter = OtlpExporter(receiver.endpoint)
        channel = Channel(exporter, "otlp")
        channel.put(sent)
        channel.stop(time.monotonic() + 30)

    assert channel.n_exported == 3
    assert [span.attributes["i"] for span in captured.spans] == [0, 1, 2]
