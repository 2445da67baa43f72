"""Reports written by hand: what a renderer is given when the analysis is not what is tested."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hotspan.analysis.report import (
    Amplification,
    Distribution,
    Evidence,
    Finding,
    GenerationSummary,
    PerRequest,
    PhaseRow,
    Report,
    RequestSummary,
    StageRow,
    TokenCounts,
    Unattributed,
    WhatIf,
)
from hotspan.testing import build_trace

GOLDEN = Path(__file__).parent / "golden"

MS = 1_000_000


def dist(p50: float, p95: float, p99: float | None = None, n: int = 50, *, scale: float = MS) -> Distribution:
    """A distribution with these percentiles, in milliseconds unless scaled otherwise; p99 weak below 1000."""
    p99 = p95 if p99 is None else p99
    return Distribution(
        n=n,
        mean=p50 * scale,
        min=p50 * scale / 2,
        p50=p50 * scale,
        p90=p95 * scale * 0.9,
        p95=p95 * scale,
        p99=p99 * scale,
        max=p99 * scale,
        p95_interval=None,
        weak=("p99",) if n < 1000 else (),
    )


def stage(
    name: str, calls: int, duration: Distribution | None, ratio: float | None, **changes: Any
) -> StageRow:
    """A stage row with plausible totals."""
    total_ns = 0 if duration is None else int(duration.mean * calls)
    values: dict[str, Any] = {
        "stage": name,
        "n_calls": calls,
        "n_errors": 0,
        "n_cancelled": 0,
        "calls_per_request": PerRequest(calls / 50, calls / 50, calls / 50, calls / 50),
        "duration_ns": duration,
        "busy_ns": total_ns,
        "wall_ns": total_ns,
        "self_ns": total_ns,
        "critical_path_ns": None if ratio is None else total_ns,
        "critical_path_ratio": ratio,
    }
    return StageRow(**values | changes)


def phase(name: str, p50: float, p95: float, ratio: float) -> PhaseRow:
    """A phase with durations in milliseconds."""
    return PhaseRow(name, p50 * MS, p50 * MS, p95 * MS, ratio, {"engine span": 182})


PHASES = (
    phase("queue", 3, 390, 0.214),
    phase("prefill", 41, 96, 0.090),
    phase("decode", 301, 420, 0.452),
    phase("connect", 0.02, 0.1, 0.001),
    phase("consumer_hold", 9, 14, 0.024),
)

GENERATION = GenerationSummary(
    n_calls=182,
    n_attempts=182,
    status={"ok": 182, "error": 0, "truncated": 0, "cancelled": 0, "abandoned": 0},
    ttft_ns=dist(88, 471, n=182),
    tpot_ns=dist(4.8, 6.1, n=182),
    output_tokens_per_s=dist(208, 310, n=182, scale=1),
    tokens=TokenCounts(
        prompt=182 * 812, cached_prompt=int(182 * 812 * 0.62), output=182 * 64, n_prompt=182, n_output=182
    ),
)

FULL = Report(
    evidence=Evidence(
        files=("runs/run.jsonl",), n_spans=612, n_traces=50, n_requests=50, overhead_per_span_ns=912.0
    ),
    request=RequestSummary(50, 0, 1, dist(1840, 3920, 5100)),
    stages=(
        stage("request", 50, dist(1840, 3920, 5100), None),
        stage("agent", 50, dist(1700, 3500, 4900), None),
        stage("generation", 182, dist(402, 911, 1200, n=182), 0.7813, phases=PHASES),
        stage("rerank", 50, dist(212, 260, 300), 0.1193),
        stage("embedding", 50, dist(48, 71, 80), 0.0281),
        stage("retrieval", 50, dist(2.1, 3.4, 4), 0.0402),
        stage("context_assembly", 50, dist(0.031, 0.055, 0.06), 0.0189),
    ),
    unattributed=Unattributed(12 * MS, 0.0122),
    generation=GENERATION,
    amplification=Amplification(
        n_requests=50,
        is_agent=True,
        model_calls=PerRequest(3.64, 3, 7, 8),
        attempts=PerRequest(3.64, 3, 7, 8),
        sequential_depth=PerRequest(3.2, 3, 6, 8),
        parallelism=1.1,
        prompt_tokens_resent_ratio=0.41,
        cached_prompt_ratio=0.62,
        time_amplification=PerRequest(3.3, 3, 7, 8),
    ),
    what_if=(WhatIf("rerank x0.5", -0.058, -0.041),),
    findings=(
        Finding(
            id="queueing",
            severity="warning",
            text="Queueing is 21 % of request time and 55 % of the slowest 5 %.",
            evidence={"queue_ratio": 0.214, "queue_p95_ms": 390.0, "prefill_p95_ms": 96.0},
            next_step="cap concurrency at 8, or add a replica",
        ),
    ),
)


@pytest.fixture
def full_report():
    """A report in which every block has something to say."""
    return FULL


@pytest.fixture
def by_hand():
    """The builders of this file: dist, stage, phase."""
    return SimpleNamespace(dist=dist, stage=stage, phase=phase, phases=PHASES, generation=GENERATION)


@pytest.fixture
def golden():
    """Compare a text with the file that holds what it was when a person last looked at it.

    HOTSPAN_UPDATE_GOLDEN=1 writes the files anew; read the difference before committing it.
    """

    def compare(text: str, name: str) -> None:
        path = GOLDEN / name
        if os.environ.get("HOTSPAN_UPDATE_GOLDEN"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return compare


def _at(start_ms: float, end_ms: float) -> tuple[int, int]:
    zero_ns = 1_700_000_000 * 10**9
    return zero_ns + int(start_ms * MS), zero_ns + int(end_ms * MS)


@pytest.fixture
def rag_trace():
    """One RAG request on a server that traces itself, with two tools at once and a span that ends late."""
    spans = (
        ("answer", *_at(0, 1840)),
        ("embed_query", *_at(1, 49), "answer"),
        ("retrieval faiss", *_at(50, 52), "answer"),
        ("rerank", *_at(52, 264), "answer"),
        ("tool search", *_at(264, 400), "answer"),
        ("tool lookup", *_at(270, 350), "answer"),
        ("chat tiny", *_at(400, 1839), "answer"),
        ("POST", *_at(401, 1838), "chat tiny"),
        ("llm_request", *_at(9000, 10_400), "POST"),
        ("log", *_at(1839.5, 1900), "answer"),
    )
    engine = {
        "gen_ai.latency.time_in_queue": 0.0031,
        "gen_ai.latency.time_in_model_prefill": 0.041,
        "gen_ai.latency.time_in_model_decode": 1.301,
    }
    stages = {
        "answer": "request",
        "embed_query": "embedding",
        "retrieval faiss": "retrieval",
        "rerank": "rerank",
        "tool search": "tool",
        "tool lookup": "tool",
        "chat tiny": "generation",
    }
    return build_trace(
        *spans, stages=stages, attributes={"llm_request": engine}, trace_id="4bf92f3577b34da6a3ce929d0e0e4736"
    )
