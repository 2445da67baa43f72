"""The laws of the analysis, on traces of any shape, against brute force that paints every nanosecond."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hotspan.analysis.calls import calls_of
from hotspan.analysis.critical_path import critical_path, slacks
from hotspan.analysis.repair import repair
from hotspan.analysis.report import analyse
from hotspan.analysis.self_time import self_times, union_ns
from hotspan.analysis.what_if import replay_ns, timeline_of
from hotspan.tracer.testing import build_trace

STAGES = ("agent", "step", "embedding", "retrieval", "generation", "tool", "postprocess", None)


@st.composite
def traces(draw, *, may_overflow=True):
    """Draw a trace with one root: children anywhere, also outside of their parent; some have a stage."""
    n = draw(st.integers(1, 12))
    spans, stages = [("s0", 0, draw(st.integers(1, 60)))], {"s0": "request"}
    for number in range(1, n):
        parent, parent_start, parent_end = spans[draw(st.integers(0, number - 1))][:3]
        room = (0, 80) if may_overflow else (parent_start, parent_end)
        start, end = sorted((draw(st.integers(*room)), draw(st.integers(*room))))
        spans.append((f"s{number}", start, end, parent))
        if stage := draw(st.sampled_from(STAGES)):
            stages[f"s{number}"] = stage
    order = draw(st.permutations(spans))
    return build_trace(*order, stages=stages)


def _tree(trace):
    return repair(trace)[0]


def _painted(tree, index):
    """Return every nanosecond of a span's clipped interval."""
    return set(range(tree.starts[index], tree.ends[index]))


def _path_by_definition(tree, span, cursor):
    """Walk back from `cursor` inside `span`, as the definition says it, by recursion."""
    path, left = [], set(tree.children[span])
    while True:
        ended = [child for child in left if tree.ends[child] <= cursor]
        if not ended:
            break
        child = min(ended, key=lambda c: (-tree.ends[c], tree.starts[c], tree.spans[c].span_id))
        left.remove(child)
        path.append((span, tree.ends[child], cursor))
        path.extend(_path_by_definition(tree, child, tree.ends[child]))
        cursor = tree.starts[child]
    path.append((span, tree.starts[span], cursor))
    return [(index, start, end) for index, start, end in path if start < end]


@given(traces())
def test_critical_path_is_the_walk_of_the_definition(trace):
    """The iterative walk and the recursive one of the definition give the same segments."""
    tree = _tree(trace)
    (root,) = tree.roots

    expected = _path_by_definition(tree, root, tree.ends[root])

    assert [tuple(segment) for segment in critical_path(tree, root)] == sorted(expected, key=lambda s: s[1])


@given(traces())
def test_critical_path_tiles_the_request(trace):
    """Law 1: no gap, no overlap, sum = duration; and each segment lies in its span."""
    tree = _tree(trace)
    (root,) = tree.roots
    cursor = tree.starts[root]
    for span, start, end in critical_path(tree, root):
        assert start == cursor
        assert tree.starts[span] <= start < end <= tree.ends[span]
        cursor = end

    assert cursor == tree.ends[root]


@given(traces())
def test_self_time_is_what_no_child_covers(trace):
    """Law 2: duration minus the painted union of the children, in [0, duration]."""
    tree = _tree(trace)
    found = self_times(tree)

    for index in range(len(tree.spans)):
        covered = set().union(*(_painted(tree, child) for child in tree.children[index]))
        assert found[index] == len(_painted(tree, index) - covered)
        assert 0 <= found[index] <= tree.duration_ns(index)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)).map(sorted).map(tuple)))
def test_union_counts_a_nanosecond_once(intervals):
    """The union is the size of the painted set, in whatever order the intervals come."""
    painted = set().union(*(range(start, end) for start, end in intervals))

    assert union_ns(intervals) == len(painted)


@given(traces())
def test_a_child_lies_in_its_clipped_parent(trace):
    """Clipping is transitive: nothing reaches outside of anything above it."""
    tree = _tree(trace)

    for index, parent in enumerate(tree.parents):
        assert tree.starts[index] <= tree.ends[index]
        if parent >= 0:
            assert parent < index
            assert tree.starts[parent] <= tree.starts[index]
            assert tree.ends[index] <= tree.ends[parent]


@given(st.lists(st.integers(1, 20), min_size=1, max_size=8), st.integers(0, 5))
def test_self_times_of_a_sequential_trace_sum_to_the_root(durations, pause):
    """Law 2: where nothing runs at once, the self times add up to the request."""
    spans, now = [], pause
    for number, duration in enumerate(durations):
        spans.append((f"c{number}", now, now + duration, "root"))
        now += duration + pause
    tree = _tree(build_trace(("root", 0, now), *spans, stages={"root": "request"}))

    assert sum(self_times(tree)) == now


@given(st.lists(traces(), min_size=1, max_size=4))
@settings(max_examples=60)
def test_stage_shares_and_unattributed_are_the_whole_request(found):
    """Law 3, first half: nanoseconds exactly, ratios to the last bits."""
    report = analyse(found)

    total_ns = sum(trace.by_id["s0"].duration_ns for trace in found)
    shares_ns = sum(row.critical_path_ns or 0 for row in report.stages)
    assert shares_ns + report.unattributed.critical_path_ns == total_ns
    ratios = [row.critical_path_ratio or 0 for row in report.stages]
    assert abs(sum(ratios) + report.unattributed.critical_path_ratio - 1) < 1e-9


@given(st.lists(traces(), min_size=1, max_size=4))
@settings(max_examples=60)
def test_wall_and_self_never_exceed_the_requests_and_wall_never_exceeds_busy(found):
    """Shares are exclusive or unions: none can pass 100 %; busy is a sum and may."""
    total_ns = sum(trace.by_id["s0"].duration_ns for trace in found)

    for row in analyse(found).stages:
        assert 0 <= row.wall_ns <= total_ns
        assert row.wall_ns <= row.busy_ns
        assert 0 <= (row.critical_path_ns or 0) <= row.wall_ns


@given(traces())
def test_the_order_of_the_spans_does_not_matter(trace):
    """A file's order is chance: the same spans give the same report."""
    backwards = type(trace)(trace.trace_id, reversed(trace.spans))

    assert analyse([backwards]) == analyse([trace])


@given(traces())
def test_analysis_changes_nothing(trace):
    """Inputs are never changed."""
    before = trace.spans

    analyse([trace])

    assert trace.spans is before
    assert trace.spans == tuple(span._replace() for span in before)


@given(traces())
def test_a_replay_without_a_change_takes_as_long_as_before(trace):
    """Factor 1 is the request itself, to the nanosecond."""
    tree = _tree(trace)
    (root,) = tree.roots

    assert replay_ns(timeline_of(tree, calls_of(tree), root), {}) == tree.duration_ns(root)


@given(traces(), st.sampled_from([stage for stage in STAGES if stage]), st.floats(0, 1))
def test_a_faster_stage_never_makes_a_request_slower(trace, stage, factor):
    """What is taken from one stage is at most what the replay takes from the request."""
    tree = _tree(trace)
    (root,) = tree.roots
    timeline = timeline_of(tree, calls_of(tree), root)

    assert -1e-9 <= replay_ns(timeline, {stage: factor}) <= tree.duration_ns(root) + 1e-9


@given(traces())
def test_slack_is_never_negative_and_none_on_the_critical_path(trace):
    """A span on the path has none; no other can be owed time."""
    tree = _tree(trace)
    (root,) = tree.roots
    found = slacks(tree, root)

    assert set(found) == set(range(len(tree.spans)))
    assert all(slack >= 0 for slack in found.values())
    assert all(found[segment.span] == 0 for segment in critical_path(tree, root))
