"""What was sampled of engines and GPUs, in words."""

from __future__ import annotations

from hotspan.analysis.telemetry import EngineTelemetry, GpuTelemetry, Level, Telemetry
from hotspan.exporters.reports import telemetry


def level(mean, most):
    """Return a level over ten samples."""
    return Level(mean, most, 10, 10)


def test_an_engine_says_what_ran_and_what_waited():
    """Means and the most that a sample saw, the cache, and what the engine counted."""
    engine = EngineTelemetry(
        "vllm",
        "127.0.0.1:8000",
        n_samples=10,
        running=level(1.9, 2),
        waiting=level(2.31, 12),
        kv_cache_usage=level(0.1, 0.625),
        prefix_cache_hit_ratio=0.96,
        n_preemptions=1,
        draft_acceptance_ratio=0.7,
    )

    assert telemetry.lines(Telemetry(engines=(engine,))) == [
        [
            "vllm at 127.0.0.1:8000",
            "1.90 (max 2) running",
            "2.31 (max 12) waiting",
            "KV cache up to 62.5 %",
            "96.0 % of prompt tokens cached",
            "70.0 % of drafted tokens accepted",
            "1 preemption",
            "10 samples",
        ]
    ]


def test_what_an_engine_does_not_say_is_not_there():
    """llama.cpp has no gauge of its cache and no count of preemptions."""
    engine = EngineTelemetry("llamacpp", "", n_samples=1, running=level(1, 1), n_preemptions=0)

    assert telemetry.lines(Telemetry(engines=(engine,))) == [["llamacpp", "1.00 (max 1) running", "1 sample"]]


def test_a_gpu_says_how_much_of_it_was_used():
    """Time, memory and power, as far as the driver knows."""
    full = GpuTelemetry("0", "NVIDIA H200", "box", 10, level(0.5, 1.0), level(0.4, 0.9), level(350.2, 700))
    bare = GpuTelemetry("1", "", "box", 10)

    assert telemetry.lines(Telemetry(gpus=(full, bare))) == [
        ["GPU 0 NVIDIA H200", "50.0 % used (max 100.0 %)", "memory up to 90.0 %", "350 W"],
        ["GPU 1"],
    ]


def test_nothing_sampled_says_nothing():
    """No line, not an empty one."""
    assert telemetry.lines(Telemetry()) == []
