"""Rules about making the tokens: long answers, slow tokens, tokens slowed by others' calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.analysis.findings.figures import (
    MUCH,
    WORTHWHILE,
    mean_call_ns,
    milliseconds,
    phase_ns,
    phase_share,
    printed,
)
from hotspan.analysis.model import Finding, Report
from hotspan.analysis.words import significant

if TYPE_CHECKING:
    from collections.abc import Iterator

_SLOW_TPOT_NS: Final = 50_000_000  # 20 tokens/s: about as fast as people read
_MORE_LOAD: Final = 2.0  # concurrency of the busy third over that of the quiet one
_SLOWER: Final = 1.5  # time per token, likewise
_RELATED: Final = 0.5  # rank correlation of the two


def decode_dominates(report: Report) -> Iterator[Finding]:
    """Say that the length of the answers decides."""
    decode, share = phase_ns(report, "decode"), phase_share(report, "decode") or 0.0
    if share > MUCH and not _is_slow(report):
        yield Finding(
            "decode-dominates",
            "info",
            f"{printed(report, share)} of request time is decoding: it grows with the length of the answers.",
            {
                "mean_decode_ms": milliseconds(decode),
                "decode_of_request_ratio": share,
                "mean_output_tokens_per_call": _output_per_call(report),
                "against": {"mean_rest_of_call_ms": milliseconds(mean_call_ns(report) - decode)},
            },
            "Ask for shorter answers (max_tokens, the prompt), a faster model, or speculative decoding.",
        )


def tpot_high(report: Report) -> Iterator[Finding]:
    """Say that each token takes long."""
    tpot, share = report.generation.tpot_ns, phase_share(report, "decode") or 0.0
    if tpot is not None and share > WORTHWHILE and _is_slow(report):
        yield Finding(
            "tpot-high",
            "warning",
            f"A token takes {significant(tpot.p50 / 1e6)} ms (p50), {significant(1e9 / tpot.p50)} tokens/s: "
            f"decoding is {printed(report, share)} of request time.",
            {
                "tpot_p50_ms": milliseconds(tpot.p50),
                "decode_of_request_ratio": share,
                "mean_output_tokens_per_call": _output_per_call(report),
                "against": {
                    "mean_consumer_hold_ms": milliseconds(report.generation.phases_ns.get("consumer_hold")),
                    "calls_with_tpot": tpot.n,
                },
            },
            "Decoding is bound by memory: a smaller or quantised model, speculative decoding, or more GPUs "
            "for one copy of the model.",
        )


def _is_slow(report: Report) -> bool:
    """Whether tokens are slow by themselves: counted ones, not chunks, and not held up by their consumer."""
    tpot = report.generation.tpot_ns
    is_held = phase_ns(report, "consumer_hold") > MUCH * phase_ns(report, "decode")
    is_counted = not report.generation.tokens.is_estimated
    return tpot is not None and tpot.p50 >= _SLOW_TPOT_NS and is_counted and not is_held


def slowed_by_concurrency(report: Report) -> Iterator[Finding]:
    """Say that tokens take longer when more calls run at once, and what that buys."""
    load, share = report.patterns.decode_load, phase_share(report, "decode") or 0.0
    if load is None or share < WORTHWHILE or load.rank_correlation < _RELATED:
        return
    slower = load.high_tpot_ns / load.low_tpot_ns
    more = load.high_concurrency / load.low_concurrency
    if slower < _SLOWER or more < _MORE_LOAD:
        return
    yield Finding(
        "decode-slowed-by-concurrency",
        "warning",
        f"With {significant(load.high_concurrency)} calls in flight a token takes {significant(slower)} "
        f"times as long as with {significant(load.low_concurrency)}.",
        {
            "tpot_busy_third_p50_ms": milliseconds(load.high_tpot_ns),
            "tpot_quiet_third_p50_ms": milliseconds(load.low_tpot_ns),
            "rank_correlation": load.rank_correlation,
            "decode_of_request_ratio": share,
            # More calls at a time make more tokens in all, as long as they grow faster than the time of each.
            "against": {"calls": load.n_calls, "tokens_per_s_in_all_factor": more / slower},
        },
        "Where latency matters more than throughput, cap the calls in flight or add a replica; where all "
        "streams together speed up, batching does what it is for.",
    )


def _output_per_call(report: Report) -> float | None:
    tokens, n_ok = report.generation.tokens.output, report.generation.status.get("ok", 0)
    return tokens / n_ok if tokens is not None and n_ok else None
