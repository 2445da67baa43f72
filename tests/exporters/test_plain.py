"""Spans that are written straight from what capture keeps: the same as by way of a record."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from hotspan.exporters import otlp_lines, otlp_parts
from hotspan.tracer import clock, finished
from hotspan.tracer.record import KINDS, Resource, Scope, SpanBatch, SpanRecord

TRACE = 0x0AF7651916CD43DD8448EB211C80319C
RESOURCE, SCOPE = Resource({"service.name": "bot"}), Scope("hotspan")
CONSTANTS = {"hotspan.stage": "step", "a": "shared"}
ANCHOR_NS = clock.anchor_ns

keys = (
    st.sampled_from(["a", "b", "c", "d", "hotspan.stage", "ключ"]) | st.text(max_size=5) | st.integers(0, 3)
)
values = (
    st.text(max_size=80)
    | st.integers()
    | st.integers(0, 1 << 15)
    | st.floats()
    | st.booleans()
    | st.none()
    | st.lists(st.integers(0, 9) | st.text(max_size=3), max_size=3)
)


def plain(own: dict[Any, Any], **fields: Any) -> Any:
    """Return a finished span that has attributes alone."""
    given_ = {
        "trace_id": TRACE,
        "span_id": 1 << 63,
        "parent_id": 0,
        "name": "step",
        "kind": "internal",
        "flags": 1,
        "start_ns": 5,
        "end_ns": 9,
        "constants": CONSTANTS,
        "own": own,
        "extra": None,
        "trace_state": None,
    }
    return SimpleNamespace(**{**given_, **fields})


def batch(*spans: Any) -> SpanBatch:
    """Return them as capture hands them over."""
    return SpanBatch(list(spans), RESOURCE, SCOPE, ANCHOR_NS, lambda s: finished.record_of(s, RESOURCE))


def as_json(spans: Any) -> list[dict[str, Any]]:
    """Return the spans as the file has them, attributes by key."""
    found = []
    for line in otlp_lines.lines(spans):
        for group in json.loads(line)["resourceSpans"]:
            for span in group["scopeSpans"][0]["spans"]:
                pairs = [(p["key"], p["value"]) for p in span.pop("attributes", [])]
                assert len(dict(pairs)) == len(pairs), "a key came twice"
                found.append({**span, "attributes": dict(pairs)})
    return found


def as_messages(spans: Any) -> list[tuple[bytes, dict[str, str]]]:
    """Return the spans as a collector reads them, attributes by key."""
    found = []
    for part in otlp_parts.parts_of(spans, 1 << 22):
        for group in ExportTraceServiceRequest.FromString(part.data).resource_spans:
            for span in group.scope_spans[0].spans:
                pairs = [(p.key, str(p.value)) for p in span.attributes]
                assert len(dict(pairs)) == len(pairs), "a key came twice"
                del span.attributes[:]
                found.append((span.SerializeToString(), dict(pairs)))
    return found


@given(
    st.lists(
        st.builds(
            plain,
            st.dictionaries(keys, values, max_size=5),
            trace_id=st.integers(1, 2),
            span_id=st.integers(1, (1 << 64) - 1),
            parent_id=st.just(0) | st.integers(1, (1 << 64) - 1),
            name=st.sampled_from(["step", "retrieval kb"]) | st.text(max_size=80),
            kind=st.sampled_from(KINDS),
            flags=st.integers(0, 255),
            end_ns=st.integers(5, 1 << 40) | st.integers(-(1 << 65), 1 << 65),
            constants=st.sampled_from([CONSTANTS, {}, {"hotspan.stage": "x"}]),
        ),
        max_size=4,
    )
)
def test_the_direct_way_writes_what_the_way_by_a_record_does(spans):
    """Any ids, names, kinds, flags, times, keys and values, in both encodings, many spans in one batch."""
    records = [finished.record_of(span, RESOURCE) for span in spans]
    assert as_json(batch(*spans)) == as_json(records)
    assert as_messages(batch(*spans)) == as_messages(records)


@pytest.mark.parametrize(
    "own",
    [
        {"text": "x" * 200_000},
        {"x" * 200_000: 1},
        {"big": 1 << 70},
        {7: "a key that is no text"},
        {"hotspan.stage": "another than the shared one"},
        {"nan": float("nan"), "inf": float("-inf")},
    ],
    ids=["long-text", "long-key", "big-integer", "odd-key", "overridden", "no-numbers"],
)
def test_what_capture_has_put_off_is_done(own):
    """Text that is too long is cut, an integer beyond 64 bits becomes text, an own attribute wins."""
    span = plain(own)
    assert as_json(batch(span)) == as_json([finished.record_of(span, RESOURCE)])
    assert as_messages(batch(span)) == as_messages([finished.record_of(span, RESOURCE)])


def test_records_and_plain_spans_keep_their_order_and_their_owners():
    """A batch may hold spans of other processes beside the process's own."""
    theirs = SpanRecord(
        "a" * 32, "b" * 16, None, "llm_request", 1, 2, resource=Resource({"service.name": "vllm"})
    )
    mixed = batch(plain({}, span_id=1), theirs, plain({}, span_id=2))
    lines = [json.loads(line) for line in otlp_lines.lines(mixed)]
    owners = [
        group["resource"]["attributes"][0]["value"]["stringValue"] for group in lines[0]["resourceSpans"]
    ]
    assert owners == ["bot", "vllm"]
    assert [span.name for span in mixed] == ["step", "llm_request", "step"]
    assert (len(mixed), mixed[1], mixed[-1].span_id) == (3, theirs, f"{2:016x}")


def test_a_plan_is_of_its_own_constants():
    """Constants that were thrown away give their place in memory, and so their id, to others."""
    for n in range(10_000):
        (found,) = as_json(batch(plain({"k": n}, constants={"hotspan.stage": f"s{n}"})))
        assert found["attributes"]["hotspan.stage"] == {"stringValue": f"s{n}"}
