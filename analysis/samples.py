"""From metric points to what they say of the run: `Telemetry`.

A gauge is what the samples saw.  A counter is what it grew by, from the endpoint's first sample to its last;
one that fell began again with its process.  Series of one role and several labels (models, ranks) are added.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from hotspan.analysis.telemetry import EngineTelemetry, GpuTelemetry, Level, Telemetry
from hotspan.tracer import semconv
from hotspan.tracer.engines import Engine, engine_of_series

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from hotspan.tracer.engines.base import Role
    from hotspan.tracer.metric import MetricPoint


def telemetry_of(points: Iterable[MetricPoint]) -> Telemetry:
    """Return what sampled points say; those of no known engine and no GPU are passed over.

    Args:
        points: In any order, of any number of endpoints; not changed.
    """
    by_engine: dict[tuple[Engine, str], list[_Sample]] = defaultdict(list)
    by_gpu: dict[tuple[str, str, str], list[MetricPoint]] = defaultdict(list)
    for point in sorted(points, key=lambda point: point.time_ns):
        name = point.name.removesuffix("_total")
        if (engine := engine_of_series(name)) is not None:
            by_engine[engine, _address(point)].append(_Sample(engine.series[name].role, point))
        elif point.name in _GPU_FIELDS:
            by_gpu[_gpu(point)].append(point)
    return Telemetry(
        engines=tuple(_engine(engine, at, samples) for (engine, at), samples in by_engine.items()),
        gpus=tuple(_gpu_telemetry(key, found) for key, found in by_gpu.items()),
    )


class _Sample(NamedTuple):
    role: Role
    point: MetricPoint

    @property
    def series(self) -> tuple[str, frozenset[tuple[str, object]]]:
        return self.point.name, frozenset((key, str(value)) for key, value in self.point.attributes.items())


def _address(point: MetricPoint) -> str:
    said = point.resource.attributes
    host, port = said.get(semconv.SERVER_ADDRESS), said.get(semconv.SERVER_PORT)
    if host is None:  # scraped by a collector
        return str(said.get(semconv.SERVICE_INSTANCE_ID) or "")
    return str(host) if port is None else f"{host}:{port}"


def _engine(engine: Engine, address: str, samples: Sequence[_Sample]) -> EngineTelemetry:
    times = sorted({sample.point.time_ns for sample in samples})
    grown = _growths(samples, times[0])

    def counted(role: Role) -> int | None:
        return round(grown[role]) if role in grown else None

    def spent(role: Role) -> int | None:
        if role not in grown:
            return None
        return round(grown[role] * _scale(engine, role))

    computed, hits = counted("computed_tokens"), counted("cache_hits")
    prompt = counted("prompt_tokens") if computed is None else computed + (hits or 0)
    queries = counted("cache_queries")
    return EngineTelemetry(
        engine.name,
        address,
        n_samples=len(times),
        duration_ns=times[-1] - times[0],
        running=_level(samples, "running", sum),
        waiting=_level(samples, "waiting", sum),
        kv_cache_usage=_level(samples, "kv_cache_usage", max),
        n_requests=counted("requests"),
        queue_ns=spent("queue"),
        prefill_ns=spent("prefill"),
        decode_ns=spent("decode"),
        prompt_tokens=prompt,
        output_tokens=counted("output_tokens"),
        prefix_cache_hit_ratio=_ratio(hits, prompt if queries is None else queries),
        n_preemptions=counted("preemptions"),
        draft_acceptance_ratio=_ratio(counted("accepted"), counted("drafted")),
    )


def _scale(engine: Engine, role: Role) -> float:
    return next(series.scale for series in engine.series.values() if series.role == role)


def _growths(samples: Sequence[_Sample], first_ns: int) -> Mapping[Role, float]:
    """Return by how much the counters, and the sums of the histograms, of each role grew, over all labels."""
    latest: dict[object, float] = {}
    grown: dict[Role, float] = defaultdict(float)
    for sample in samples:  # in order of time
        point = sample.point
        if point.kind == "gauge":
            continue
        # A series that was not there at first has counted from nothing.
        before = latest.get(sample.series, point.value if point.time_ns == first_ns else 0.0)
        grown[sample.role] += point.value - (before if point.value >= before else 0.0)
        latest[sample.series] = point.value
    return grown


def _level(samples: Sequence[_Sample], role: Role, joined: Callable[[list[float]], float]) -> Level | None:
    at: dict[int, list[float]] = defaultdict(list)
    for sample in samples:
        if sample.role == role:
            at[sample.point.time_ns].append(sample.point.value)
    return _level_of([joined(values) for values in at.values()])


def _level_of(values: Sequence[float]) -> Level | None:
    if not values:
        return None
    return Level(sum(values) / len(values), max(values), len(values), sum(value > 0 for value in values))


def _ratio(part: int | None, whole: int | None) -> float | None:
    return part / whole if part is not None and whole else None


_GPU_FIELDS = {
    semconv.GPU_UTILIZATION: "utilization",
    semconv.GPU_MEMORY_USAGE: "memory_usage",
    semconv.GPU_POWER: "power_watts",
}


def _gpu(point: MetricPoint) -> tuple[str, str, str]:
    host = point.resource.attributes.get(semconv.HOST_NAME)
    said = (point.attributes.get(semconv.GPU_ID), point.attributes.get(semconv.GPU_NAME), host)
    index, name, host_name = ("" if value is None else str(value) for value in said)
    return index, name, host_name


def _gpu_telemetry(key: tuple[str, str, str], points: Sequence[MetricPoint]) -> GpuTelemetry:
    index, name, host = key
    levels = {
        field: _level_of([point.value for point in points if point.name == metric])
        for metric, field in _GPU_FIELDS.items()
    }
    n_samples = len({point.time_ns for point in points})
    return GpuTelemetry(index, name, host, n_samples, **levels)
