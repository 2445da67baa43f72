"""Rules about the engine's own samples: its cache, its queue, its GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.analysis.findings.figures import MUCH, SELDOM
from hotspan.analysis.model import Finding, Report
from hotspan.analysis.words import percent, significant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hotspan.analysis.telemetry import EngineTelemetry, GpuTelemetry, Level

_FULL: Final = 0.95  # of the KV cache
_MIN_SAMPLES: Final = 10
_LOOPBACK: Final = ("127.", "localhost", "[::1]", "::1")


def cache_full(report: Report) -> Iterator[Finding]:
    """Say that requests wait because the KV cache has no room for them."""
    for engine in report.telemetry.engines:
        cache, waiting = engine.kv_cache_usage, engine.waiting
        if cache is None or waiting is None or waiting.n_samples < _MIN_SAMPLES:
            continue
        if cache.max >= _FULL and cache.mean >= MUCH and waiting.n_above_zero > MUCH * waiting.n_samples:
            yield Finding(
                "kv-cache-full",
                "warning",
                f"The KV cache of {_name(engine)} was up to {percent(cache.max)} full while "
                f"{significant(waiting.mean)} requests waited (mean): memory bounds how many run at once.",
                {
                    "kv_cache_mean_ratio": cache.mean,
                    "kv_cache_max_ratio": cache.max,
                    "mean_waiting": waiting.mean,
                    "preemptions": engine.n_preemptions,
                    "against": {
                        "mean_running": None if engine.running is None else engine.running.mean,
                        "samples_without_waiting": waiting.n_samples - waiting.n_above_zero,
                    },
                },
                "Give the cache more memory (vLLM: --gpu-memory-utilization, SGLang: --mem-fraction-static; "
                "a quantised cache), shorten prompts and answers, or add a replica.",
            )


def preemptions(report: Report) -> Iterator[Finding]:
    """Say that running requests were thrown out and begun again."""
    for engine in report.telemetry.engines:
        n, n_requests = engine.n_preemptions, engine.n_requests
        if n and n_requests and n >= SELDOM * n_requests:
            cache = engine.kv_cache_usage
            yield Finding(
                "preemptions",
                "warning",
                f"{_name(engine)} threw out running requests {n} times for {n_requests} that it finished: "
                "what they had computed is computed again.",
                {
                    "preemptions": n,
                    "kv_cache_max_ratio": None if cache is None else cache.max,
                    "against": {"finished_requests": n_requests},
                },
                "Let fewer requests run at once (vLLM: --max-num-seqs, SGLang: --max-running-requests), or "
                "give the KV cache more memory.",
            )


def idle_gpu(report: Report) -> Iterator[Finding]:
    """Say that requests wait though the GPU has time to spare."""
    for engine in report.telemetry.engines:
        gpus = [gpu for gpu in report.telemetry.gpus if _is_beside(engine, gpu)]
        used = [gpu.utilization for gpu in gpus if gpu.utilization is not None]
        waiting, cache = engine.waiting, engine.kv_cache_usage
        if waiting is None or not used or min(waiting.n_samples, _samples(used)) < _MIN_SAMPLES:
            continue
        busiest = max(level.mean for level in used)
        is_full = cache is not None and cache.max >= _FULL
        if busiest < MUCH and waiting.n_above_zero > MUCH * waiting.n_samples and not is_full:
            yield Finding(
                "gpu-idle-while-requests-wait",
                "warning",
                f"{significant(waiting.mean)} requests waited in {_name(engine)} (mean) while the busiest "
                f"GPU ran {percent(busiest)} of the time: something before the GPU is the bound.",
                {
                    "mean_waiting": waiting.mean,
                    "busiest_gpu_mean_ratio": busiest,
                    "mean_running": None if engine.running is None else engine.running.mean,
                    "against": {
                        "kv_cache_max_ratio": None if cache is None else cache.max,
                        "samples_without_waiting": waiting.n_samples - waiting.n_above_zero,
                    },
                },
                "Raise the number of requests that may run at once (vLLM: --max-num-seqs, SGLang: "
                "--max-running-requests), and look at the CPU of the server: tokenizer, scheduler and HTTP "
                "front end share it.",
            )


def _name(engine: EngineTelemetry) -> str:
    return f"{engine.engine} at {engine.address}"


def _is_beside(engine: EngineTelemetry, gpu: GpuTelemetry) -> bool:
    """Whether the GPU is one of the engine's machine, as far as the address tells."""
    return engine.address.startswith(_LOOPBACK) or engine.address.rsplit(":", 1)[0] == gpu.host


def _samples(levels: Sequence[Level]) -> int:
    return min(level.n_samples for level in levels)
