"""What stands out in a report: one small rule each, with the figures for it, one against it, and a next step.

A rule sees the report alone and says nothing where a figure that it needs is not there.  `against` in the
evidence is the figure that would have to be looked at before believing the finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from hotspan.analysis import generation_findings
from hotspan.analysis.finding_figures import (
    MUCH,
    WORTHWHILE,
    milliseconds,
    percent,
    row_of,
    share_of,
    significant,
    stage_ratio,
)
from hotspan.analysis.model import Finding, Report, Severity
from hotspan.tracer import semconv

_ORDER: Final[dict[Severity, int]] = {"critical": 0, "warning": 1, "info": 2}
_MIN_REQUESTS: Final = 20  # for a median that more than a handful of requests carry
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


def _lost_spans(report: Report) -> Iterator[Finding]:
    lost = report.evidence.n_dropped_spans
    if lost:
        total = report.evidence.n_spans + lost
        yield Finding(
            "spans-lost",
            "critical" if lost / total > WORTHWHILE else "warning",
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


def _rerank(report: Report) -> Iterator[Finding]:
    share, row = share_of(report, semconv.RERANK), row_of(report, semconv.RERANK)
    if row is not None and share > share_of(report, semconv.GENERATION) and share > WORTHWHILE:
        yield Finding(
            "rerank-dominates",
            "warning",
            f"Reranking takes {percent(share)} of request time, more than the model's answer.",
            {
                "rerank_ratio": share,
                "rerank_p50_ms": milliseconds(None if row.duration_ns is None else row.duration_ns.p50),
                "against": _instead(report),
            },
            "Rerank fewer candidates, in one batch, or with a smaller model; check recall when you do.",
        )


def _instead(report: Report) -> dict[str, float | None]:
    """Return where the rest of the time went: the model, or no stage at all."""
    model = stage_ratio(report, semconv.GENERATION)
    return {
        "generation_ratio": model,
        "unattributed_ratio": report.unattributed.critical_path_ratio if model is None else None,
    }


def _retrieval_side(report: Report) -> Iterator[Finding]:
    shares = {f"{stage}_ratio": stage_ratio(report, stage) for stage in _RETRIEVAL_SIDE}
    total = sum(share or 0.0 for share in shares.values())
    if total > MUCH:
        largest = max(_RETRIEVAL_SIDE, key=lambda stage: share_of(report, stage))
        yield Finding(
            "retrieval-side-dominates",
            "info",
            f"{percent(total)} of request time passes before the model is asked; {largest} is the largest "
            f"part with {percent(share_of(report, largest))}.",
            {**shares, "against": _instead(report)},
            f"Begin with {largest}: a faster model will not help.",
        )


def _unattributed(report: Report) -> Iterator[Finding]:
    ratio = report.unattributed.critical_path_ratio
    if ratio is not None and ratio > _HIGH_UNATTRIBUTED:
        yield Finding(
            "unattributed-time",
            "warning" if ratio > MUCH else "info",
            f"{percent(ratio)} of request time lies in no stage.",
            {"unattributed_ratio": ratio, "against": {"stages_ratio": 1 - ratio}},
            "Wrap the code between the stages: with hotspan.stage('name'): …",
        )


def _sequential(report: Report) -> Iterator[Finding]:
    found = report.amplification
    depth, calls = found.sequential_depth, found.model_calls
    if not found.is_agent or depth is None or calls is None or depth.mean <= _USUAL_DEPTH:
        return
    evidence = {
        "mean_sequential_depth": depth.mean,
        "mean_model_calls": calls.mean,
        "prompt_resent_ratio": found.prompt_tokens_resent_ratio,
        "against": {"parallelism": found.parallelism, "cached_prompt_ratio": found.cached_prompt_ratio},
    }
    yield Finding(
        "sequential-model-calls",
        "info",
        f"An agent request makes {significant(calls.mean)} model calls and waits for "
        f"{significant(depth.mean)} of them one after the other.",
        evidence,
        "Ask for several tool calls in one step, or stop planning when the question is a look-up.",
    )


def _cold_start(report: Report) -> Iterator[Finding]:
    request = report.request.duration_ns
    for row in report.stages:
        first, later, share = row.first_call_ns, row.later_calls_p90_ns, row.critical_path_ratio
        if first is None or not later or row.n_later_calls < _MIN_WARM - 1 or (share or 0.0) < WORTHWHILE:
            continue
        is_worthwhile = request is None or first - later > WORTHWHILE * request.p50
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
    generation_findings.broken_answers,
    generation_findings.retries,
    generation_findings.first_token,
    _rerank,
    generation_findings.consumer,
    generation_findings.buffered,
    generation_findings.decode,
    _retrieval_side,
    _sequential,
    _unattributed,
    _cold_start,
    _thin,
)
