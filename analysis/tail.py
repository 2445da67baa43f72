"""What is different in the slowest requests: their stages, phases, tokens, calls, and what ran beside them.

Source: docs/definitions.md#the-slow-tail.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hotspan.analysis import generation_summary, percentiles
from hotspan.analysis.columns import repeat, view
from hotspan.analysis.model import PHASES
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hotspan.analysis.call_table import CallTable
    from hotspan.analysis.model import PhaseRow
    from hotspan.analysis.request_table import RequestTable

JsonDict = dict[str, Any]
DEFAULT_PERCENTILE: Final = 95.0
UNATTRIBUTED: Final = "unattributed"
NO_STAGE: Final = ""  # what no stage is called: the time in none
_MS_PER_NS: Final = 1e-6


@dataclass(frozen=True, slots=True)
class TailPart:
    """Critical-path time of one stage, or of one phase of generation, a request: all against the slowest."""

    stage: str  # a stage, or `NO_STAGE`
    phase: str | None  # of generation; None: the whole stage
    all_ns: float  # mean over all requests
    slow_ns: float  # mean over the slowest
    all_ratio: float  # of all request time
    slow_ratio: float  # of the time of the slowest

    def to_dict(self) -> JsonDict:
        """Return the JSON form."""
        return {
            "stage": self.stage or UNATTRIBUTED,
            "phase": self.phase,
            "all_mean_ms": self.all_ns * _MS_PER_NS,
            "slow_mean_ms": self.slow_ns * _MS_PER_NS,
            "all_ratio": self.all_ratio,
            "slow_ratio": self.slow_ratio,
        }


@dataclass(frozen=True, slots=True)
class TailFactor:
    """A count a request, or a state it met: mean over all that tell it against the slowest that do."""

    name: str  # model_calls | attempts | prompt_tokens | output_tokens | requests_in_flight_at_start
    all_mean: float
    slow_mean: float | None  # None: known of none of them

    def to_dict(self) -> JsonDict:
        """Return the JSON form."""
        return {"name": self.name, "all_mean": self.all_mean, "slow_mean": self.slow_mean}


@dataclass(frozen=True, slots=True)
class Tail:
    """The successful requests at and above a percentile of their durations, against all requests."""

    percentile: float  # in (0, 100)
    from_ns: float  # that percentile
    n_requests: int  # the slowest
    n_all: int
    all_ns: float  # mean duration
    slow_ns: float
    parts: tuple[TailPart, ...] = ()  # what grew most first, each stage followed by its phases
    factors: tuple[TailFactor, ...] = ()

    def to_dict(self) -> JsonDict:
        """Return the JSON form."""
        return {
            "percentile": self.percentile,
            "from_ms": self.from_ns * _MS_PER_NS,
            "requests": self.n_requests,
            "all_requests": self.n_all,
            "all_mean_ms": self.all_ns * _MS_PER_NS,
            "slow_mean_ms": self.slow_ns * _MS_PER_NS,
            "parts": [part.to_dict() for part in self.parts],
            "factors": [factor.to_dict() for factor in self.factors],
        }


@dataclass(slots=True)
class RequestRows:
    """One row a request, in columns: what is needed to look at some of them when all are read."""

    starts_ns: array[int] = field(default_factory=lambda: array("q"))
    durations_ns: array[int] = field(default_factory=lambda: array("q"))
    has_succeeded: array[int] = field(default_factory=lambda: array("b"))
    are_calls: array[int] = field(default_factory=lambda: array("b"))  # the root is a call of a stage
    path_rows: dict[str, array[int]] = field(default_factory=dict)  # stage -> requests that waited for it
    path_ns: dict[str, array[int]] = field(default_factory=dict)  # stage -> for how long, in the same order

    def add(
        self, start_ns: int, duration_ns: int, path_ns: Mapping[str, int], *, succeeded: bool, is_call: bool
    ) -> None:
        """Take in one request and its critical-path time by stage."""
        row = len(self.starts_ns)
        self.starts_ns.append(start_ns)
        self.durations_ns.append(duration_ns)
        self.has_succeeded.append(succeeded)
        self.are_calls.append(is_call)
        for stage, ns in path_ns.items():
            rows, times = self._path(stage)
            rows.append(row)
            times.append(ns)

    def extend(self, starts_ns: Longs, durations_ns: Longs, *, succeeded: bool, are_calls: bool) -> int:
        """Take in many requests without their paths, and return the row of the first."""
        first = len(self.starts_ns)
        self.starts_ns.frombytes(starts_ns.tobytes())
        self.durations_ns.frombytes(durations_ns.tobytes())
        repeat(self.has_succeeded, succeeded, len(starts_ns))
        repeat(self.are_calls, are_calls, len(starts_ns))
        return first

    def add_paths(self, stage: str, rows: Longs, path_ns: Longs) -> None:
        """Take in the critical-path time of one stage in some requests, 0 where they did not wait for it."""
        waited = path_ns > 0
        if waited.any():
            for column, values in zip(self._path(stage), (rows, path_ns), strict=True):
                column.frombytes(values[waited].tobytes())

    def _path(self, stage: str) -> tuple[array[int], array[int]]:
        if stage not in self.path_rows:
            self.path_rows[stage], self.path_ns[stage] = array("q"), array("q")
        return self.path_rows[stage], self.path_ns[stage]


def tail_of(
    rows: RequestRows,
    requests: RequestTable,
    calls: CallTable,
    phase_rows: Iterable[PhaseRow],
    percentile: float = DEFAULT_PERCENTILE,
) -> Tail | None:
    """Return what the slowest requests have that others do not; `None` where no request succeeded.

    Args:
        rows: All requests.
        requests: The model calls of each, in the same order.
        calls: All model calls.
        phase_rows: The phases of those that succeeded.
        percentile: In (0, 100): 95 for the slowest twentieth.
    """
    durations = np.array(rows.durations_ns, dtype=np.int64)
    succeeded = np.array(rows.has_succeeded, dtype=bool)
    if not succeeded.any():
        return None
    from_ns = percentiles.percentile(durations[succeeded], percentile)
    slow = succeeded & (durations >= from_ns)
    whole = float(durations.sum())
    slow_phases = _phase_sums(calls, slow)
    phases = {
        row.name: ((row.critical_path_ratio or 0.0) * whole, slow_phases.get(row.name, 0.0))
        for row in phase_rows
    }
    return Tail(
        percentile=percentile,
        from_ns=from_ns,
        n_requests=int(slow.sum()),
        n_all=len(durations),
        all_ns=float(durations.mean()),
        slow_ns=float(durations[slow].mean()),
        parts=tuple(_parts(rows, durations, slow, phases)),
        factors=tuple(_factors(rows, requests, slow)),
    )


Longs = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


def _parts(
    rows: RequestRows, durations: Longs, slow: Mask, phases: Mapping[str, tuple[float, float]]
) -> Iterator[TailPart]:
    whole = float(durations.sum()), float(durations[slow].sum())
    counts = len(durations), int(slow.sum())
    stages = {stage: _sums(rows, stage, slow) for stage in rows.path_rows}
    for stage, sums in sorted(stages.items(), key=lambda item: (-_grown(item[1], counts), item[0])):
        yield _part(stage, None, sums, whole, counts)
        if stage == semconv.GENERATION:
            for phase, of_phase in sorted(phases.items(), key=lambda item: -_grown(item[1], counts)):
                yield _part(stage, phase, of_phase, whole, counts)


def _sums(rows: RequestRows, stage: str, slow: Mask) -> tuple[float, float]:
    where = np.array(rows.path_rows[stage], dtype=np.int64)
    ns = np.array(rows.path_ns[stage], dtype=np.int64)
    return float(ns.sum()), float(ns[slow[where]].sum())


def _grown(sums: tuple[float, float], counts: tuple[int, int]) -> float:
    return sums[1] / counts[1] - sums[0] / counts[0]


def _part(
    stage: str,
    phase: str | None,
    sums: tuple[float, float],
    whole: tuple[float, float],
    counts: tuple[int, int],
) -> TailPart:
    means = [total / count for total, count in zip(sums, counts, strict=True)]
    ratios = [total / time if time else 0.0 for total, time in zip(sums, whole, strict=True)]
    return TailPart(stage, phase, means[0], means[1], ratios[0], ratios[1])


def _phase_sums(calls: CallTable, slow: Mask) -> dict[str, float]:
    """Return the critical-path time of each phase in the slow requests: a call's, divided in proportion."""
    ok = calls.succeeded()
    ok = ok.those(ok["request"] >= 0)
    shares = generation_summary.phase_shares(ok.those(slow[ok["request"]]))
    return dict(zip(PHASES, shares.sum(axis=0).tolist(), strict=True))


def _factors(rows: RequestRows, requests: RequestTable, slow: Mask) -> Iterator[TailFactor]:
    for name, column in _COUNTS.items():
        counts = view(getattr(requests, column)).astype(np.float64)
        has_count = counts >= 0
        if counts[has_count].any():
            of_slow = counts[slow & has_count]
            slow_mean = float(of_slow.mean()) if len(of_slow) else None
            yield TailFactor(name, float(counts[has_count].mean()), slow_mean)
    in_flight = _in_flight_at_start(rows)
    if in_flight.any():
        yield TailFactor(
            "requests_in_flight_at_start", float(in_flight.mean()), float(in_flight[slow].mean())
        )


def _in_flight_at_start(rows: RequestRows) -> Longs:
    """Return how many other requests had started and not ended when each one started."""
    starts = np.array(rows.starts_ns, dtype=np.int64)
    ends = np.sort(starts + np.array(rows.durations_ns, dtype=np.int64))
    started = np.searchsorted(np.sort(starts), starts, side="left")
    ended = np.searchsorted(ends, starts, side="right")
    in_flight: Longs = np.maximum(started - ended, 0)
    return in_flight


_COUNTS: Final = {
    "model_calls": "n_calls",
    "attempts": "n_attempts",
    "prompt_tokens": "prompt",
    "output_tokens": "output",
}
