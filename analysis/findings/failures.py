"""Rules about model calls that failed, broke off, or were tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.analysis.findings.figures import SELDOM, milliseconds, phase_ms, phase_share, printed
from hotspan.analysis.model import Finding, Report
from hotspan.analysis.words import percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LIMITED: Final = ("429",)
_OVERLOADED: Final = ("502", "503", "504", "529")


def calls_failed(report: Report) -> Iterator[Finding]:
    """Say how many model calls failed."""
    generation = report.generation
    n_bad = generation.status.get("error", 0)
    if n_bad:
        ratio = n_bad / generation.n_calls
        reasons = _most(report.patterns.failures)
        yield Finding(
            "model-calls-failed",
            "warning",
            f"{n_bad} of {generation.n_calls} model calls failed: {percent(ratio)}.",
            {
                "error": n_bad,
                "failed_ratio": ratio,
                **{f"failed_calls_with_{reason}": n for reason, n in reasons},
                "failed_calls_otherwise": n_bad - sum(n for _, n in reasons) or None,
                "against": {"ok": generation.status.get("ok", 0)},
            },
            "Read the server's log at the time of these calls, and its limits on prompt and answer.",
        )


def streams_truncated(report: Report) -> Iterator[Finding]:
    """Say how many answers broke off before their end."""
    generation = report.generation
    n_bad = generation.status.get("truncated", 0)
    if n_bad:
        yield Finding(
            "streams-truncated",
            "warning",
            f"{n_bad} of {generation.n_calls} answers broke off: the stream ended without a reason to stop.",
            {
                "truncated": n_bad,
                "truncated_ratio": n_bad / generation.n_calls,
                "against": {"ok": generation.status.get("ok", 0)},
            },
            "Look for a timeout of a proxy or load balancer, and for server restarts: a stream that breaks "
            "off is no short answer.",
        )


def rate_limited(report: Report) -> Iterator[Finding]:
    """Say that the server refused attempts because there were too many (429)."""
    yield from _refused(
        report,
        _LIMITED,
        "rate-limited",
        "refused with 429: more was sent than the limit allows",
        "Send fewer calls at once, wait as long as the answer says (Retry-After), or ask for a higher limit.",
    )


def overloaded(report: Report) -> Iterator[Finding]:
    """Say that the server, or what stands before it, could not take attempts (503 and its like)."""
    yield from _refused(
        report,
        _OVERLOADED,
        "server-overloaded",
        "refused with 502, 503, 504 or 529: the server or its gateway could not take them",
        "Add a replica or cap the concurrency; look at the gateway's timeout and at the server's restarts.",
    )


def _refused(
    report: Report, statuses: tuple[str, ...], id_: str, what: str, next_step: str
) -> Iterator[Finding]:
    refusals, n_attempts = report.patterns.refusals, report.generation.n_attempts
    n_refused = sum(refusals.get(status, 0) for status in statuses)
    if n_refused and n_attempts and n_refused >= SELDOM * n_attempts:
        yield Finding(
            id_,
            "warning",
            f"{n_refused} of {n_attempts} attempts at a model call were {what}.",
            {
                **{f"status_{status}": refusals[status] for status in statuses if status in refusals},
                "refused_ratio": n_refused / n_attempts,
                "mean_backoff_ms": phase_ms(report, "backoff"),
                "against": {"ok": report.generation.status.get("ok", 0)},
            },
            next_step,
        )


def retries(report: Report) -> Iterator[Finding]:
    """Say that calls took several attempts, and how long they waited between them."""
    generation = report.generation
    extra = generation.n_attempts - generation.n_calls
    if extra > 0 and extra >= SELDOM * generation.n_calls:
        share = phase_share(report, "backoff")
        waited = f" and {printed(report, share)} of request time" if share else ""
        yield Finding(
            "retries",
            "warning",
            f"{generation.n_calls} model calls took {generation.n_attempts} attempts{waited}.",
            {
                "attempts": generation.n_attempts,
                "calls": generation.n_calls,
                "mean_backoff_ms": milliseconds(generation.phases_ns.get("backoff")),
                "backoff_of_request_ratio": share,
                **{f"attempts_with_{reason}": n for reason, n in _most(report.patterns.retried)},
                "against": {"ok": generation.status.get("ok", 0)},
            },
            "Find what the first attempts failed of (status, timeout); a retry costs the whole call again.",
        )


def _most(reasons: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the most frequent reasons."""
    return sorted(reasons.items(), key=lambda item: (-item[1], item[0]))[:3]
