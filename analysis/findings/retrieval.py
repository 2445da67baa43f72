"""Rules about what comes before the model: embedding, retrieval, reranking."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from hotspan.analysis.findings.figures import (
    MUCH,
    WORTHWHILE,
    milliseconds,
    of_request_time,
    printed,
    row_of,
    stage_ratio,
)
from hotspan.analysis.model import Finding, Report
from hotspan.analysis.words import significant
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotspan.analysis.patterns import Asking, Run

_SIDE: Final = (semconv.EMBEDDING, semconv.RETRIEVAL, semconv.RERANK, semconv.CONTEXT_ASSEMBLY)
_MIN_TEXTS: Final = 4  # in a row: a question and its variants are fewer


def rerank(report: Report) -> Iterator[Finding]:
    """Say that reranking takes longer than the model's answer, where a model is asked."""
    asking, row = report.patterns.asking, row_of(report, semconv.RERANK)
    ratio = partial(stage_ratio, report) if asking is None else asking.ratio
    share, model = ratio(semconv.RERANK) or 0.0, ratio(semconv.GENERATION)
    if row is None or share <= max(model or 0.0, WORTHWHILE):
        return
    more = "" if model is None else ", more than the model's answer"
    of_whom = "" if asking is None else _whose(report, asking)
    yield Finding(
        "rerank-dominates",
        "warning",
        f"Reranking takes {printed(report, share)} of {'request' if not of_whom else 'the'} time"
        f"{of_whom}{more}.",
        {
            "rerank_ratio": share,
            "rerank_p50_ms": milliseconds(None if row.duration_ns is None else row.duration_ns.p50),
            "against": {
                "generation_ratio": model,
                "unattributed_ratio": report.unattributed.critical_path_ratio if model is None else None,
            },
        },
        "Rerank fewer candidates, in one batch, or with a smaller model; check recall when you do.",
    )


def side_dominates(report: Report) -> Iterator[Finding]:
    """Say that requests that ask a model spend most of their time before or beside it."""
    asking = report.patterns.asking
    if asking is None:
        return
    shares = {stage: share for stage in _SIDE if (share := asking.ratio(stage))}
    total, model = sum(shares.values()), asking.ratio(semconv.GENERATION)
    if total > MUCH:
        largest = max(shares, key=shares.__getitem__)
        of_whom = _whose(report, asking)
        yield Finding(
            "retrieval-side-dominates",
            "info",
            f"{printed(report, total)} of {'request' if not of_whom else 'the'} time{of_whom} passes before "
            f"or beside the model; {largest} is the largest part with {printed(report, shares[largest])}.",
            {
                "requests_with_a_model_call": asking.n_requests,
                **{f"{stage}_ratio": share for stage, share in shares.items()},
                "against": {"generation_ratio": model or 0.0},
            },
            f"Begin with {largest}: a faster model makes these requests at most "
            f"{printed(report, model or 0.0)} shorter.",
        )


def _whose(report: Report, asking: Asking) -> str:
    """Return which requests a share is of, where it is not of all."""
    if asking.n_requests == report.request.n:
        return ""
    return f" of the {asking.n_requests:,} requests that ask a model"


def one_text_a_call(report: Report) -> Iterator[Finding]:
    """Say that texts are embedded one call after the other instead of in a batch."""
    for run in report.patterns.runs:
        share = of_request_time(report, run.total_ns - run.longest_calls_ns)
        if is_one_by_one(run) and share > WORTHWHILE:
            per_request = run.n_calls / run.n_requests
            yield Finding(
                "embedding-one-by-one",
                "warning",
                f"{run.names[0]!r} is called {significant(per_request)} times in a row in a request, back to "
                f"back: {printed(report, share)} of request time beyond the longest call.",
                {
                    "calls_in_a_row": run.n_calls,
                    "longest_row": run.n_longest,
                    "mean_call_ms": milliseconds(run.total_ns / run.n_calls),
                    "beyond_longest_call_ratio": share,
                    "against": {"calls_with_several_texts": run.n_batches},
                },
                "Embed all texts of a request in one call: encode(texts), or input=[…].",
            )


def is_one_by_one(run: Run) -> bool:
    """Return whether calls in a row embed what one call of theirs could."""
    is_one_kind = run.stage == semconv.EMBEDDING and len(run.names) == 1
    return is_one_kind and run.n_longest >= _MIN_TEXTS and not run.n_batches
