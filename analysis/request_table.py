"""The model calls of each request, added up: a row a request, in columns."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from hotspan.analysis.columns import MAX, Floats, Longs, floats, longs, repeat
from hotspan.analysis.self_time import union_ns
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterable, Sequence

    from hotspan.analysis.call_table import Rows
    from hotspan.analysis.generation import ModelCall

NONE: Final = -1
_MIN_RUN: Final = 3  # model calls of one agent run whose prompts are compared


@dataclass(frozen=True, slots=True)
class RequestCalls:
    """The model calls of one request."""

    calls: Sequence[ModelCall]  # in order of start
    agents: Sequence[int]  # which agent run made each call; equal numbers, same run; -1: none did
    intervals: Sequence[tuple[int, int]]  # of each call, clipped to the request
    has_agent: bool

    @property
    def sequential_depth(self) -> int:
        """Calls on the critical path."""
        return sum(call.critical_ns > 0 for call in self.calls)

    @property
    def time_amplification(self) -> float | None:
        """Critical-path time of all calls over the duration of the median one."""
        durations = [call.span.duration_ns for call in self.calls if call.outcome == "ok"]
        median = statistics.median(durations) if durations else 0
        return sum(call.critical_ns for call in self.calls) / median if median else None

    @property
    def wall_ns(self) -> int:
        """Time in which at least one call ran."""
        return union_ns(self.intervals)

    def total(self, key: str) -> int | None:
        """Return a token count over all calls that have it; `None` where none has."""
        if len(self.calls) == 1:
            return self.calls[0].total(key)
        found = [tokens for call in self.calls if (tokens := call.total(key)) is not None]
        return sum(found) if found else None


@dataclass(frozen=True, slots=True)
class RequestColumns:
    """Requests of one form: a row a request in every column."""

    calls: Rows | None  # in the table of calls, a column a call; `None` where they make none
    agents: Sequence[int]  # as in `RequestCalls`, the same for all
    has_agent: bool
    depth: Longs
    busy_ns: Longs
    wall_ns: Longs
    time_ratio: Floats


@dataclass(slots=True)
class RequestTable:
    """One row a request, in the order of reading."""

    n_calls: array[int] = field(default_factory=longs)
    n_attempts: array[int] = field(default_factory=longs)
    depth: array[int] = field(default_factory=longs)  # calls on the critical path
    busy_ns: array[int] = field(default_factory=longs)  # sum of the calls, clipped
    wall_ns: array[int] = field(default_factory=longs)  # their union
    time_ratio: array[float] = field(default_factory=floats)  # time amplification; NaN for none
    prompt: array[int] = field(default_factory=longs)  # tokens; -1 for none, as the two below
    cached: array[int] = field(default_factory=longs)
    output: array[int] = field(default_factory=longs)
    resent: array[int] = field(
        default_factory=longs
    )  # prompt tokens that repeat the call before: an estimate
    has_agent: array[int] = field(default_factory=longs)  # 1 or 0
    run_calls: array[int] = field(default_factory=longs)  # one row an agent run of three calls or more
    run_first: array[int] = field(default_factory=longs)  # prompt tokens of its first call
    run_last: array[int] = field(default_factory=longs)  # and of its last

    def __len__(self) -> int:
        return len(self.n_calls)

    def add(self, request: RequestCalls) -> None:
        """Take in one request."""
        ratio = request.time_amplification
        self.depth.append(request.sequential_depth)
        self.wall_ns.append(request.wall_ns)
        self.time_ratio.append(math.nan if ratio is None else ratio)
        self.busy_ns.append(min(sum(end - start for start, end in request.intervals), MAX))
        self.add_counts(request)

    def extend(self, requests: RequestColumns) -> None:
        """Take in many requests, as `add` does one by one."""
        n, calls = len(requests.depth), requests.calls
        n_calls = 0 if calls is None else calls.shape[1]
        self.depth.frombytes(requests.depth.tobytes())
        self.busy_ns.frombytes(requests.busy_ns.tobytes())
        self.wall_ns.frombytes(requests.wall_ns.tobytes())
        self.time_ratio.frombytes(requests.time_ratio.tobytes())
        repeat(self.n_calls, n_calls, n)
        repeat(self.has_agent, requests.has_agent, n)
        if calls is None:
            repeat(self.n_attempts, 0, n)
            for column in (self.prompt, self.cached, self.output):
                repeat(column, NONE, n)
        else:
            self.n_attempts.frombytes(_summed(calls["n_attempts"]).tobytes())
            for name in ("prompt", "cached", "output"):
                getattr(self, name).frombytes(_summed(calls[name]).tobytes())
        if calls is None or n_calls == 1:
            repeat(self.resent, 0, n)
            return
        for tokens in calls["prompt"].tolist():
            runs = runs_of([None if n < 0 else n for n in tokens], requests.agents)
            self._add_runs(runs, has_agent=requests.has_agent)

    def add_counts(self, request: RequestCalls) -> None:
        """Take in what does not depend on the request's times."""
        self.n_calls.append(len(request.calls))
        self.n_attempts.append(min(sum([call.n_attempts for call in request.calls]), MAX))
        self.prompt.append(_or_none(request.total(semconv.INPUT_TOKENS)))
        self.cached.append(_or_none(request.total(semconv.CACHED_TOKENS)))
        self.output.append(_or_none(request.total(semconv.OUTPUT_TOKENS)))
        self.has_agent.append(request.has_agent)
        runs = runs_of([call.prompt_tokens for call in request.calls], request.agents)
        self._add_runs(runs if len(request.calls) > 1 else (), has_agent=request.has_agent)

    def _add_runs(self, runs: Iterable[Sequence[int]], *, has_agent: bool) -> None:
        resent = 0
        for run in runs:
            resent += sum(min(before, tokens) for before, tokens in pairwise(run))
            counted = [tokens for tokens in run if tokens]
            if has_agent and len(counted) >= _MIN_RUN:
                self.run_calls.append(len(counted))
                self.run_first.append(min(counted[0], MAX))
                self.run_last.append(min(counted[-1], MAX))
        self.resent.append(min(resent, MAX))


def runs_of(tokens: Iterable[int | None], agents: Iterable[int]) -> Iterable[Sequence[int]]:
    """Return the prompt tokens of the calls of each agent run, those that are known, in order of start.

    Args:
        tokens: Of the calls of one request.
        agents: Which agent run made each; -1: none did.
    """
    runs: dict[int, list[int]] = {}
    for known, agent in zip(tokens, agents, strict=True):
        if agent >= 0 and known is not None:
            runs.setdefault(agent, []).append(known)
    return runs.values()


def _summed(counts: Longs) -> Longs:
    """Return the sum of each row, of what is known: -1 where nothing is."""
    if counts.shape[1] == 1:
        return counts[:, 0]
    sums = np.zeros(len(counts), dtype=np.int64)
    for column in counts.T:
        sums += np.minimum(np.maximum(column, 0), MAX - sums)
    return np.where((counts != NONE).any(axis=1), sums, NONE)


def _or_none(value: int | None) -> int:
    return NONE if value is None else min(value, MAX)
