"""The chain of work that decided how long a request took, from the timing alone.

Source: docs/definitions.md#critical-path.  The backward walk is that of CRISP (Zhang et al., USENIX ATC
2022); it differs in that a child may end exactly when its sibling starts, so that the segments tile the
request.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hotspan.analysis.tree import Tree


class Segment(NamedTuple):
    """A stretch of the request in which it waited for one span's own work."""

    span: int  # index in the tree
    start_ns: int
    end_ns: int


def critical_path(tree: Tree, root: int) -> list[Segment]:
    """Return the critical path of one request, in order of time.

    Walks back from the root's end.  At a cursor inside a span, the child that ends last at or before the
    cursor is what the span waited for: from that end to the cursor the time is the span's own, then the walk
    goes on inside the child, and at the child's start it returns to the span.  Each child is taken once.  Of
    children that end together the one that starts first is taken, then the smaller id.

    Returns:
        Segments that tile the root's interval: no gap, no overlap, none of length 0.
    """
    starts = tree.starts
    segments = []
    span, cursor = root, tree.ends[root]
    waiting = {root: _latest_first(tree, root)}
    while True:
        child = _next_child(tree, waiting[span], cursor)
        if child is not None:
            if tree.ends[child] < cursor:
                segments.append(Segment(span, tree.ends[child], cursor))
            span, cursor = child, tree.ends[child]
            waiting[span] = _latest_first(tree, span)
            continue
        if starts[span] < cursor:
            segments.append(Segment(span, starts[span], cursor))
        if span == root:
            break
        del waiting[span]
        cursor, span = min(cursor, starts[span]), tree.parents[span]
    segments.reverse()
    return segments


def _latest_first(tree: Tree, span: int) -> Iterator[int]:
    starts, ends, spans = tree.starts, tree.ends, tree.spans
    children = tree.children[span]
    if len(children) < 2:  # noqa: PLR2004  # nothing to sort
        return iter(children)
    return iter(sorted(children, key=lambda child: (-ends[child], starts[child], spans[child].span_id)))


def _next_child(tree: Tree, candidates: Iterator[int], cursor: int) -> int | None:
    # The cursor only moves back, so that a child passed over once can never be taken later.
    for child in candidates:
        if tree.ends[child] <= cursor:
            return child
    return None


def slacks(tree: Tree, root: int) -> dict[int, int]:
    """Return by how much each span could grow, in nanoseconds, before it would lie on the critical path.

    What lies on the path has none.  Another span may grow until it ends with the last of those that had ended
    when the next sibling started (or the parent ended), and then by the slack of that sibling (or parent).
    An estimate from the timing: it takes every sibling that starts later for one that waits.

    Returns:
        Index -> slack, for the root and all its descendants.
    """
    on_path = {segment.span for segment in critical_path(tree, root)}
    slack = {root: 0}
    for span in tree.below(root):
        if children := tree.children[span]:
            _fill_slacks(tree, children, span, slack, on_path)
    return slack


def _fill_slacks(
    tree: Tree, children: Sequence[int], parent: int, slack: dict[int, int], on_path: set[int]
) -> None:
    by_start = sorted(children, key=lambda child: (tree.starts[child], tree.ends[child]))
    starts = [tree.starts[child] for child in by_start]
    ends = sorted(tree.ends[child] for child in children)
    for child in reversed(by_start):
        end = tree.ends[child]
        position = bisect_left(starts, end)
        following = by_start[position] if position < len(by_start) else parent
        if child in on_path:
            slack[child] = 0
        elif following == parent or slack.get(following) is None:
            slack[child] = ends[-1] - end + slack[parent]
        else:
            last_before = ends[bisect_right(ends, tree.starts[following]) - 1]
            slack[child] = last_before - end + slack[following]
