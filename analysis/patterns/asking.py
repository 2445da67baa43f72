"""The requests that ask a model, apart from those of endpoints that never do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotspan.analysis.columns import total, view
from hotspan.analysis.patterns import Asking

if TYPE_CHECKING:
    from hotspan.analysis.request_table import RequestTable
    from hotspan.analysis.tail import RequestRows


def asking(requests: RequestTable, rows: RequestRows) -> Asking | None:
    """Return where the time of the requests with a model call went; `None` where no request has one."""
    asks = view(requests.n_calls) > 0
    if not asks.any():
        return None
    path_ns = {
        stage: total(view(rows.path_ns[stage])[asks[view(where)]]) for stage, where in rows.path_rows.items()
    }
    return Asking(int(asks.sum()), total(view(rows.durations_ns)[asks]), path_ns)
