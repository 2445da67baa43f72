"""The rule about the slowest requests: which part of them grew, and what came with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.analysis.findings.figures import MIN_TAIL, MUCH, milliseconds, open_ended
from hotspan.analysis.model import Finding, Report
from hotspan.analysis.tail import NO_STAGE, UNATTRIBUTED
from hotspan.analysis.words import percent, significant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotspan.analysis.tail import Tail, TailPart

_SLOWER: Final = 1.5  # the slowest against all: less is an ordinary spread
_NEXT: Final = {
    "queue": "They met a queue: send fewer calls at once, or add a replica.",
    "prefill": "They had more to read: bound the prompt, and keep its beginning the same for the cache.",
    "decode": "They had more to write: bound the answers (max_tokens), or stream them to the user.",
    "consumer_hold": "Their consumer was slow: take the work on each token out of the loop that reads them.",
    "backoff": "They were tried again: find what the first attempts failed of.",
}


def slow_tail(report: Report) -> Iterator[Finding]:
    """Say which part makes the slowest requests slow, where one part does."""
    tail = report.tail
    if tail is None or tail.n_requests < MIN_TAIL or tail.slow_ns < _SLOWER * tail.all_ns:
        return
    stage = _grown_most(tail, [part for part in tail.parts if part.phase is None])
    if stage is None:
        return
    phase = _grown_most(tail, [part for part in tail.parts if part.phase and part.stage == stage.stage])
    part = phase or stage
    what = part.phase or part.stage or UNATTRIBUTED
    yield Finding(
        "slow-tail",
        "info",
        f"The slowest {100 - tail.percentile:g} % of requests take {significant(tail.slow_ns / tail.all_ns)} "
        f"times as long as the mean request; {percent(_part_of_growth(tail, part))} of the difference is "
        f"{_name(part)}.",
        {
            "slowest_mean_ms": milliseconds(tail.slow_ns),
            "all_mean_ms": milliseconds(tail.all_ns),
            f"{what}_of_slowest_mean_ms": milliseconds(part.slow_ns),
            f"{what}_of_all_mean_ms": milliseconds(part.all_ns),
            "against": {
                "slowest_requests": tail.n_requests,
                **{
                    f"{factor.name}_factor": _factor(factor.slow_mean, factor.all_mean)
                    for factor in tail.factors
                },
                **(open_ended(report) if part.phase == "decode" else {}),
            },
        },
        _NEXT.get(part.phase or "", "Look at one of them: hotspan show FILE, or --percentile 97."),
    )


def _grown_most(tail: Tail, parts: list[TailPart]) -> TailPart | None:
    """Return the part that makes most of the difference, if one does."""
    part = max(parts, key=lambda part: part.slow_ns - part.all_ns, default=None)
    return part if part is not None and _part_of_growth(tail, part) > MUCH else None


def _part_of_growth(tail: Tail, part: TailPart) -> float:
    return min((part.slow_ns - part.all_ns) / (tail.slow_ns - tail.all_ns), 1.0)


def _factor(slow: float | None, usual: float) -> float | None:
    return slow / usual if usual and slow is not None else None


def _name(part: TailPart) -> str:
    if part.phase is None:
        return "in no stage" if part.stage == NO_STAGE else part.stage
    if part.phase == UNATTRIBUTED:  # the phase: the stage is known
        return f"inside {part.stage}, in none of its phases"
    return f"{part.phase} ({part.stage})"
