"""Rules about streams on their way: held up by their consumer, or arriving in one piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotspan.analysis.findings.figures import WORTHWHILE, mean_call_ns, milliseconds, phase_ms, phase_ns
from hotspan.analysis.model import Finding, GenerationSummary, Report
from hotspan.analysis.words import percent

if TYPE_CHECKING:
    from collections.abc import Iterator


def consumer(report: Report) -> Iterator[Finding]:
    """Say that the reader of a stream holds it up."""
    hold, mean = phase_ns(report, "consumer_hold"), mean_call_ns(report)
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
        "of the last one, or unknown.",
        {"buffered_calls": n, "against": {"ok_calls": n_ok}},
        "Possible causes: a proxy, gateway or server that collects the answer before it sends it, or a "
        "client that was too busy to read. The engine's own spans would tell them apart.",
    )
