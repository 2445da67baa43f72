"""Metrics endpoints in each server's own text, and what is made of their lines."""

from __future__ import annotations

import pytest

from hotspan.tracer.engines import ENGINES, prometheus

VLLM = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="tiny"} 2.0
vllm:num_requests_waiting{engine="0",model_name="tiny"} 6.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="tiny",reason="capacity"} 6.0
vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.015625
vllm:prefix_cache_queries_total{engine="0",model_name="tiny"} 963.0
vllm:prefix_cache_queries_created{engine="0",model_name="tiny"} 1.7959926e+09
vllm:request_success_total{engine="0",finished_reason="length",model_name="tiny"} 7.0
vllm:request_success_total{engine="0",finished_reason="stop",model_name="tiny"} 1.0
vllm:request_queue_time_seconds_bucket{engine="0",le="0.3",model_name="tiny"} 5.0
vllm:request_queue_time_seconds_bucket{engine="0",le="+Inf",model_name="tiny"} 8.0
vllm:request_queue_time_seconds_count{engine="0",model_name="tiny"} 8.0
vllm:request_queue_time_seconds_sum{engine="0",model_name="tiny"} 3.25
vllm:request_queue_time_seconds_created{engine="0",model_name="tiny"} 1.7959926e+09
process_resident_memory_bytes 1.2e+09
"""
LLAMACPP = """\
# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 97
llamacpp:prompt_seconds_total 0.171
llamacpp:tokens_predicted_total 50
llamacpp:tokens_predicted_seconds_total 0.131
llamacpp:requests_processing 2
llamacpp:requests_deferred 2
llamacpp:predicted_tokens_seconds 380.5
"""
SGLANG = """\
sglang:num_running_reqs{engine_type="unified",model_name="tiny",pp_rank="0",tp_rank="0"} 1.0
sglang:num_queue_reqs{engine_type="unified",model_name="tiny",pp_rank="0",tp_rank="0"} 3.0
sglang:token_usage{engine_type="unified",model_name="tiny",pp_rank="0",tp_rank="0"} 0.25
sglang:queue_time_seconds_sum{model_name="tiny"} 0.5
sglang:queue_time_seconds_count{model_name="tiny"} 6.0
sglang:per_stage_req_latency_seconds_sum{model_name="tiny",stage="request_process"} 0.001
sglang:per_stage_req_latency_seconds_sum{model_name="tiny",stage="prefill_forward"} 0.125
sglang:per_stage_req_latency_seconds_count{model_name="tiny",stage="prefill_forward"} 6.0
sglang:cached_tokens_total{model_name="tiny"} 30.0
"""
TRITON = """\
nv_inference_request_success{model="embed",version="1"} 9
nv_inference_queue_duration_us{model="embed",version="1"} 62835
nv_inference_pending_request_count{model="embed",version="1"} 0
nv_cpu_utilization 0.5
"""
TRTLLM = """\
trtllm_request_success_total{finished_reason="length"} 4.0
trtllm_request_queue_time_seconds_sum 0.5
trtllm_request_queue_time_seconds_count 4.0
trtllm_kv_cache_utilization 0.125
"""


@pytest.mark.parametrize(
    ("text", "engine", "expected"),
    [
        pytest.param(
            VLLM,
            "vllm",
            {
                "running": 2,
                "waiting": 6,
                "kv_cache_usage": 0.015625,
                "cache_queries": 963,
                "requests": 8,
                "queue": 3.25,
            },
            id="vllm",
        ),
        pytest.param(
            LLAMACPP,
            "llamacpp",
            {
                "computed_tokens": 97,
                "prefill": 0.171,
                "output_tokens": 50,
                "decode": 0.131,
                "running": 2,
                "waiting": 2,
            },
            id="llamacpp",
        ),
        pytest.param(
            SGLANG,
            "sglang",
            {
                "running": 1,
                "waiting": 3,
                "kv_cache_usage": 0.25,
                "queue": 0.5,
                "prefill": 0.125,
                "cache_hits": 30,
            },
            id="sglang",
        ),
        pytest.param(TRITON, "triton", {"requests": 9, "queue": 62835, "waiting": 0}, id="triton"),
        pytest.param(TRTLLM, "trtllm", {"requests": 4, "queue": 0.5, "kv_cache_usage": 0.125}, id="trtllm"),
    ],
)
def test_each_servers_text_gives_what_it_says(text, engine, expected):
    """Its own names become roles; buckets, moments of creation and rates are passed over."""
    found = {}
    for reading in prometheus.readings(text):
        assert reading.engine.name == engine
        found[reading.series.role] = found.get(reading.series.role, 0) + reading.value

    assert found == expected


def test_a_histogram_has_its_sum_and_its_count():
    """The two lines of one series come together, whichever is first; its labels stay."""
    (queue,) = [r for r in prometheus.readings(VLLM) if r.series.role == "queue"]

    assert (queue.name, queue.value, queue.n_observed) == ("vllm:request_queue_time_seconds", 3.25, 8)
    assert queue.labels == (("engine", "0"), ("model_name", "tiny"))


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("", id="blank"),
        pytest.param("vllm:num_requests_running", id="no-value"),
        pytest.param("vllm:num_requests_running NaN", id="nan"),
        pytest.param("vllm:num_requests_running many", id="no-number"),
        pytest.param('vllm:num_requests_running{engine="0" 2', id="open-brace"),
        pytest.param("vllm:something_new 1", id="unknown"),
        pytest.param("vllm:num_requests_running_sum 1", id="not-what-it-is"),
        pytest.param("<html>404</html>", id="no-metrics"),
    ],
)
def test_an_odd_line_costs_itself_only(line):
    """Whatever else is in the text, the good line beside it is read."""
    good = "vllm:num_requests_waiting 3 1795992600000"

    assert [r.value for r in prometheus.readings(f"{line}\n{good}\n{line}")] == [3.0]


def test_labels_may_hold_anything():
    """Quotes, backslashes, braces and line ends in a label's value."""
    text = r'vllm:num_requests_running{model_name="a \"b\" \\ {c} \n, x=\"1\"",engine="0"} 1'
    (reading,) = prometheus.readings(text)

    assert reading.labels == (("model_name", 'a "b" \\ {c} \n, x="1"'), ("engine", "0"))


def test_every_name_of_the_tables_is_found_again():
    """A series is found under the name that its kind has in the text."""
    suffixes = {"gauge": [""], "sum": ["", "_total"], "histogram": ["_sum"]}
    for engine in ENGINES:
        for name, series in engine.series.items():
            labels = '{{{}="{}"}}'.format(*series.only) if series.only else ""
            for suffix in suffixes[series.kind]:
                found = prometheus.readings(f"{name}{suffix}{labels} 2.5")
                assert [(r.name, r.value) for r in found] == [(name, 2.5)]
