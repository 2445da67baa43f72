"""Metric points as OTLP/JSON lines, written beside spans and read back."""

from __future__ import annotations

import json

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from hotspan.analysis.readers.otlp_metrics import metric_points
from hotspan.exporters.otlp_metrics import MetricsFile, line
from hotspan.tracer.errors import ConfigurationError
from hotspan.tracer.metric import MetricPoint
from hotspan.tracer.record import Resource

HOST = Resource({"host.name": "h"})
ENGINE = Resource({"hotspan.engine": "vllm", "server.address": "127.0.0.1", "server.port": 8000})
NOW = 1_796_013_424_937_973_605
POINTS = [
    MetricPoint("vllm:num_requests_running", "gauge", NOW, 2.0, None, "1", {"engine": "0"}, ENGINE),
    MetricPoint("vllm:num_requests_running", "gauge", NOW, 3.0, None, "1", {"engine": "1"}, ENGINE),
    MetricPoint("vllm:request_success", "sum", NOW, 7.0, None, "1", {"model_name": "ü 😀"}, ENGINE),
    MetricPoint("vllm:request_queue_time_seconds", "histogram", NOW, 0.25, 5, "s", {}, ENGINE),
    MetricPoint("hw.gpu.utilization", "gauge", NOW, 0.5, None, "1", {"hw.id": "0"}, HOST),
]  # fmt: skip


def test_what_is_written_is_read_back():
    """Names, kinds, times to the nanosecond, values, labels and the process that was measured."""
    assert list(metric_points(line(POINTS).encode())) == POINTS


def test_the_form_is_otlps():
    """One object; cumulative sums that only grow; a histogram without buckets; 64-bit integers as text."""
    document = json.loads(line([POINTS[0], *POINTS[3:]]))
    engine, gpu = document["resourceMetrics"]
    running, queue = engine["scopeMetrics"][0]["metrics"]

    assert list(document) == ["resourceMetrics"]
    assert running["gauge"]["dataPoints"][0]["asDouble"] == 2.0
    assert queue["histogram"]["aggregationTemporality"] == 2
    assert queue["histogram"]["dataPoints"] == [{"timeUnixNano": str(NOW), "count": "5", "sum": 0.25}]
    assert gpu["resource"]["attributes"] == [{"key": "host.name", "value": {"stringValue": "h"}}]


def test_opentelemetrys_own_classes_read_it():
    """What a collector parses a line with: no field that it does not know, and every value in its place."""
    request = json_format.Parse(line(POINTS), ExportMetricsServiceRequest())
    metrics = {
        metric.name: metric
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }

    assert [point.as_double for point in metrics["vllm:num_requests_running"].gauge.data_points] == [2.0, 3.0]
    assert metrics["vllm:request_success"].sum.is_monotonic
    (queue,) = metrics["vllm:request_queue_time_seconds"].histogram.data_points
    assert (queue.time_unix_nano, queue.count, queue.sum) == (NOW, 5, 0.25)


def test_a_value_that_json_cannot_hold_is_left_out():
    """NaN and the infinities say nothing of a run."""
    odd = [POINTS[0]._replace(value=value) for value in (float("nan"), float("inf"))]

    assert list(metric_points(line([*odd, POINTS[0]]).encode())) == [POINTS[0]]


def test_a_line_is_one_write_and_stands_beside_others(tmp_path):
    """The file of the spans takes it as a line of its own; nothing at all writes nothing."""
    path = tmp_path / "run.jsonl"
    path.write_text('{"resourceSpans":[]}\n', encoding="utf-8")
    sink = MetricsFile(path)
    sink.write([])
    sink.write(POINTS[:2])
    sink.write(POINTS[3:])
    kinds = [list(json.loads(text)) for text in path.read_text(encoding="utf-8").splitlines()]

    assert kinds == [["resourceSpans"], ["resourceMetrics"], ["resourceMetrics"]]


def test_a_file_that_cannot_be_written_is_refused_at_once(tmp_path):
    """With the sentence of the trace file."""
    with pytest.raises(ConfigurationError, match="does not exist"):
        MetricsFile(tmp_path / "no" / "run.jsonl")


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(b'{"resourceSpans":[]}', [], id="spans"),
        pytest.param(b'{"resourceMetrics":[]}', [], id="none"),
        pytest.param(
            b'{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"a","summary":{"dataPoints":[{}]}}]}]}]}',
            [],
            id="another-kind",
        ),
        pytest.param(
            b'{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"a","gauge":{"dataPoints":[{"timeUnixNano":"5"}]}}]}]}]}',
            [],
            id="no-value",
        ),
        pytest.param(
            b'{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"a","gauge":{"dataPoints":[{"timeUnixNano":5,"asInt":"3"}]}}]}]}]}',
            [MetricPoint("a", "gauge", 5, 3.0)],
            id="an-integer",
        ),
        pytest.param(
            b'[{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"a","sum":{"dataPoints":[{"timeUnixNano":5,"asDouble":3,"attributes":[{"key":"k","value":{"doubleValue":0.5}},{"key":"b","value":{"boolValue":true}}]}]}}]}]}]}]',
            [MetricPoint("a", "sum", 5, 3.0, attributes={"k": 0.5, "b": True})],
            id="an-array",
        ),
    ],
)
def test_other_writers_documents(document, expected):
    """What the Collector's exporters write; a point without a value is none."""
    assert list(metric_points(document)) == expected
