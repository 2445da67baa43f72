"""A trace file with samples of an engine in it: read, reported, and never in the spans' way."""

from __future__ import annotations

import pytest

import hotspan
from hotspan.analysis.run_account import BY_ENDPOINT
from hotspan.exporters import otlp_lines, otlp_metrics
from hotspan.tracer import semconv
from hotspan.tracer.metric import MetricPoint
from hotspan.tracer.record import Resource, SpanRecord

MS = 1_000_000
NOW = 1_796_013_424_000_000_000
VLLM = Resource({semconv.ENGINE: "vllm", semconv.SERVER_ADDRESS: "127.0.0.1", semconv.SERVER_PORT: 8000})
CALL = SpanRecord(
    "a" * 32,
    "b" * 16,
    None,
    "chat tiny",
    NOW,
    NOW + 100 * MS,
    {semconv.STAGE: "generation", semconv.TTFT_NS: 60 * MS, semconv.LAST_TOKEN_NS: 90 * MS},
)


def sample(second, *, waiting, finished, queue_s):
    """Return one sample of vLLM's metrics as a line."""
    at = NOW + second * 10**9
    values = [("vllm:num_requests_waiting", "gauge", float(waiting), None)]
    values += [("vllm:request_success", "sum", float(finished), None)]
    values += [("vllm:request_queue_time_seconds", "histogram", queue_s, finished)]
    values += [("vllm:request_prefill_time_seconds", "histogram", finished * 0.02, finished)]
    return otlp_metrics.line(
        [MetricPoint(name, kind, at, value, count, resource=VLLM) for name, kind, value, count in values]
    )


SAMPLES = [sample(0, waiting=0, finished=5, queue_s=1.0), sample(1, waiting=12, finished=6, queue_s=1.03)]
SPANS = "".join(otlp_lines.lines([CALL]))


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([SAMPLES[0], SPANS, SAMPLES[1]], id="around"),
        pytest.param([*SAMPLES, SPANS], id="before"),
        pytest.param([SPANS, *SAMPLES], id="after"),
        pytest.param(["\n", SAMPLES[0], SPANS, SAMPLES[1].rstrip("\n")], id="blank-and-unended"),
    ],
)
def test_spans_and_samples_are_read_from_one_file(tmp_path, lines):
    """In any order: the spans make the requests, the samples the telemetry, and nothing is refused."""
    path = tmp_path / "run.jsonl"
    path.write_text("".join(lines), encoding="utf-8")

    report = hotspan.analyse(hotspan.load(path))
    (engine,) = report.telemetry.engines

    assert (report.evidence.n_spans, report.evidence.warnings) == (1, ())
    assert (engine.address, engine.waiting.max, engine.n_requests) == ("127.0.0.1:8000", 12, 1)
    assert report.to_dict()["telemetry"]["engines"][0]["waiting"]["max"] == 12


def test_a_call_without_an_account_is_divided_by_what_the_endpoint_counted(tmp_path):
    """Run-level: the one request that it finished waited 30 ms and read its prompt for 20."""
    path = tmp_path / "run.jsonl"
    path.write_text("".join([*SAMPLES, SPANS]), encoding="utf-8")

    generation = hotspan.analyse(hotspan.load(path)).generation
    phases = {name: ns / MS for name, ns in generation.phases_ns.items() if ns is not None}

    assert phases == pytest.approx(
        {
            "server_before_engine": 10,
            "queue": 30,
            "prefill": 20,
            "decode": 30,
            "stream_overhead": 10,
            "unattributed": 0,
        }
    )
    assert generation.phase_sources["queue"] == {BY_ENDPOINT: 1}
    assert sum(phases.values()) == pytest.approx(CALL.duration_ns / MS)


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(SAMPLES[1][:90] + "\n", id="half-written"),
        pytest.param('{"resourceMetrics":[{"scopeMetrics":3}]}\n', id="not-otlps"),
    ],
)
def test_a_sample_that_cannot_be_read_costs_itself_only(tmp_path, bad):
    """It is said with its line; spans and other samples stand."""
    path = tmp_path / "run.jsonl"
    path.write_text("".join([SAMPLES[0], bad, SPANS]), encoding="utf-8")

    report = hotspan.analyse(hotspan.load(path))

    assert report.evidence.n_spans == 1
    assert report.telemetry.engines[0].n_samples == 1
    assert [f"{path}:2: " in warning for warning in report.evidence.warnings] == [True]


def test_a_run_without_samples_has_none():
    """Absent, not zero."""
    report = hotspan.analyse([hotspan.Trace(CALL.trace_id, [CALL])])

    assert report.telemetry.engines == report.telemetry.gpus == ()
