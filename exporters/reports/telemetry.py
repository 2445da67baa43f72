"""What was sampled of engines and GPUs, in words: how many requests ran and waited, and what bound them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotspan.exporters.reports import figures
from hotspan.exporters.reports.figures import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotspan.analysis.telemetry import EngineTelemetry, GpuTelemetry, Level, Telemetry

Line = list[str]  # parts that belong on one line, where they fit on it


def lines(telemetry: Telemetry) -> list[Line]:
    """Return a line for each engine and each GPU; none where nothing was sampled."""
    engines = [list(_engine(engine)) for engine in telemetry.engines]
    return engines + [list(_gpu(gpu)) for gpu in telemetry.gpus]


def _engine(engine: EngineTelemetry) -> Iterator[str]:
    yield f"{engine.engine} at {engine.address}" if engine.address else engine.engine
    if engine.running is not None:
        yield f"{_level(engine.running)} running"
    if engine.waiting is not None:
        yield f"{_level(engine.waiting)} waiting"
    if (cache := engine.kv_cache_usage) is not None:
        yield f"KV cache up to {figures.percent(cache.max)}"
    if (ratio := engine.prefix_cache_hit_ratio) is not None:
        yield f"{figures.percent(ratio)} of prompt tokens cached"
    if (ratio := engine.draft_acceptance_ratio) is not None:
        yield f"{figures.percent(ratio)} of drafted tokens accepted"
    if engine.n_preemptions:
        yield counted(engine.n_preemptions, "preemption")
    yield counted(engine.n_samples, "sample")


def _gpu(gpu: GpuTelemetry) -> Iterator[str]:
    yield f"GPU {gpu.index} {gpu.name}".strip()
    if (used := gpu.utilization) is not None:
        yield f"{figures.percent(used.mean)} used (max {figures.percent(used.max)})"
    if gpu.memory_usage is not None:
        yield f"memory up to {figures.percent(gpu.memory_usage.max)}"
    if gpu.power_watts is not None:
        yield f"{figures.mean(gpu.power_watts.mean)} W"


def _level(level: Level) -> str:
    return f"{figures.mean(level.mean)} (max {level.max:,.0f})"
