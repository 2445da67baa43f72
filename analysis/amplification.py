"""How many model calls one request costs, in a row and side by side.

Source: docs/definitions.md#amplification.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hotspan.analysis.columns import known, total, view
from hotspan.analysis.model import Amplification
from hotspan.analysis.percentiles import per_request

if TYPE_CHECKING:
    from hotspan.analysis.request_table import RequestTable


def amplification(requests: RequestTable) -> Amplification:
    """Return the amplification of the requests with a model call: those that ran an agent, if any did."""
    n_calls = view(requests.n_calls)
    with_calls = n_calls > 0
    with_agent = with_calls & (view(requests.has_agent) > 0)
    counted = with_agent if with_agent.any() else with_calls
    wall_ns = total(view(requests.wall_ns)[counted])
    ratios = view(requests.time_ratio)[counted]
    ratios = ratios[~np.isnan(ratios)]
    prompt = total(known(view(requests.prompt)[counted]))
    cached = known(view(requests.cached)[counted])
    resent = total(view(requests.resent)[counted])
    return Amplification(
        n_requests=int(counted.sum()),
        is_agent=bool(with_agent.any()),
        model_calls=per_request(n_calls[counted]),
        attempts=per_request(view(requests.n_attempts)[counted]),
        sequential_depth=per_request(view(requests.depth)[counted]),
        parallelism=total(view(requests.busy_ns)[counted]) / wall_ns if wall_ns else None,
        prompt_tokens_resent_ratio=resent / prompt if prompt else None,
        cached_prompt_ratio=min(total(cached) / prompt, 1.0) if prompt and len(cached) else None,
        time_amplification=per_request(ratios),
        n_timed=len(ratios),
    )
