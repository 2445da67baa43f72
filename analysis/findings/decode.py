"""Rules about making the tokens: long answers, slow tokens, tokens slowed by others' calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.analysis.findings.figures import (
    MUCH,
    WORTHWHILE,
    mean_call_ns,
    milliseconds,
    open_ended,
    phase_ns,
    phase_share,
    printed,
)
from hotspan.analysis.model import Finding, Report
from hotspan.analysis.words import significant

if TYPE_CHECKING:
    from collections.abc import Iterator

_SLOW_TOKEN_NS: Final = 50_000_000  # 20 tokens/s: about as fast as people read
_MORE_LOAD: Final = 2.0  # concurrency of the busy third over that of the quiet one
_SLOWER: Final = 1.5  # time per token, likewise
_RELATED: Final = 0.5  # rank correlation of the two


def decode_dominates(report: Report) -> Iterator[Finding]:
    """Say that the length of the answers decides."""
    decode, share = phase_ns(report, "decode"), phase_share(report, "decode") or 0.0
    if share > MUCH and not _is_slow(report):
        what = "between the first token and the end of the call" if open_ended(report) else "decoding"
        yield Finding(
            "decode-dominates",
            "info",
            f"{printed(report, share)} of request time is {what}: it grows with the length of the answers.",
            {
                "mean_decode_ms": milliseconds(decode),
                "decode_of_request_ratio": share,
                "mean_output_tokens_per_call": _output_per_call(report),
                "against": {
                    "mean_rest_of_call_ms": milliseconds(mean_call_ns(report) - decode),
                    **open_ended(report),
                },
            },
            "Ask for shorter answers (max_tokens, the prompt), a faster model, or speculative decoding.",
        )


def tpot_high(report: Report) -> Iterator[Finding]:
    """Say that each token takes long."""
    token, share = report.patterns.token_time, phase_share(report, "decode") or 0.0
    if token is not None and share > WORTHWHILE and _is_slow(report):
        yield Finding(
            "tpot-high",
            "warning",
            f"A token takes {significant(token.p50_ns / 1e6)} ms (p50), {significant(1e9 / token.p50_ns)} "
            f"tokens/s: decoding is {printed(report, share)} of request time.",
            {
                "time_per_token_p50_ms": milliseconds(token.p50_ns),
                "decode_of_request_ratio": share,
                "mean_output_tokens_per_call": _output_per_call(report),
                "against": {
                    "mean_consumer_hold_ms": milliseconds(report.generation.phases_ns.get("consumer_hold")),
                    "calls_with_time_per_token": token.n_calls,
                    **_by_engine(token.n_by_engine),
                    **open_ended(report),
                },
            },
            "Decoding is bound by memory: a smaller or quantised model, speculative decoding, or more GPUs "
            "for one copy of the model.",
        )


def _is_slow(report: Report) -> bool:
    """Whether tokens are slow by themselves: counted ones, not chunks, and not held up by their consumer."""
    token = report.patterns.token_time
    is_held = phase_ns(report, "consumer_hold") > MUCH * phase_ns(report, "decode")
    is_counted = not report.generation.tokens.is_estimated
    return token is not None and token.p50_ns >= _SLOW_TOKEN_NS and is_counted and not is_held


def _by_engine(n_calls: int) -> dict[str, int]:
    """Return of how many calls the engine says the time per token, if of any: the client's is not known."""
    return {"of_these_by_the_engine": n_calls} if n_calls else {}


def slowed_by_concurrency(report: Report) -> Iterator[Finding]:
    """Say that tokens take longer when more calls run at once, and what that buys."""
    load, share = report.patterns.decode_load, phase_share(report, "decode") or 0.0
    if load is None or share < WORTHWHILE or load.rank_correlation < _RELATED:
        return
    slower = load.high_token_ns / load.low_token_ns
    more = load.high_concurrency / load.low_concurrency
    if slower < _SLOWER or more < _MORE_LOAD:
        return
    yield Finding(
        "decode-slowed-by-concurrency",
        "warning",
        f"With {significant(load.high_concurrency)} calls in flight a token takes {significant(slower)} "
        f"times as long as with {significant(load.low_concurrency)}.",
        {
            "time_per_token_busy_third_p50_ms": milliseconds(load.high_token_ns),
            "time_per_token_quiet_third_p50_ms": milliseconds(load.low_token_ns),
            "rank_correlation": load.rank_correlation,
            "decode_of_request_ratio": share,
            # More calls at a time make more tokens in all, as long as they grow faster than the time of each.
            "against": {
                "calls": load.n_calls,
                **_by_engine(load.n_by_engine),
                "tokens_per_s_in_all_factor": more / slower,
            },
        },
        "Where latency matters more than throughput, cap the calls in flight or add a replica; where all "
        "streams together speed up, batching does what it is for.",
    )


def _output_per_call(report: Report) -> float | None:
    tokens, n_ok = report.generation.tokens.output, report.generation.status.get("ok", 0)
    return tokens / n_ok if tokens is not None and n_ok else None
