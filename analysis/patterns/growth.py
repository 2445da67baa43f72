"""How an agent's prompt grows from its first model call to its last."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hotspan.analysis.columns import view
from hotspan.analysis.patterns import PromptGrowth
from hotspan.analysis.percentiles import median

if TYPE_CHECKING:
    from hotspan.analysis.call_table import CallTable
    from hotspan.analysis.request_table import RequestTable


def prompt_growth(requests: RequestTable, calls: CallTable) -> PromptGrowth | None:
    """Return the growth over the agent runs of all requests; `None` where no run has three counted calls."""
    if not len(requests.run_calls):
        return None
    first, last = view(requests.run_first), view(requests.run_last)
    return PromptGrowth(
        n_runs=len(first),
        calls_mean=float(view(requests.run_calls).mean()),
        first_tokens_p50=median(first),
        last_tokens_p50=median(last),
        growth_p50=median(last / first),
        long_prompts_time_ratio=_long_prompts_time_ratio(requests, calls),
    )


def _long_prompts_time_ratio(requests: RequestTable, calls: CallTable) -> float | None:
    found = calls.succeeded()
    found = found.those((found["prompt"] >= 0) & (found["request"] >= 0))
    found = found.those(view(requests.has_agent)[found["request"]] > 0)
    prompts, durations = found["prompt"].astype(np.float64), found["duration_ns"].astype(np.float64)
    if not len(prompts):
        return None
    is_long = prompts > prompts.mean()
    if not is_long.any() or not (short := durations[~is_long].mean()):
        return None
    return float(durations[is_long].mean() / short)
