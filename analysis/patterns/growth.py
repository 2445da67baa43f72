"""How an agent's prompt grows from its first model call to its last."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Final

from hotspan.analysis.patterns import PromptGrowth

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hotspan.analysis.amplification import RequestCalls

_MIN_CALLS: Final = 3  # of one agent run: two calls are a question and an answer


def prompt_growth(requests: Iterable[RequestCalls]) -> PromptGrowth | None:
    """Return the growth over the agent runs of all requests; `None` where no run has three counted calls."""
    runs = [run for request in requests if request.has_agent for run in _agent_runs(request)]
    if not runs:
        return None
    return PromptGrowth(
        n_runs=len(runs),
        calls_mean=sum(map(len, runs)) / len(runs),
        first_tokens_p50=statistics.median(run[0] for run in runs),
        last_tokens_p50=statistics.median(run[-1] for run in runs),
        growth_p50=statistics.median(run[-1] / run[0] for run in runs),
    )


def _agent_runs(request: RequestCalls) -> Iterator[list[int]]:
    prompts: dict[int, list[int]] = {}
    for call, agent in zip(request.calls, request.agents, strict=True):
        tokens = call.prompt_tokens
        if agent >= 0 and tokens:
            prompts.setdefault(agent, []).append(tokens)
    return (run for run in prompts.values() if len(run) >= _MIN_CALLS)
