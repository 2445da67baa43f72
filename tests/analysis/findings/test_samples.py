"""The rules about an engine's own samples: what each speaks about, what nearly is, and where it is wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_traces import answer, many, request

from hotspan.analysis import analyse
from hotspan.analysis.findings import findings
from hotspan.analysis.telemetry import EngineTelemetry, GpuTelemetry, Level, Telemetry


def level(mean, *, most=None, n=100, above=None):
    """A gauge."""
    return Level(mean, mean if most is None else most, n, (n if mean else 0) if above is None else above)


def sampled(gpu=None, host="here", **engine_says):
    """What was sampled of one engine, and of one GPU."""
    gpus = () if gpu is None else (GpuTelemetry("0", "a GPU", host, 100, utilization=level(gpu)),)
    said = {"address": "127.0.0.1:8000", "n_samples": 100, **engine_says}
    return Telemetry((EngineTelemetry("vllm", **said),), gpus)


SAMPLES = {
    "kv-cache-full": (
        sampled(kv_cache_usage=level(0.9, most=1.0), waiting=level(4.0)),
        sampled(kv_cache_usage=level(0.9, most=1.0), waiting=level(0.2, above=20)),
        # a full cache that keeps nobody waiting does what it is for
        sampled(kv_cache_usage=level(0.99), waiting=level(0.0)),
    ),
    "preemptions": (
        sampled(n_preemptions=30, n_requests=500),
        sampled(n_preemptions=3, n_requests=500),
        sampled(n_preemptions=0, n_requests=500, kv_cache_usage=level(0.99)),
    ),
    "gpu-idle-while-requests-wait": (
        sampled(0.2, waiting=level(4.0)),
        sampled(0.6, waiting=level(4.0)),
        # the GPU that was sampled is not the one that the engine runs on
        sampled(0.0, waiting=level(4.0), address="10.0.0.7:8000"),
    ),
}


@pytest.mark.parametrize("rule", SAMPLES)
def test_samples_of_an_engine(rule):
    """Of the engine's own samples: what a rule speaks about, what nearly is, and where it would be wrong."""
    report = analyse(many(25, lambda k: request(k, 1000, answer(0, 1000))))
    spoke = [
        [finding for finding in findings(replace(report, telemetry=telemetry)) if finding.id == rule]
        for telemetry in SAMPLES[rule]
    ]

    assert [len(found) for found in spoke] == [1, 0, 0]
    assert spoke[0][0].evidence["against"]


def test_every_rule_is_in_the_docs():
    """docs/findings.md has each finding by its id."""
    page = (Path(__file__).parents[3] / "docs" / "findings.md").read_text("utf-8")

    assert {rule for rule in SAMPLES if f"`{rule}" not in page} == set()
