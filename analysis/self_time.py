"""How long each span worked alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotspan.analysis.tree import Tree


def union_ns(intervals: Sequence[tuple[int, int]]) -> int:
    """Return the length that a set of intervals covers; a nanosecond covered twice counts once."""
    if not intervals:
        return 0
    covered, cursor = 0, None
    for start, end in sorted(intervals):
        begin = start if cursor is None or start > cursor else cursor
        if end > begin:
            covered += end - begin
            cursor = end
    return covered


def self_times(tree: Tree, children: Sequence[Sequence[int]] | None = None) -> list[int]:
    """Return how long each span worked alone, in nanoseconds.

    Self time is the span's duration minus the *union* of its children's clipped intervals.  A union, not a
    sum: children that run at once cover the same nanosecond once, and self time is never negative.

    Args:
        tree: One repaired trace.
        children: Other children per span than the tree's own, within their parents: the nearest descendants
            that have a stage, when the time of the spans between belongs to the span above.

    Returns:
        One time per span of the tree, in [0, duration].

    Source: docs/definitions.md#time-of-one-span.
    """
    # parent  |--------------------|
    # child     |------|                 counts whole
    # child        |------|              counts from the end of the one before
    # child                     |-----|  was cut at the parent's end by the repair
    starts, ends = tree.starts, tree.ends
    below = tree.children if children is None else children
    return [
        ends[index] - starts[index] - union_ns([(starts[child], ends[child]) for child in below[index]])
        for index in range(len(tree.spans))
    ]
