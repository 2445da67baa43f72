"""Rules about the traced program: time in no stage, first calls, a blocked event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.analysis.findings.figures import MUCH, WORTHWHILE, milliseconds, printed
from hotspan.analysis.model import Finding, Report
from hotspan.analysis.words import percent, significant
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator

_HIGH_UNATTRIBUTED: Final = 0.05
_MIN_STRAYS: Final = 5
_MOST_OF: Final = 0.9  # of the requests that are one call
_MORE_THAN_CHANCE: Final = 0.1
_MIN_WARM: Final = 2  # calls after the first, for a p90 that is not one of them alone
_COLD_FACTOR: Final = 3.0  # the first call against the p90 of the others
_MAX_AS_SLOW: Final = 0.01  # of the later calls: the odds that the first is one of them by chance
_MIN_EXPECTED: Final = 10.0  # events, for their absence to be no accident
_STANDSTILL: Final = 0.1  # of the expected events


def context_lost(report: Report) -> Iterator[Finding]:
    """Say that calls are counted as requests which ran inside of others: their thread had lost the trace."""
    found = report.patterns.strays
    if found is None or found.n_inside < max(_MIN_STRAYS, _MOST_OF * found.n_calls):
        return
    # Where some request is always in flight, whatever runs does so while one is.
    is_telling = found.n_inside / found.n_calls > found.busy_ratio + _MORE_THAN_CHANCE
    yield Finding(
        "context-lost",
        "warning" if is_telling else "info",
        f"{found.n_inside} of {report.request.n} requests are one call each that ran while another request "
        f"did: {'most likely' if is_telling else 'maybe'} a part of it that lost its trace, in a thread or "
        "behind a network call.",
        {
            "calls_counted_as_requests": found.n_calls,
            "inside_another_request": found.n_inside,
            "against": {
                "other_requests": found.n_others,
                "request_in_flight_ratio": found.busy_ratio,
            },
        },
        "Where they are: start threads with hotspan.ThreadPoolExecutor or hotspan.propagate, and send the "
        "traceparent header on; until then percentiles and shares are not those of whole requests.",
    )


def unattributed(report: Report) -> Iterator[Finding]:
    """Say how much time lies in no stage, but for time in which a call overlapped the next one."""
    whole_ns, whole = report.unattributed.critical_path_ns, report.unattributed.critical_path_ratio
    if whole is None or not whole_ns:
        return
    overlapped = whole * min(report.patterns.overlapped_ns / whole_ns, 1.0)
    ratio = whole - overlapped
    if ratio > _HIGH_UNATTRIBUTED:
        yield Finding(
            "unattributed-time",
            "warning" if ratio > MUCH else "info",
            f"{printed(report, ratio)} of request time lies in no stage.",
            {
                "unattributed_ratio": ratio,
                "against": {
                    "stages_ratio": 1 - whole,
                    "overlapped_by_calls_ratio": overlapped or None,
                    "calls_beside_it_ratio": _beside(report, whole_ns / whole, 1 - whole),
                },
            },
            _what_hides_time(report),
        )


def _beside(report: Report, all_ns: float, on_path: float) -> float | None:
    """Return for how much of the requests the busiest stage ran, where that is more than is on the path."""
    walls = [row.wall_ns or 0 for row in report.stages if row.critical_path_ns is not None]
    ratio = max(walls, default=0) / all_ns
    return ratio if ratio > on_path + _HIGH_UNATTRIBUTED else None


def _what_hides_time(report: Report) -> str:
    """Return the next step: what is wrong with the spans themselves, before more of them are asked for."""
    evidence = report.evidence
    stages = {row.stage for row in report.stages}
    if evidence.n_early_spans:
        return "Spans lie outside of their parents, and their time in no stage: try --skew-adjust first."
    if evidence.n_unfinished_spans or evidence.n_invalid_spans:
        return "Spans without a usable time are in no stage: hotspan show names them. Let them end."
    if semconv.AGENT in stages and semconv.GENERATION not in stages:
        return "Nothing wrote the agents' model calls: instrument the model's client, too."
    return "Wrap the code between the stages: with hotspan.stage('name'): …"


def cold_start(report: Report) -> Iterator[Finding]:
    """Say that the first call of a stage takes much longer than the later ones."""
    request = report.request.duration_ns
    for row in report.stages:
        first, later, share = row.first_call_ns, row.later_calls_p90_ns, row.critical_path_ratio
        if first is None or not later or row.n_later_calls < _MIN_WARM or (share or 0.0) < WORTHWHILE:
            continue
        if row.n_later_calls_as_slow > _MAX_AS_SLOW * row.n_later_calls:
            continue  # calls are that slow now and then, and the first was by chance
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
                    "against": {
                        "later_calls": row.n_later_calls,
                        "later_calls_as_slow": row.n_later_calls_as_slow,
                        "critical_path_ratio": share,
                    },
                },
                "Make one call of each stage before the first user's, or leave the first request out.",
            )


def event_loop_blocked(report: Report) -> Iterator[Finding]:
    """Say that nothing else in the process moved while a stage's calls ran."""
    for stall in report.patterns.stalls:
        share = stall.busy_ns / stall.process_ns if stall.process_ns else 0.0
        is_still = stall.n_seen <= _STANDSTILL * stall.n_expected
        if stall.n_expected >= _MIN_EXPECTED and is_still and share > WORTHWHILE:
            yield Finding(
                "event-loop-blocked",
                "warning",
                f"While {stall.name!r} ({stall.stage}) ran, nothing else in its process moved, though other "
                f"requests were under way: {percent(share)} of the time. It holds the event loop, or a lock "
                "that all need.",
                {
                    "calls_beside_others": stall.n_calls,
                    "mean_call_ms": milliseconds(stall.busy_ns / stall.n_calls),
                    "blocked_ratio": share,
                    "events_expected": stall.n_expected,
                    "against": {"events_seen": stall.n_seen},
                },
                "Run it in a thread or a process (await asyncio.to_thread(…), an executor), or call its "
                "asynchronous form.",
            )
