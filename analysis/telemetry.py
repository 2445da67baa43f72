"""What samples of an engine's metrics endpoint and of the GPUs say of a run.  Never of one call.

Levels (requests that run or wait, cache use) are what the samples saw; everything that an engine counts is
the difference between its first and its last sample.  Rules: docs/definitions.md#engine-telemetry.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

JsonDict = dict[str, Any]
_MS_PER_NS = 1e-6


@dataclass(frozen=True, slots=True)
class Level:
    """A gauge over the samples of a run."""

    mean: float
    max: float
    n_samples: int
    n_above_zero: int  # samples in which it was not 0

    def to_dict(self) -> JsonDict:
        """Return the JSON form."""
        return {
            "mean": self.mean,
            "max": self.max,
            "samples": self.n_samples,
            "samples_above_zero": self.n_above_zero,
        }


@dataclass(frozen=True, slots=True)
class EngineTelemetry:
    """One engine's metrics endpoint over the run; `None` where it does not say.

    Times are those of all requests that the engine finished between the first and the last sample, whoever
    sent them: an engine that serves others too counts theirs as well.
    """

    engine: str  # vllm | llamacpp | sglang | trtllm | triton
    address: str  # host:port of the endpoint
    n_samples: int = 0
    duration_ns: int = 0  # first to last sample
    running: Level | None = None  # requests in the running batch
    waiting: Level | None = None  # requests in the engine's queue
    kv_cache_usage: Level | None = None  # ratio
    n_requests: int | None = None  # finished
    queue_ns: int | None = None  # of the finished requests together, as the two below
    prefill_ns: int | None = None
    decode_ns: int | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    prefix_cache_hit_ratio: float | None = None  # of the prompt tokens that were looked up
    n_preemptions: int | None = None  # requests put back because the KV cache was full
    draft_acceptance_ratio: float | None = None  # speculative decoding: accepted of drafted tokens

    def to_dict(self) -> JsonDict:
        """Return the JSON form."""
        return {
            "engine": self.engine,
            "address": self.address,
            "samples": self.n_samples,
            "duration_ms": self.duration_ns * _MS_PER_NS,
            "running": _level(self.running),
            "waiting": _level(self.waiting),
            "kv_cache_usage": _level(self.kv_cache_usage),
            "requests": self.n_requests,
            "queue_ms": _ms(self.queue_ns),
            "prefill_ms": _ms(self.prefill_ns),
            "decode_ms": _ms(self.decode_ns),
            "prompt_tokens": self.prompt_tokens,
            "output_tokens": self.output_tokens,
            "prefix_cache_hit_ratio": self.prefix_cache_hit_ratio,
            "preemptions": self.n_preemptions,
            "draft_acceptance_ratio": self.draft_acceptance_ratio,
        }


@dataclass(frozen=True, slots=True)
class GpuTelemetry:
    """One GPU of the sampling machine over the run; `None` where the driver does not say."""

    index: str  # the driver's number
    name: str
    host: str
    n_samples: int = 0
    utilization: Level | None = None  # ratio of the time in which a kernel ran
    memory_usage: Level | None = None  # ratio of its memory
    power_watts: Level | None = None

    def to_dict(self) -> JsonDict:
        """Return the JSON form."""
        return {
            "index": self.index,
            "name": self.name,
            "host": self.host,
            "samples": self.n_samples,
            "utilization": _level(self.utilization),
            "memory_usage": _level(self.memory_usage),
            "power_watts": _level(self.power_watts),
        }


@dataclass(frozen=True, slots=True)
class Telemetry:
    """What was sampled beside the spans; empty where nothing was."""

    engines: tuple[EngineTelemetry, ...] = field(default=())
    gpus: tuple[GpuTelemetry, ...] = field(default=())

    def to_dict(self) -> JsonDict:
        """Return the JSON form."""
        return {
            "engines": [engine.to_dict() for engine in self.engines],
            "gpus": [gpu.to_dict() for gpu in self.gpus],
        }


def _ms(ns: float | None) -> float | None:
    return None if ns is None else ns * _MS_PER_NS


def _level(level: Level | None) -> JsonDict | None:
    return None if level is None else level.to_dict()
