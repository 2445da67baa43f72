"""The model calls of each request, added up: a row a request, in columns."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from hotspan.analysis.columns import MAX, floats, longs
from hotspan.analysis.self_time import union_ns
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator, Sequence

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

    def agent_runs(self) -> Iterator[list[int]]:
        """Yield the prompt tokens of the calls of each agent run, those that are known, in order of start."""
        runs: dict[int, list[int]] = {}
        for call, agent in zip(self.calls, self.agents, strict=True):
            tokens = call.prompt_tokens
            if agent >= 0 and tokens is not None:
                runs.setdefault(agent, []).append(tokens)
        yield from runs.values()


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

    def add_no_times(self) -> None:
        """Leave room for what depends on a request's times."""
        for column in (self.depth, self.wall_ns, self.busy_ns):
            column.append(0)
        self.time_ratio.append(math.nan)

    def add_counts(self, request: RequestCalls) -> None:
        """Take in what does not depend on the request's times."""
        self.n_calls.append(len(request.calls))
        self.n_attempts.append(min(sum([call.n_attempts for call in request.calls]), MAX))
        self.prompt.append(_or_none(request.total(semconv.INPUT_TOKENS)))
        self.cached.append(_or_none(request.total(semconv.CACHED_TOKENS)))
        self.output.append(_or_none(request.total(semconv.OUTPUT_TOKENS)))
        self.has_agent.append(request.has_agent)
        resent = 0
        for run in request.agent_runs() if len(request.calls) > 1 else ():
            resent += sum(min(before, tokens) for before, tokens in pairwise(run))
            counted = [tokens for tokens in run if tokens]
            if request.has_agent and len(counted) >= _MIN_RUN:
                self.run_calls.append(len(counted))
                self.run_first.append(min(counted[0], MAX))
                self.run_last.append(min(counted[-1], MAX))
        self.resent.append(min(resent, MAX))


def _or_none(value: int | None) -> int:
    return NONE if value is None else min(value, MAX)
