"""Time that lies on a request, agent or step by the rule of the critical path, while a call of it ran.

Source: docs/definitions.md#critical-path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hotspan.analysis.columns import total
from hotspan.analysis.patterns.path import OnPath
from hotspan.analysis.self_time import union_ns
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hotspan.analysis.alike import Alike
    from hotspan.analysis.calls import Calls
    from hotspan.analysis.critical_path import Segment
    from hotspan.analysis.tree import Tree

Mask = np.ndarray[Any, np.dtype[np.bool_]]


def overlapped_ns(tree: Tree, calls: Calls, below: Iterable[int], segments: Sequence[Segment]) -> int:
    """Return the unattributed time of one request in which any of its calls ran.

    Args:
        tree: With the request in it.
        calls: Of the tree.
        below: The request's root, and all spans below it.
        segments: Its critical path.
    """
    free, running = _intervals(tree, calls, below, segments)
    return union_ns(free) + union_ns(running) - union_ns(free + running)


def overlapped_by_all(traces: Alike) -> int:
    """Return the same of requests that are alike, all together."""
    tree, calls = traces.tree, traces.form.calls
    free, running = _intervals(tree, calls, range(len(tree.spans)), traces.segments)
    # All of one request's intervals lie within it: beyond its last stamp nothing begins.
    in_both = _covered(free, len(traces.stamps)) & _covered(running, len(traces.stamps))
    return sum(total(traces.between(place, place + 1)) for place in np.flatnonzero(in_both).tolist())


def _covered(intervals: Sequence[tuple[int, int]], n_places: int) -> Mask:
    covered = np.zeros(n_places, dtype=bool)
    for start, end in intervals:
        covered[start:end] = True
    return covered


def _intervals(
    tree: Tree, calls: Calls, below: Iterable[int], segments: Sequence[Segment]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return when nothing but the request waited, and when its calls ran."""
    alone = [part for part in segments if not _is_work(calls, calls.owners[part.span])]
    if not alone:
        return [], []
    around = OnPath(tree, alone)  # a tool that runs an agent overlaps nothing: it is the agent's time
    running = [
        (tree.starts[index], tree.ends[index])
        for index in below
        if _is_work(calls, index) and not around.holds(index)
    ]
    return [(part.start_ns, part.end_ns) for part in alone], running


def _is_work(calls: Calls, index: int) -> bool:
    stage = calls.stages[index]
    return stage is not None and stage not in semconv.ENVELOPES
