"""The critical path of ten thousand random traces, against a brute-force oracle."""

from __future__ import annotations

import random

from hotspan.analysis.critical_path import critical_path
from hotspan.analysis.repair import repair
from hotspan.tracer.testing import build_trace

N_TRACES = 10_000


def _trace(rng):
    """Return a trace of up to 20 spans: children anywhere, also outside of their parent, many at once."""
    spans = [("s00", 0, rng.randint(1, 60))]
    for number in range(1, rng.randint(1, 20)):
        start, end = sorted((rng.randint(0, 70), rng.randint(0, 70)))
        spans.append((f"s{number:02}", start, end, rng.choice(spans)[0]))
    rng.shuffle(spans)
    return build_trace(*spans, stages={"s00": "request"})


def _painted(tree, root):
    """Return the owner of every nanosecond of the root, asked one by one and without a memory.

    The walk of the definition, one step at a time: at a cursor inside a span, either a child ends here, and
    the walk goes on inside it, or the nanosecond before the cursor is the span's own.
    """
    owners = {}
    stack = [(root, tree.ends[root], set(tree.children[root]))]
    while stack:
        span, cursor, left = stack.pop()
        left -= {child for child in left if tree.ends[child] > cursor}
        here = [child for child in left if tree.ends[child] == cursor]
        if here:
            child = min(here, key=lambda c: (tree.starts[c], tree.spans[c].span_id))
            left.discard(child)
            # What is left of this span goes on where the child starts.
            stack.append((span, tree.starts[child], left))
            stack.append((child, cursor, set(tree.children[child])))
        elif cursor > tree.starts[span]:
            owners[cursor - 1] = span
            stack.append((span, cursor - 1, left))
    return owners


def test_ten_thousand_random_traces_have_the_path_of_the_oracle():
    """Every nanosecond of every request belongs to the span that the brute-force walk gives it to."""
    rng = random.Random(20261130)  # noqa: S311 - no secret; the same traces every time
    n_at_once = 0
    for _ in range(N_TRACES):
        tree, _ = repair(_trace(rng))
        (root,) = tree.roots
        found = {
            nanosecond: segment.span
            for segment in critical_path(tree, root)
            for nanosecond in range(segment.start_ns, segment.end_ns)
        }
        assert found == _painted(tree, root)
        n_at_once += any(len(children) > 1 for children in tree.children)

    assert n_at_once > N_TRACES // 2  # most of them have something to choose
