"""Requests that begin below another library's span, which is not in the file."""

from __future__ import annotations

import pytest
from made_traces import MS, Call, answer, request

from hotspan.analysis import analyse
from hotspan.analysis.groups import Grouping
from hotspan.analysis.repair import repair
from hotspan.exporters.reports.choose import choose
from hotspan.exporters.reports.evidence import summary, troubles
from hotspan.tracer import semconv
from hotspan.tracer.record import SpanRecord, Trace
from hotspan.tracer.testing import build_trace

ENTRY = {semconv.ENTRY: True}
ELSEWHERE = "f00"


def _asked(number):
    """One request of three stages; the later ones are slower."""
    search = Call("retrieval", "search", 5, 20 + number)
    return request(number, 100 + 10 * number, search, answer(30 + number, 90, output=7, ttft=20, last=40))


def _entered(*traces, trace_id="1"):
    """The requests as parts of one trace, whose root is another library's span that is not there."""
    spans = [span._replace(trace_id=trace_id) for trace in traces for span in trace.spans]
    return Trace(
        trace_id,
        [
            span._replace(parent_id=ELSEWHERE, attributes=span.attributes | ENTRY)
            if span.parent_id is None
            else span
            for span in spans
        ],
    )


def _figures(report):
    """Return everything but what counts traces and entries."""
    found = report.to_dict()
    for key in ("traces", "entry_requests"):
        found["evidence"].pop(key)
    return found


def test_they_are_requests_like_others():
    """Percentiles, shares, calls per request, amplification, what-if: all as if they had no parent."""
    plain, entered = (
        analyse(map(_asked, range(1, 4))),
        analyse(_entered(_asked(n), trace_id=str(n)) for n in (1, 2, 3)),
    )

    assert _figures(entered) == _figures(plain)
    assert entered.request.n == 3
    assert (plain.evidence.n_entry_requests, entered.evidence.n_entry_requests) == (0, 3)


def test_several_in_one_trace_are_several_requests():
    """A caller that is not in the file asked three times: as many requests, each with its own calls."""
    report = analyse([_entered(*map(_asked, range(1, 4)))])

    assert _figures(report) == _figures(analyse(map(_asked, range(1, 4))))
    assert (report.evidence.n_traces, report.evidence.n_entry_requests) == (1, 3)
    assert {row.stage: row.calls_per_request.max for row in report.stages} == dict.fromkeys(
        ("request", "retrieval", "generation"), 1
    )


def test_it_is_said_beside_the_requests_and_is_no_trouble():
    """How many begin so is in the first line; nothing is missing that was to be there."""
    report = analyse([_entered(_asked(1), trace_id="1"), _asked(2)])
    evidence = report.evidence

    assert (evidence.n_partial_traces, evidence.n_orphan_spans) == (0, 0)
    assert "2 requests, 1 of them below another library's span, which is not in the file" in summary(evidence)
    assert "6 spans, all complete" in summary(evidence)
    assert troubles(evidence) == []
    assert "1 request, each below another library's span, which is not in the file" in summary(
        analyse([_entered(_asked(1))]).evidence
    )


def test_where_the_parent_is_in_the_file_nothing_changes():
    """The other library's root span is the request then, however long before the stage it began."""
    spans = ("GET", 0, 150), ("ask", 10, 110, "GET"), ("search", 20, 50, "ask")
    report = analyse(
        [build_trace(*spans, stages={"ask": "request", "search": "retrieval"}, attributes={"ask": ENTRY})]
    )

    assert (report.request.n, report.request.duration_ns.max) == (1, 150)
    assert report.evidence.n_entry_requests == 0


def test_beside_a_root_both_are_requests():
    """A caller's request and the one of the called service are each a request of its program."""
    caller = build_trace(("caller", 0, 500), stages={"caller": "request"})
    report = analyse([Trace("1", [*caller.spans, *_entered(_asked(1)).spans])])

    assert (report.request.n, report.evidence.n_entry_requests) == (2, 1)


@pytest.mark.parametrize(
    "mark", [pytest.param({}, id="none"), pytest.param({semconv.ENTRY: False}, id="false")]
)
def test_without_the_mark_it_is_a_partial_trace(mark):
    """A request whose parent was one of ours, and is lost, is a part of something."""
    report = analyse(
        [build_trace(("ask", 0, 100, ELSEWHERE), stages={"ask": "request"}, attributes={"ask": mark})]
    )

    assert (report.request.n, report.evidence.n_partial_traces, report.evidence.n_orphan_spans) == (0, 1, 1)


def test_one_without_an_end_is_no_request():
    """What it called is a part whose root cannot be measured."""
    entry = SpanRecord("1", "a", ELSEWHERE, "ask", 10, None, {semconv.STAGE: "request"} | ENTRY)
    search = SpanRecord("1", "b", "a", "search", 20, 30, {semconv.STAGE: "retrieval"})
    tree, repairs = repair(Trace("1", [entry, search]))

    assert (tree.roots, list(tree.partial_roots)) == ([], [0])
    assert (repairs.n_entries, repairs.n_orphans, repairs.n_unfinished) == (0, 1, 1)


def test_a_loop_is_no_entry():
    """What was cut out of a loop of parents has no known root, whatever it is marked as."""
    ask = SpanRecord("1", "a", "b", "ask", 0, 90, {semconv.STAGE: "request"} | ENTRY)
    search = SpanRecord("1", "b", "a", "search", 20, 30, {semconv.STAGE: "retrieval"})
    report = analyse([Trace("1", [ask, search])])

    assert (report.request.n, report.evidence.n_entry_requests, report.evidence.n_cycles_cut) == (0, 0, 1)


def test_they_are_shown_by_rank_and_by_id():
    """Each is found as a request of its own; by the trace's id, the longest."""
    trace = _entered(*map(_asked, range(1, 4)))

    slowest, fastest, by_id = choose([trace]), choose([trace], percentile=1), choose([trace], "0001")
    assert (slowest.duration_ns, fastest.duration_ns, by_id.duration_ns) == (130 * MS, 110 * MS, 130 * MS)
    assert (slowest.root_fault, by_id.why) == ("", "the longest of 3 in its trace")
    assert [segment.stage for segment in fastest.path if segment.stage != "request"] == [
        "retrieval",
        "generation",
    ]


def test_requests_of_one_trace_are_grouped_one_by_one():
    """Each has its own value, and what lies below it; the spans come in any order."""
    traces = [request(n, 100, answer(10, 60), attributes={"tenant": f"t{n}"}) for n in (1, 2)]
    grouping = Grouping("tenant")
    grouping.add(Trace("1", _entered(*traces).spans[::-1]))

    found = {value: (one.n_requests, len(one.calls)) for value, one in grouping.groups()}
    assert found == {"t1": (1, 1), "t2": (1, 1)}


def test_a_group_is_that_of_the_entry():
    """`--by` asks the request itself, also where a child has the same start."""
    trace = build_trace(
        ("search", 0, 50, "ask"),
        ("ask", 0, 100, ELSEWHERE),
        stages={"ask": "request", "search": "retrieval"},
        attributes={"ask": ENTRY},
    )
    grouping = Grouping("name")
    grouping.add(trace)

    assert [value for value, _ in grouping.groups()] == ["ask"]
