"""How an agent's prompt grows from its first model call to its last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotspan.analysis.columns import view
from hotspan.analysis.patterns import PromptGrowth
from hotspan.analysis.percentiles import median

if TYPE_CHECKING:
    from hotspan.analysis.request_table import RequestTable


def prompt_growth(requests: RequestTable) -> PromptGrowth | None:
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
    )
