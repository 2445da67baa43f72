"""Stages with another library's span between them, which is not in the file."""

from hotspan.analysis import analyse
from hotspan.analysis.repair import repair
from hotspan.tracer import semconv
from hotspan.tracer.record import Trace
from hotspan.tracer.testing import build_trace

STAGES = {"answer": "request", "search": "retrieval", "order": "rerank"}


def trace(*, between, named):
    """A request whose search lies below a span of another library, there or not, named as outer or not."""
    whole = build_trace(
        ("answer", 0, 100),
        ("business", 5, 60, "answer"),
        ("search", 10, 50, "business"),
        ("order", 60, 90, "answer"),
        stages=STAGES,
    )
    outer = whole.roots[0].span_id
    marks = {semconv.OUTER_STAGE: outer} if named else {}
    spans = [
        span._replace(attributes=span.attributes | marks) if span.name == "search" else span
        for span in whole.spans
        if between or span.name != "business"
    ]
    return Trace(whole.trace_id, spans)


def shares(report):
    """Return the stages' shares of the request."""
    return {row["stage"]: row["critical_path_ratio"] for row in report.to_dict()["stages"]}


def test_the_stage_is_a_part_of_the_one_that_it_names():
    """The shares are those with all spans there; nothing is an orphan, and the request is complete."""
    without, with_all = (analyse([trace(between=between, named=True)]) for between in (False, True))
    assert shares(without) == shares(with_all)
    assert shares(without)["retrieval"] == 0.4
    evidence = without.to_dict()["evidence"]
    assert (evidence["orphan_spans"], evidence["partial_traces"], evidence["requests"]) == (0, 0, 1)


def test_without_a_name_it_is_an_orphan():
    """What an older version wrote, or what another writer leaves out, is still said."""
    _, repairs = repair(trace(between=False, named=False))
    assert repairs.n_orphans == 1


def test_the_parent_itself_wins_where_it_is_there():
    """The name is for want of the parent alone."""
    tree, repairs = repair(trace(between=True, named=True))
    (search,) = (index for index, span in enumerate(tree.spans) if span.name == "search")
    assert tree.spans[tree.parents[search]].name == "business"
    assert repairs.n_orphans == 0


def test_a_name_that_is_nowhere_leaves_an_orphan():
    """A stage that was lost too, or a value that is no id."""
    for value in ("f" * 16, 7, None):
        broken = trace(between=False, named=True)
        spans = [
            span._replace(attributes=span.attributes | {semconv.OUTER_STAGE: value})
            if span.name == "search"
            else span
            for span in broken.spans
        ]
        _, repairs = repair(Trace(broken.trace_id, spans))
        assert repairs.n_orphans == 1
