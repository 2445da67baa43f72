"""The OTLP exporter against a real Jaeger, over HTTP and gRPC."""

import time
import uuid

import pytest

from hotspan.exporters.otlp import OtlpExporter
from hotspan.tracer.record import Event, Link, Resource, Scope, SpanRecord

pytestmark = pytest.mark.integration

TRACE = "5b8efff798038103d269b633813fc60c"


@pytest.fixture(params=["http/protobuf", "grpc"])
def exporter(request, jaeger):
    """An exporter to the running Jaeger."""
    endpoint = jaeger.grpc if request.param == "grpc" else jaeger.http
    made = OtlpExporter(endpoint, protocol=request.param)
    yield made
    made.shutdown()


def three_spans(trace_id, start):
    """One request with a model call, and the engine's own span of it from another service."""
    app, engine = (
        Resource({"service.name": f"bot-{trace_id}"}),
        Resource({"service.name": "engine", "pid": 7}),
    )
    return [
        SpanRecord(
            trace_id,
            "00000000000000a1",
            None,
            "request",
            start,
            start + 5_000_000,
            {"hotspan.stage": "request"},
            resource=app,
            scope=Scope("hotspan", "0.1.0"),
        ),
        SpanRecord(
            trace_id,
            "00000000000000a2",
            "00000000000000a1",
            "chat tiny",
            start + 1_000_000,
            start + 4_000_000,
            {"n": 3, "score": 0.5, "ok": True, "reasons": ["stop"], "digits": 2**70, "text": "é\ud83d"},
            kind="client",
            status="error",
            status_message="broke off",
            events=(Event("exception", start + 2_000_000, {"exception.type": "OSError"}),),
            links=(Link(TRACE, "00000000000000b1"),),
            resource=app,
            scope=Scope("hotspan", "0.1.0"),
        ),
        SpanRecord(
            trace_id,
            "00000000000000a3",
            "00000000000000a2",
            "llm_request",
            start + 1_500_000,
            start + 3_000_000,
            kind="server",
            resource=engine,
            scope=Scope("vllm"),
        ),
    ]


def test_a_trace_arrives_whole(jaeger, exporter):
    """Tree, times, attributes, events, links, status and both services are as recorded."""
    trace_id, start = uuid.uuid4().hex, time.time_ns() // 1000 * 1000
    exporter.export(three_spans(trace_id, start))

    (spans,) = jaeger.traces(f"bot-{trace_id}", 3).values()

    root, call, inner = sorted(spans, key=lambda span: span["spanID"])
    assert [span["operationName"] for span in (root, call, inner)] == ["request", "chat tiny", "llm_request"]
    assert [span["parent"] for span in (root, call, inner)] == [None, root["spanID"], call["spanID"]]
    assert (root["startTime"] * 1000, root["duration"]) == (start, 5_000)
    assert root["tags"]["hotspan.stage"] == "request"
    assert root["tags"]["otel.scope.name"] == "hotspan"
    expected = {
        "n": 3,
        "score": 0.5,
        "ok": True,
        "reasons": '["stop"]',
        "digits": str(2**70),
        "text": "é\ufffd",
    }
    assert expected.items() <= call["tags"].items()
    assert call["tags"]["span.kind"] == "client"
    assert call["tags"]["otel.status_code"] == "ERROR"
    assert call["tags"]["otel.status_description"] == "broke off"
    assert [field["value"] for log in call["logs"] for field in log["fields"]] == ["exception", "OSError"]
    assert [ref["spanID"] for ref in call["references"] if ref["refType"] == "FOLLOWS_FROM"] == [
        "00000000000000b1"
    ]
    assert inner["service"] == "engine"
    assert inner["tags"]["otel.scope.name"] == "vllm"


def test_a_large_batch_arrives_whole(jaeger, exporter):
    """A batch far over what one gRPC message may hold is sent in parts."""
    trace_id, start = uuid.uuid4().hex, time.time_ns()
    app = Resource({"service.name": f"large-{trace_id}"})
    exporter.export(
        [
            SpanRecord(
                trace_id, f"{i + 1:016x}", None, "s", start, start + 1, {"text": "x" * 100_000}, resource=app
            )
            for i in range(100)
        ]
    )

    (spans,) = jaeger.traces(f"large-{trace_id}", 100).values()
    assert len(spans) == 100
