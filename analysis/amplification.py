"""How many model calls one request costs, in a row and side by side.

Source: docs/definitions.md#amplification.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hotspan.analysis.model import Amplification
from hotspan.analysis.percentiles import per_request
from hotspan.analysis.self_time import union_ns
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotspan.analysis.generation import ModelCall


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


def amplification(requests: Sequence[RequestCalls]) -> Amplification:
    """Return the amplification of the requests that ran an agent; without any, of all with a model call."""
    with_agent = [request for request in requests if request.has_agent and request.calls]
    counted = with_agent or [request for request in requests if request.calls]
    busy_ns = sum(end - start for request in counted for start, end in request.intervals)
    wall_ns = sum(union_ns(request.intervals) for request in counted)
    times = [time for request in counted if (time := request.time_amplification) is not None]
    prompt, cached, resent = _prompt_tokens(counted)
    return Amplification(
        n_requests=len(counted),
        is_agent=bool(with_agent),
        model_calls=per_request([len(request.calls) for request in counted]),
        attempts=per_request([sum(call.n_attempts for call in request.calls) for request in counted]),
        sequential_depth=per_request([request.sequential_depth for request in counted]),
        parallelism=busy_ns / wall_ns if wall_ns else None,
        prompt_tokens_resent_ratio=resent / prompt if prompt else None,
        cached_prompt_ratio=min(cached / prompt, 1.0) if prompt and cached is not None else None,
        time_amplification=per_request(times),
    )


def _prompt_tokens(requests: Sequence[RequestCalls]) -> tuple[int, int | None, int]:
    """Return the prompt tokens that were sent, that a cache answered, and that had been sent before."""
    prompt, resent = 0, 0
    cached: int | None = None
    for request in requests:
        for call in request.calls:
            prompt += call.prompt_tokens or 0
            found = call.total(semconv.CACHED_TOKENS)
            cached = cached if found is None else (cached or 0) + found
        resent += _resent_tokens(request)
    return prompt, cached, resent


def _resent_tokens(request: RequestCalls) -> int:
    """Return how many prompt tokens repeat the prompt of the agent's call before: an estimate, by length."""
    before: dict[int, int] = {}
    resent = 0
    for call, agent in zip(request.calls, request.agents, strict=True):
        tokens = call.prompt_tokens
        if agent < 0 or tokens is None:
            continue
        resent += min(before.get(agent, 0), tokens)
        before[agent] = tokens
    return resent
