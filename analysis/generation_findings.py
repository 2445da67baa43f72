"""What stands out in the model calls of a report: the rules about attempts, phases and streams.

Times in the evidence are means over the successful calls, and say so: phases add up as means alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotspan.analysis.finding_figures import (
    MUCH,
    WORTHWHILE,
    milliseconds,
    percent,
    phase_ms,
    phase_ns,
    share_of,
)
from hotspan.analysis.model import Finding, GenerationSummary, Report
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator


def broken_answers(report: Report) -> Iterator[Finding]:
    """Say how many model calls failed or broke off."""
    generation = report.generation
    bad = {name: generation.status.get(name, 0) for name in ("error", "truncated")}
    n_bad = sum(bad.values())
    if n_bad:
        ratio = n_bad / generation.n_calls
        yield Finding(
            "model-calls-failed",
            "warning",
            f"{n_bad} of {generation.n_calls} model calls failed or broke off before their end.",
            {**bad, "failed_ratio": ratio, "against": {"ok": generation.status.get("ok", 0)}},
            "Read the server's log at the time of these calls; a stream that breaks off is no short answer.",
        )


def retries(report: Report) -> Iterator[Finding]:
    """Say that calls took several attempts."""
    generation = report.generation
    extra = generation.n_attempts - generation.n_calls
    if extra > 0:
        yield Finding(
            "retries",
            "warning",
            f"{generation.n_calls} model calls took {generation.n_attempts} attempts.",
            {
                "attempts": generation.n_attempts,
                "calls": generation.n_calls,
                "mean_backoff_ms": phase_ms(report, "backoff"),
                "against": {"ok": generation.status.get("ok", 0)},
            },
            "Find what the first attempts failed of (status, timeout); a retry costs the whole call again.",
        )


def first_token(report: Report) -> Iterator[Finding]:
    """Say what the wait for the first token is made of: the queue, or reading the prompt."""
    queue, prefill = phase_ns(report, "queue"), phase_ns(report, "prefill")
    wait = queue + prefill + phase_ns(report, "server_before_engine")
    mean = sum(value or 0.0 for value in report.generation.phases_ns.values())
    share = share_of(report, semconv.GENERATION)
    for name, own, other in (("queue", queue, "prefill"), ("prefill", prefill, "queue")):
        request_share = share * own / mean if mean else 0.0
        if not wait or own / wait <= MUCH or request_share < WORTHWHILE:
            continue
        evidence = {
            f"mean_{name}_ms": milliseconds(own),
            f"{name}_of_first_token_ratio": own / wait,
            f"{name}_of_request_ratio": request_share,
            "against": {
                f"mean_{other}_ms": phase_ms(report, other),
                "mean_wait_for_first_token_ms": milliseconds(wait),
            },
        }
        yield _queue_finding(own / wait, evidence) if name == "queue" else _prefill_finding(report, evidence)


def _queue_finding(ratio: float, evidence: dict[str, Any]) -> Finding:
    return Finding(
        "queue-dominates-first-token",
        "warning",
        f"{percent(ratio)} of the wait for the first token is spent in the engine's queue: calls wait for "
        "others, not for their own prompt.",
        evidence,
        "Send fewer calls at once, raise the engine's --max-num-seqs if memory allows, or add a replica.",
    )


def _prefill_finding(report: Report, evidence: dict[str, Any]) -> Finding:
    cached = report.amplification.cached_prompt_ratio
    tokens = report.generation.tokens.prompt
    calls = report.generation.n_calls
    if tokens is not None and calls:
        evidence["mean_prompt_tokens_per_call"] = tokens / calls
    if cached is not None:
        evidence["against"]["cached_prompt_ratio"] = cached
    return Finding(
        "prefill-dominates-first-token",
        "warning",
        "Most of the wait for the first token is spent on reading the prompt.",
        evidence,
        "Put fewer or shorter passages into the prompt; its fixed part first, for the prefix cache.",
    )


def decode(report: Report) -> Iterator[Finding]:
    """Say that the length of the answers decides."""
    decode = phase_ns(report, "decode")
    mean = sum(value or 0.0 for value in report.generation.phases_ns.values())
    request_share = share_of(report, semconv.GENERATION) * decode / mean if mean else 0.0
    if request_share > MUCH:
        tokens = report.generation.tokens.output
        per_call = tokens / report.generation.n_calls if tokens and report.generation.n_calls else None
        yield Finding(
            "decode-dominates",
            "info",
            f"{percent(request_share)} of request time is decoding: it grows with the length of the answers.",
            {
                "mean_decode_ms": milliseconds(decode),
                "decode_of_request_ratio": request_share,
                "mean_output_tokens_per_call": per_call,
                "against": {"mean_rest_of_call_ms": milliseconds(mean - decode)},
            },
            "Ask for shorter answers (max_tokens, the prompt), a faster model, or speculative decoding.",
        )


def consumer(report: Report) -> Iterator[Finding]:
    """Say that the reader of a stream holds it up."""
    hold = phase_ns(report, "consumer_hold")
    mean = sum(value or 0.0 for value in report.generation.phases_ns.values())
    if mean and hold / mean > WORTHWHILE:
        yield Finding(
            "consumer-holds-stream",
            "warning",
            f"{percent(hold / mean)} of a streamed call is spent in the code that consumes the tokens.",
            {
                "mean_consumer_hold_ms": milliseconds(hold),
                "consumer_hold_ratio": hold / mean,
                "against": {"mean_decode_ms": phase_ms(report, "decode"), "mean_call_ms": milliseconds(mean)},
            },
            "Take the work on each token (parsing, rendering, sending) out of the loop that reads them.",
        )


def buffered(report: Report) -> Iterator[Finding]:
    """Say that streamed answers came in one piece, and what may be the cause."""
    generation = report.generation
    n, n_ok = generation.n_buffered, generation.status.get("ok", 0)
    if n and n >= WORTHWHILE * n_ok:  # a one-token answer comes in one piece, too
        yield (
            _late_in_one_piece(generation, n, n_ok)
            if generation.n_buffered_decoded
            else _in_one_piece(n, n_ok)
        )


def _late_in_one_piece(generation: GenerationSummary, n: int, n_ok: int) -> Finding:
    """Say what the engine's own account leaves possible: its tokens were not made in one piece."""
    decoded = generation.n_buffered_decoded
    return Finding(
        "stream-buffered",
        "warning",
        f"{n} of {n_ok} answers were streamed and came in one piece, though the engine made the tokens of "
        f"{decoded} of them one after the other: the client or the server process may have been starved of "
        "CPU, or a proxy may hold the stream back.",
        {
            "buffered_calls": n,
            "buffered_calls_with_engine_decode": decoded,
            "mean_ttft_ms": milliseconds(generation.buffered_ttft_ns),
            "mean_engine_first_token_ms": milliseconds(generation.buffered_engine_wait_ns),
            "mean_engine_decode_ms": milliseconds(generation.buffered_decode_ns),
            "against": {"ok_calls": n_ok},
        },
        "Check the CPU load of the client and of the server while they run (top); only if both have CPU to "
        "spare, look for a proxy or gateway between them that buffers.",
    )


def _in_one_piece(n: int, n_ok: int) -> Finding:
    return Finding(
        "stream-buffered",
        "warning",
        f"{n} of {n_ok} answers were streamed and came in one piece: the time to their first token is that "
        "of the last one.",
        {"buffered_calls": n, "against": {"ok_calls": n_ok}},
        "Possible causes: a proxy, gateway or server that collects the answer before it sends it, or a "
        "client that was too busy to read. The engine's own spans would tell them apart.",
    )
