"""Time that lies on a request, agent or step by the rule of the critical path, while a call of it ran.

Source: docs/definitions.md#critical-path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotspan.analysis.patterns.path import OnPath
from hotspan.analysis.self_time import union_ns
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hotspan.analysis.calls import Calls
    from hotspan.analysis.critical_path import Segment
    from hotspan.analysis.tree import Tree


def overlapped_ns(tree: Tree, calls: Calls, below: Iterable[int], segments: Sequence[Segment]) -> int:
    """Return the unattributed time of one request in which any of its calls ran.

    Args:
        tree: With the request in it.
        calls: Of the tree.
        below: The request's root, and all spans below it.
        segments: Its critical path.
    """
    alone = [part for part in segments if not _is_work(calls, calls.owners[part.span])]
    if not alone:
        return 0
    around = OnPath(tree, alone)  # a tool that runs an agent overlaps nothing: it is the agent's time
    running = [
        (tree.starts[index], tree.ends[index])
        for index in below
        if _is_work(calls, index) and not around.holds(index)
    ]
    free = [(part.start_ns, part.end_ns) for part in alone]
    return union_ns(free) + union_ns(running) - union_ns(free + running)


def _is_work(calls: Calls, index: int) -> bool:
    stage = calls.stages[index]
    return stage is not None and stage not in semconv.ENVELOPES
