"""Rules about the wait for the first token: the engine's queue, or reading the prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotspan.analysis.findings.figures import (
    MUCH,
    WORTHWHILE,
    milliseconds,
    phase_ms,
    phase_ns,
    phase_share,
    printed,
    slow_share,
)
from hotspan.analysis.model import Finding, Report
from hotspan.analysis.words import percent
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator


def queue(report: Report) -> Iterator[Finding]:
    """Say that calls wait for others before the engine begins with them."""
    found = _dominates(report, "queue")
    if found is None:
        return
    own_ns, of_wait, share = found
    slow = slow_share(report, semconv.GENERATION, "queue")
    of_slow = f" and {printed(report, slow)} of the slowest requests" if slow is not None else ""
    running = [engine.running for engine in report.telemetry.engines if engine.running is not None]
    yield Finding(
        "queue-dominates-first-token",
        "warning",
        f"Queueing in the engine is {printed(report, share)} of request time{of_slow}: it takes "
        f"{percent(of_wait)} of the wait for the first token. Calls wait for others, not for their own "
        "prompt.",
        {
            "mean_queue_ms": milliseconds(own_ns),
            "queue_of_first_token_ratio": of_wait,
            "queue_of_request_ratio": share,
            "queue_of_slowest_ratio": slow,
            "most_running_at_once": max((level.max for level in running), default=None),
            "against": {
                "mean_prefill_ms": phase_ms(report, "prefill"),
                "mean_wait_for_first_token_ms": milliseconds(own_ns / of_wait),
            },
        },
        "Send fewer calls at once, let the engine run more of them if memory allows (vLLM: --max-num-seqs, "
        "SGLang: --max-running-requests), or add a replica.",
    )


def prefill(report: Report) -> Iterator[Finding]:
    """Say that reading the prompt decides when an answer begins."""
    found = _dominates(report, "prefill")
    if found is None:
        return
    own_ns, of_wait, share = found
    tokens, n_ok = report.generation.tokens, report.generation.status.get("ok", 0)
    cached = None if tokens.cached_prompt is None else tokens.cached_prompt / max(tokens.prompt or 0, 1)
    is_unused = cached is not None and cached < WORTHWHILE
    yield Finding(
        "prefill-dominates-first-token",
        "warning",
        "Most of the wait for the first token is spent on reading the prompt"
        + (", and next to nothing of it comes from the prefix cache." if is_unused else "."),
        {
            "mean_prefill_ms": milliseconds(own_ns),
            "prefill_of_first_token_ratio": of_wait,
            "prefill_of_request_ratio": share,
            "mean_prompt_tokens_per_call": tokens.prompt / n_ok
            if tokens.prompt is not None and n_ok
            else None,
            "against": {
                "mean_queue_ms": phase_ms(report, "queue"),
                "mean_wait_for_first_token_ms": milliseconds(own_ns / of_wait),
                "cached_prompt_ratio": cached,
            },
        },
        "Put fewer or shorter passages into the prompt; its fixed part first, for the prefix cache.",
    )


def _dominates(report: Report, name: str) -> tuple[float, float, float] | None:
    """Return a phase's mean, its share of the first token's wait and of request time, if it decides."""
    own = phase_ns(report, name)
    wait = sum(phase_ns(report, phase) for phase in ("server_before_engine", "queue", "prefill"))
    share = phase_share(report, name) or 0.0
    if not wait or own / wait <= MUCH or share < WORTHWHILE:
        return None
    return own, own / wait, share
