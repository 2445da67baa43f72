"""Rules about what spoils the figures themselves: lost spans, failed requests, too little of everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.analysis.findings.figures import WORTHWHILE
from hotspan.analysis.model import Finding, Report
from hotspan.analysis.words import percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotspan.analysis.model import Severity
    from hotspan.analysis.requests import RequestSummary

_MIN_REQUESTS: Final = 20  # for a median that more than a handful of requests carry
_MANY_FAILED: Final = 0.1


def spans_lost(report: Report) -> Iterator[Finding]:
    """Say that the writer lost spans on their way."""
    lost = report.evidence.n_dropped_spans - report.evidence.n_unended_spans
    if lost:
        yield Finding(
            "spans-lost",
            _how_bad(report, lost),
            f"{_of_all(report, lost)} {'was' if lost == 1 else 'were'} lost before they were written: every "
            "figure here lacks them.",
            {"dropped_spans": lost, "against": {"spans_read": report.evidence.n_spans}},
            "Record again with less load per process, or write to a file instead of a collector.",
        )


def spans_unended(report: Report) -> Iterator[Finding]:
    """Say that spans had not ended when their program did: no load is the cause."""
    unended = report.evidence.n_unended_spans
    if unended:
        yield Finding(
            "spans-unended",
            _how_bad(report, unended),
            f"{_of_all(report, unended)} had not ended when their program did: every figure here lacks them, "
            "and where one is a request, all of it.",
            {"unended_spans": unended, "against": {"spans_read": report.evidence.n_spans}},
            "Let the work end before the program does: join its threads, await its tasks, close its streams.",
        )


def _of_all(report: Report, n: int) -> str:
    return f"{n} of {report.evidence.n_spans + report.evidence.n_dropped_spans} spans"


def _how_bad(report: Report, n: int) -> Severity:
    total = report.evidence.n_spans + report.evidence.n_dropped_spans
    return "critical" if n / total > WORTHWHILE else "warning"


def requests_failed(report: Report) -> Iterator[Finding]:
    """Say that the percentiles are those of the requests that did not fail."""
    request = report.request
    if request.n and request.n_errors:
        yield Finding(
            "requests-failed",
            "critical" if (request.error_ratio or 0.0) > _MANY_FAILED else "warning",
            f"{_failed(request)}; the percentiles are those of the others.",
            {
                "errors": request.n_errors,
                f"{'estimated_' if request.is_weighted else ''}error_ratio": request.error_ratio,
                "against": {"requests": request.n},
            },
            "See how far they came: hotspan report --where request.outcome=error FILE. Repair the cause "
            "before judging the latency.",
        )


def _failed(request: RequestSummary) -> str:
    if not request.is_weighted or request.error_ratio is None:
        return f"{request.n_errors:,} of {request.n:,} requests failed"
    share = percent(request.error_ratio)
    return f"{request.n_errors:,} of {request.n:,} recorded requests failed, an estimated {share} of all"


def evidence_thin(report: Report) -> Iterator[Finding]:
    """Say that too few requests carry the percentiles."""
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
