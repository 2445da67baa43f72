"""The last route to the engine's account: what its metrics endpoint counted over the run.

It says nothing of one call, so it divides the calls' phases together: means and shares, no percentiles.  Only
where no call has an account of its own, and only if the endpoint counted the run's own calls and no others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hotspan.analysis import columns
from hotspan.analysis.model import PHASES, PhaseRow
from hotspan.analysis.phases import CLIENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotspan.analysis.call_table import CallTable
    from hotspan.analysis.telemetry import EngineTelemetry

BY_ENDPOINT: Final = "metrics endpoint, over the run"
_SAME_RATIO: Final = 0.1  # counts that differ by more are not of the same requests
_WAIT: Final = "first_token_wait"
_ENGINES_OWN: Final = frozenset({"queue", "prefill"})


def run_phases(
    rows: Sequence[PhaseRow], engines: Sequence[EngineTelemetry], calls: CallTable
) -> tuple[PhaseRow, ...]:
    """Return the phases of the run, from those of its successful calls and what was sampled."""
    every = calls.rows()
    n_ok = len(calls.succeeded())
    n_attempts, n_tokens = columns.total(every["n_attempts"]), columns.total(columns.known(every["output"]))
    return divided(rows, engines, n_calls=n_ok, n_attempts=n_attempts, n_tokens=n_tokens)


def divided(
    rows: Sequence[PhaseRow],
    engines: Sequence[EngineTelemetry],
    *,
    n_calls: int,
    n_attempts: int,
    n_tokens: int,
) -> tuple[PhaseRow, ...]:
    """Return the phases of the run with the wait for the first token divided, where the endpoints allow it.

    Args:
        rows: The run's phases; their means add up, and do so afterwards.
        engines: What was sampled.
        n_calls: Calls that the means are over.
        n_attempts: Requests that the engines may have seen.
        n_tokens: Output tokens of the calls, 0 where they are not known.
    """
    wait = next((row for row in rows if row.name == _WAIT), None)
    if wait is None or set(wait.sources) != {CLIENT} or any(row.name in _ENGINES_OWN for row in rows):
        return tuple(rows)
    share = _share_of_calls(engines, n_attempts, n_tokens)
    queue, prefill = _total(engines, "queue_ns"), _total(engines, "prefill_ns")
    if share is None or prefill is None:
        return tuple(rows)
    room = wait.mean_ns * n_calls
    known = {"queue": queue, "prefill": prefill}
    parts: dict[str, float] = {}
    for name, total in known.items():
        if total is not None:
            parts[name] = min(total * share * wait.n_calls / n_attempts, room - sum(parts.values()))
    # Without a queue of the engine's own the rest holds it, and is not the server's around the engine.
    rest = _WAIT if queue is None else "server_before_engine"
    parts[rest] = room - sum(parts.values())
    made = [
        _part(wait, name, part, n_calls, CLIENT if name == rest else BY_ENDPOINT)
        for name, part in parts.items()
    ]
    others = [row for row in rows if row.name != _WAIT]
    return tuple(sorted([*others, *made], key=lambda row: PHASES.index(row.name)))


def _share_of_calls(engines: Sequence[EngineTelemetry], n_attempts: int, n_tokens: int) -> float | None:
    """Return our calls over the requests that the endpoints counted, `None` if these are not the same."""
    counts: tuple[tuple[int | None, int], ...] = (
        (_total(engines, "n_requests"), n_attempts),
        (_total(engines, "output_tokens"), n_tokens),
    )
    for counted, ours in counts:
        if counted is not None and ours:
            is_same = abs(counted - ours) <= max(1.0, _SAME_RATIO * ours)
            return ours / counted if counted and is_same else None
    return None


def _total(engines: Sequence[EngineTelemetry], field: str) -> int | None:
    """Return the sum over all engines; `None` where one does not say."""
    found = [getattr(engine, field) for engine in engines]
    return None if not found or None in found else sum(found)


def _part(wait: PhaseRow, name: str, part_ns: float, n_calls: int, source: str) -> PhaseRow:
    mean_ns = part_ns / n_calls
    ratio = (wait.critical_path_ratio or 0.0) * mean_ns / wait.mean_ns if wait.mean_ns else 0.0
    is_whole = name == wait.name and mean_ns == wait.mean_ns
    return replace(
        wait,
        name=name,
        mean_ns=mean_ns,
        p50_ns=wait.p50_ns if is_whole else None,
        p95_ns=wait.p95_ns if is_whole else None,
        weak=wait.weak if is_whole else (),
        critical_path_ratio=ratio,
        sources={source: wait.n_calls},
    )
