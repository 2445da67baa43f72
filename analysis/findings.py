"""What stands out in a report: one small rule each, with the figures for it, one against it, and a next step.

A rule sees the report alone and says nothing where a figure that it needs is not there.  `against` in the
evidence is the figure that would have to be looked at before believing the finding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from hotspan.analysis.model import Finding, GenerationSummary, Report, Severity, StageRow
from hotspan.tracer import semconv

_ORDER: Final[dict[Severity, int]] = {"critical": 0, "warning": 1, "info": 2}
_NS_PER_MS: Final = 1_000_000
_MIN_REQUESTS: Final = 20  # for a median that more than a handful of requests carry
_MUCH: Final = 0.5  # of what a finding is about
_WORTHWHILE: Final = 0.1  # of the request: less is not worth a step
_HIGH_UNATTRIBUTED: Final = 0.05
_MANY_FAILED: Final = 0.1
_USUAL_DEPTH: Final = 2  # a model call that chooses, and one that answers
_MIN_WARM: Final = 3  # calls, for a median that the first does not decide
_COLD_FACTOR: Final = 3.0  # the first call against the p90 of the others
_RETRIEVAL_SIDE: Final = (
    semconv.EMBEDDING,
    semconv.RETRIEVAL,
    semconv.RERANK,
    semconv.CONTEXT_ASSEMBLY,
)

Rule = Callable[[Report], Iterator[Finding]]


def findings(report: Report) -> tuple[Finding, ...]:
    """Return what stands out in a report, the most severe first; its own `findings` are not looked at."""
    found = [
        replace(finding, evidence=_known(finding.evidence)) for rule in _RULES for finding in rule(report)
    ]
    return tuple(sorted(found, key=lambda finding: _ORDER[finding.severity]))


def _known(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Return the evidence without the figures that this report does not have."""
    return {
        name: _known(value) if isinstance(value, Mapping) else value
        for name, value in evidence.items()
        if value is not None
    }


def percent(ratio: float) -> str:
    """Return a share as a person reads it."""
    return f"{ratio * 100:.0f} %" if ratio >= _WORTHWHILE else f"{ratio * 100:.1f} %"


def significant(value: float) -> str:
    """Return a positive number with three significant digits, without an exponent."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.{max(0, 2 - math.floor(math.log10(rounded)))}f}" if rounded else "0"


def milliseconds(ns: float) -> float:
    """Return a time for an evidence field that ends in `_ms`."""
    return round(ns / _NS_PER_MS, 3)


def _optional_ms(ns: float | None) -> float | None:
    return None if ns is None else milliseconds(ns)


def _row(report: Report, stage: str) -> StageRow | None:
    return next((row for row in report.stages if row.stage == stage), None)


def _share(report: Report, stage: str) -> float:
    row = _row(report, stage)
    return (row.critical_path_ratio or 0.0) if row else 0.0


def _phase(report: Report, name: str) -> float:
    return report.generation.phases_ns.get(name) or 0.0


def _lost_spans(report: Report) -> Iterator[Finding]:
    lost = report.evidence.n_dropped_spans
    if lost:
        total = report.evidence.n_spans + lost
        yield Finding(
            "spans-lost",
            "critical" if lost / total > _WORTHWHILE else "warning",
            f"{lost} of {total} spans were lost before they were written: every figure here lacks them.",
            {"dropped_spans": lost, "against": {"spans_read": report.evidence.n_spans}},
            "Record again with less load per process, or write to a file instead of a collector.",
        )


def _failures(report: Report) -> Iterator[Finding]:
    request = report.request
    if request.n and request.n_errors:
        ratio = request.n_errors / request.n
        yield Finding(
            "requests-failed",
            "critical" if ratio > _MANY_FAILED else "warning",
            f"{request.n_errors} of {request.n} requests failed; the percentiles are those of the others.",
            {"errors": request.n_errors, "error_ratio": ratio, "against": {"requests": request.n}},
            "Look at one: hotspan show FILE, and repair the cause before judging the latency.",
        )


def _broken_answers(report: Report) -> Iterator[Finding]:
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


def _retries(report: Report) -> Iterator[Finding]:
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
                "backoff_ms": milliseconds(_phase(report, "backoff")),
                "against": {"ok": generation.status.get("ok", 0)},
            },
            "Find what the first attempts failed of (status, timeout); a retry costs the whole call again.",
        )


def _first_token(report: Report) -> Iterator[Finding]:
    """Say what the wait for the first token is made of: the queue, or reading the prompt."""
    queue, prefill = _phase(report, "queue"), _phase(report, "prefill")
    wait = queue + prefill + _phase(report, "server_before_engine")
    mean = sum(value or 0.0 for value in report.generation.phases_ns.values())
    share = _share(report, semconv.GENERATION)
    for name, own, other in (("queue", queue, "prefill"), ("prefill", prefill, "queue")):
        request_share = share * own / mean if mean else 0.0
        if not wait or own / wait <= _MUCH or request_share < _WORTHWHILE:
            continue
        evidence = {
            f"{name}_ms": milliseconds(own),
            f"{name}_of_first_token_ratio": own / wait,
            f"{name}_of_request_ratio": request_share,
            "against": {f"{other}_ms": milliseconds(_phase(report, other))},
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
        evidence["prompt_tokens_per_call"] = round(tokens / calls, 1)
    if cached is not None:
        evidence["against"]["cached_prompt_ratio"] = cached
    return Finding(
        "prefill-dominates-first-token",
        "warning",
        "Most of the wait for the first token is spent on reading the prompt.",
        evidence,
        "Put fewer or shorter passages into the prompt; its fixed part first, for the prefix cache.",
    )


def _decode(report: Report) -> Iterator[Finding]:
    decode = _phase(report, "decode")
    mean = sum(value or 0.0 for value in report.generation.phases_ns.values())
    request_share = _share(report, semconv.GENERATION) * decode / mean if mean else 0.0
    if request_share > _MUCH:
        tokens = report.generation.tokens.output
        per_call = tokens / report.generation.n_calls if tokens and report.generation.n_calls else None
        yield Finding(
            "decode-dominates",
            "info",
            f"{percent(request_share)} of request time is decoding: it grows with the length of the answers.",
            {
                "decode_ms": milliseconds(decode),
                "decode_of_request_ratio": request_share,
                "output_tokens_per_call": None if per_call is None else round(per_call, 1),
                "against": {"first_token_ms": milliseconds(mean - decode)},
            },
            "Ask for shorter answers (max_tokens, the prompt), a faster model, or speculative decoding.",
        )


def _consumer(report: Report) -> Iterator[Finding]:
    hold = _phase(report, "consumer_hold")
    mean = sum(value or 0.0 for value in report.generation.phases_ns.values())
    if mean and hold / mean > _WORTHWHILE:
        yield Finding(
            "consumer-holds-stream",
            "warning",
            f"{percent(hold / mean)} of a streamed call is spent in the code that consumes the tokens.",
            {
                "consumer_hold_ms": milliseconds(hold),
                "consumer_hold_ratio": hold / mean,
                "against": {"decode_ms": milliseconds(_phase(report, "decode"))},
            },
            "Take the work on each token (parsing, rendering, sending) out of the loop that reads them.",
        )


def _rerank(report: Report) -> Iterator[Finding]:
    share, row = _share(report, semconv.RERANK), _row(report, semconv.RERANK)
    if row is not None and share > _share(report, semconv.GENERATION) and share > _WORTHWHILE:
        yield Finding(
            "rerank-dominates",
            "warning",
            f"Reranking takes {percent(share)} of request time, more than the model's answer.",
            {
                "rerank_ratio": share,
                "rerank_p50_ms": None if row.duration_ns is None else milliseconds(row.duration_ns.p50),
                "against": {"generation_ratio": _share(report, semconv.GENERATION)},
            },
            "Rerank fewer candidates, in one batch, or with a smaller model; check recall when you do.",
        )


def _retrieval_side(report: Report) -> Iterator[Finding]:
    shares = {f"{stage}_ratio": _share(report, stage) for stage in _RETRIEVAL_SIDE}
    total = sum(shares.values())
    if total > _MUCH:
        largest = max(_RETRIEVAL_SIDE, key=lambda stage: _share(report, stage))
        yield Finding(
            "retrieval-side-dominates",
            "info",
            f"{percent(total)} of request time passes before the model is asked; {largest} is the largest "
            f"part with {percent(_share(report, largest))}.",
            {**shares, "against": {"generation_ratio": _share(report, semconv.GENERATION)}},
            f"Begin with {largest}: a faster model will not help.",
        )


def _unattributed(report: Report) -> Iterator[Finding]:
    ratio = report.unattributed.critical_path_ratio
    if ratio is not None and ratio > _HIGH_UNATTRIBUTED:
        yield Finding(
            "unattributed-time",
            "warning" if ratio > _MUCH else "info",
            f"{percent(ratio)} of request time lies in no stage.",
            {"unattributed_ratio": ratio, "against": {"stages_ratio": 1 - ratio}},
            "Wrap the code between the stages: with hotspan.stage('name'): …",
        )


def _buffered(report: Report) -> Iterator[Finding]:
    generation = report.generation
    n, n_ok = generation.n_buffered, generation.status.get("ok", 0)
    if n and n >= _WORTHWHILE * n_ok:  # a one-token answer comes in one piece, too
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
            "mean_ttft_ms": _optional_ms(generation.buffered_ttft_ns),
            "mean_engine_first_token_ms": _optional_ms(generation.buffered_engine_wait_ns),
            "mean_engine_decode_ms": _optional_ms(generation.buffered_decode_ns),
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


def _sequential(report: Report) -> Iterator[Finding]:
    found = report.amplification
    depth, calls = found.sequential_depth, found.model_calls
    if not found.is_agent or depth is None or calls is None or depth.mean <= _USUAL_DEPTH:
        return
    evidence = {
        "sequential_depth_mean": round(depth.mean, 2),
        "model_calls_mean": round(calls.mean, 2),
        "prompt_resent_ratio": found.prompt_tokens_resent_ratio,
        "against": {"parallelism": found.parallelism, "cached_prompt_ratio": found.cached_prompt_ratio},
    }
    yield Finding(
        "sequential-model-calls",
        "info",
        f"An agent request makes {calls.mean:.1f} model calls and waits for {depth.mean:.1f} of them "
        "one after the other.",
        evidence,
        "Ask for several tool calls in one step, or stop planning when the question is a look-up.",
    )


def _cold_start(report: Report) -> Iterator[Finding]:
    request = report.request.duration_ns
    for row in report.stages:
        first, later, share = row.first_call_ns, row.later_calls_p90_ns, row.critical_path_ratio
        if first is None or not later or row.n_later_calls < _MIN_WARM - 1 or (share or 0.0) < _WORTHWHILE:
            continue
        is_worthwhile = request is None or first - later > _WORTHWHILE * request.p50
        if first > _COLD_FACTOR * later and is_worthwhile:
            yield Finding(
                f"cold-start-{row.stage}",
                "info",
                f"The first call of {row.first_call_name!r} ({row.stage}) took {significant(first / later)} "
                "times the p90 of the later ones, self time.",
                {
                    "first_call_self_ms": milliseconds(first),
                    "later_calls_self_p90_ms": milliseconds(later),
                    "against": {"later_calls": row.n_later_calls, "critical_path_ratio": share},
                },
                "Make one call of each stage before the first user's, or leave the first request out.",
            )


def _thin(report: Report) -> Iterator[Finding]:
    n = report.request.n
    if 0 < n < _MIN_REQUESTS:
        yield Finding(
            "evidence-thin",
            "info",
            f"{n} {'request is' if n == 1 else 'requests are'} few: the percentiles above p50 rest on one or "
            "two of them.",
            {"requests": n, "against": {"spans": report.evidence.n_spans}},
            "Record 200 requests or more before comparing p95, 20 or more before believing p50.",
        )


_RULES: Final[tuple[Rule, ...]] = (
    _lost_spans,
    _failures,
    _broken_answers,
    _retries,
    _first_token,
    _rerank,
    _consumer,
    _buffered,
    _decode,
    _retrieval_side,
    _sequential,
    _unattributed,
    _cold_start,
    _thin,
)
