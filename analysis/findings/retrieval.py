"""Rules about what comes before the model: embedding, retrieval, reranking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.analysis.findings.figures import (
    MUCH,
    WORTHWHILE,
    milliseconds,
    of_request_time,
    printed,
    row_of,
    share_of,
    stage_ratio,
)
from hotspan.analysis.model import Finding, Report
from hotspan.analysis.words import significant
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotspan.analysis.patterns import Run

_SIDE: Final = (semconv.EMBEDDING, semconv.RETRIEVAL, semconv.RERANK, semconv.CONTEXT_ASSEMBLY)
_MIN_TEXTS: Final = 4  # in a row: a question and its variants are fewer


def rerank(report: Report) -> Iterator[Finding]:
    """Say that reranking takes longer than the model's answer."""
    share, row = share_of(report, semconv.RERANK), row_of(report, semconv.RERANK)
    if row is not None and share > share_of(report, semconv.GENERATION) and share > WORTHWHILE:
        yield Finding(
            "rerank-dominates",
            "warning",
            f"Reranking takes {printed(report, share)} of request time, more than the model's answer.",
            {
                "rerank_ratio": share,
                "rerank_p50_ms": milliseconds(None if row.duration_ns is None else row.duration_ns.p50),
                "against": _instead(report),
            },
            "Rerank fewer candidates, in one batch, or with a smaller model; check recall when you do.",
        )


def side_dominates(report: Report) -> Iterator[Finding]:
    """Say that most of the time passes before the model is asked, where it is asked."""
    shares = {f"{stage}_ratio": stage_ratio(report, stage) for stage in _SIDE}
    total = sum(share or 0.0 for share in shares.values())
    if total > MUCH and _asks_a_model(report):
        largest = max(_SIDE, key=lambda stage: share_of(report, stage))
        yield Finding(
            "retrieval-side-dominates",
            "info",
            f"{printed(report, total)} of request time passes before the model is asked; {largest} is the "
            f"largest part with {printed(report, share_of(report, largest))}.",
            {**shares, "against": _instead(report)},
            f"Begin with {largest}: a faster model will not help.",
        )


def _asks_a_model(report: Report) -> bool:
    row = row_of(report, semconv.GENERATION)
    return row is not None and (row.calls_per_request is None or row.calls_per_request.max > 0)


def _instead(report: Report) -> dict[str, float | None]:
    """Return where the rest of the time went: the model, or no stage at all."""
    model = stage_ratio(report, semconv.GENERATION)
    return {
        "generation_ratio": model,
        "unattributed_ratio": report.unattributed.critical_path_ratio if model is None else None,
    }


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
