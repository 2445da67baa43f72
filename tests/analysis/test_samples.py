"""What samples of an engine say of a run: levels as seen, counts as they grew."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotspan.analysis.samples import telemetry_of
from hotspan.analysis.telemetry import Level, Telemetry
from hotspan.tracer import semconv
from hotspan.tracer.metric import MetricPoint
from hotspan.tracer.record import Resource

VLLM = Resource({semconv.ENGINE: "vllm", semconv.SERVER_ADDRESS: "10.0.0.7", semconv.SERVER_PORT: 8000})


def points(name, kind, *values, labels=None, resource=VLLM, start=1):
    """Return a series, one value a second; a histogram's values are pairs of sum and count."""
    pairs = [value if isinstance(value, tuple) else (value, None) for value in values]
    return [
        MetricPoint(name, kind, at, float(value), count, attributes=labels or {}, resource=resource)
        for at, (value, count) in enumerate(pairs, start=start)
    ]


def engine_of(*series):
    """Return what the series of one engine say."""
    (engine,) = telemetry_of([point for one in series for point in one]).engines
    return engine


def test_levels_are_what_the_samples_saw():
    """Requests of several ranks are added at each sample; of their caches the fullest counts."""
    found = engine_of(
        points("vllm:num_requests_waiting", "gauge", 0, 12, 3, labels={"engine": "0"}),
        points("vllm:num_requests_waiting", "gauge", 0, 1, 0, labels={"engine": "1"}),
        points("vllm:kv_cache_usage_perc", "gauge", 0.1, 0.5, 0.2, labels={"engine": "0"}),
        points("vllm:kv_cache_usage_perc", "gauge", 0.9, 0.25, 0.2, labels={"engine": "1"}),
    )

    assert found.waiting == Level(mean=pytest.approx(16 / 3), max=13, n_samples=3, n_above_zero=2)
    assert found.kv_cache_usage.max == 0.9
    assert found.running is None
    assert (found.n_samples, found.duration_ns) == (3, 2)


def test_counts_are_what_grew():
    """The first sample is where the run began; a series that came later began at nothing."""
    found = engine_of(
        points("vllm:request_success", "sum", 100, 104, 110, labels={"finished_reason": "stop"}),
        points("vllm:request_success", "sum", 2, labels={"finished_reason": "length"}, start=3),
        points("vllm:request_queue_time_seconds", "histogram", (9.0, 102), (9.5, 106), (12.0, 114)),
        points("vllm:prefix_cache_queries", "sum", 1000, 1500, 3000),
        points("vllm:prefix_cache_hits", "sum", 500, 500, 1000),
        points("vllm:num_preemptions", "sum", 3, 3, 3),
    )

    assert (found.n_requests, found.queue_ns) == (12, 3_000_000_000)
    assert found.prefix_cache_hit_ratio == 0.25
    assert found.n_preemptions == 0
    assert (found.prefill_ns, found.draft_acceptance_ratio) == (None, None)


def test_an_engine_that_began_again_counts_from_nothing():
    """A counter that fell is that of a new process."""
    found = engine_of(points("vllm:request_success", "sum", 100, 104, 3, 5))

    assert found.n_requests == 4 + 3 + 2


def test_llamacpps_prompt_tokens_leave_out_the_cached_ones():
    """Both together are the prompt; the hits are a share of that."""
    llama = Resource({semconv.ENGINE: "llamacpp", semconv.SERVER_ADDRESS: "h", semconv.SERVER_PORT: 1})
    found = engine_of(
        points("llamacpp:prompt_tokens", "sum", 0, 25, resource=llama),
        points("llamacpp:prompt_tokens_cached", "sum", 0, 75, resource=llama),
        points("llamacpp:prompt_seconds", "sum", 0.0, 0.5, resource=llama),
    )

    assert (found.prompt_tokens, found.prefix_cache_hit_ratio) == (100, 0.75)
    assert found.prefill_ns == 500_000_000
    assert (found.engine, found.address, found.n_requests) == ("llamacpp", "h:1", None)


def test_a_collectors_names_are_known_too():
    """Scraped by an OpenTelemetry Collector: `_total` stays on the name, the endpoint is the instance."""
    scraped = Resource({"service.name": "vllm", semconv.SERVICE_INSTANCE_ID: "10.0.0.7:8000"})
    found = engine_of(points("vllm:request_success_total", "sum", 1, 4, resource=scraped))

    assert (found.engine, found.address, found.n_requests) == ("vllm", "10.0.0.7:8000", 3)


def test_each_endpoint_is_told_apart_and_gpus_are_beside_them():
    """Two servers, one GPU; what nobody knows is passed over."""
    other = VLLM._replace(attributes={**VLLM.attributes, semconv.SERVER_PORT: 8001})
    gpu = {
        "resource": Resource({semconv.HOST_NAME: "box"}),
        "labels": {semconv.GPU_ID: "0", semconv.GPU_NAME: "H"},
    }
    found = telemetry_of([
        *points("vllm:num_requests_running", "gauge", 1),
        *points("vllm:num_requests_running", "gauge", 2, resource=other),
        *points(semconv.GPU_UTILIZATION, "gauge", 0.5, 1.0, **gpu),
        *points("process_cpu_seconds", "sum", 3),
    ])  # fmt: skip

    assert [(one.address, one.running.mean) for one in found.engines] == [
        ("10.0.0.7:8000", 1),
        ("10.0.0.7:8001", 2),
    ]
    assert [(one.index, one.name, one.host, one.utilization.mean) for one in found.gpus] == [
        ("0", "H", "box", 0.75)
    ]
    assert found.gpus[0].power_watts is None


def test_nothing_sampled_is_nothing():
    """Empty, and not zero."""
    assert telemetry_of([]) == Telemetry()


@given(st.lists(st.integers(0, 1000), min_size=1), st.randoms())
def test_growth_is_never_negative_and_does_not_depend_on_the_order(values, random):
    """Lines of one file may be in any order."""
    series = points("vllm:request_success", "sum", *values)
    shuffled = random.sample(series, len(series))

    assert engine_of(series) == engine_of(shuffled)
    assert 0 <= engine_of(series).n_requests <= sum(values)
