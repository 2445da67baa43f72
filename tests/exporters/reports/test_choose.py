"""Which request of a file is shown."""

from __future__ import annotations

import weakref

import pytest

from hotspan import UnusableTraceError
from hotspan.exporters.reports.choose import choose
from hotspan.testing import build_trace
from hotspan.tracer.record import Trace

ZERO_NS = 1_700_000_000 * 10**9


def request(trace_id, duration_ms, **changes):
    """A trace of one request that took so long."""
    end_ns = ZERO_NS + duration_ms * 1_000_000
    parent = changes.get("parent", ())
    return build_trace(("answer", ZERO_NS, end_ns, *parent), stages={"answer": "request"}, trace_id=trace_id)


@pytest.fixture
def ten():
    """Ten requests of 10, 20, … 100 ms; the ids of the first nine begin with a 1."""
    return [request(f"{1 if n < 10 else 'a'}{n:031x}", 10 * n) for n in range(1, 11)]


@pytest.mark.parametrize(
    ("percentile", "duration_ms", "why"),
    [
        pytest.param(100, 100, "the slowest of 10 requests", id="slowest"),
        pytest.param(95, 100, "the slowest of 10 requests", id="p95-of-ten-is-the-slowest"),
        pytest.param(50, 50, "at percentile 50 of 10 requests", id="median"),
        pytest.param(0.1, 10, "at percentile 0.1 of 10 requests", id="fastest"),
    ],
)
def test_a_request_by_its_rank(ten, percentile, duration_ms, why):
    """By nearest rank, so that it is always a request that was made."""
    view = choose(ten, percentile=percentile)
    assert (view.duration_ns, view.why) == (duration_ms * 1_000_000, why)


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(f"a{10:031x}", id="whole"),
        pytest.param("a", id="beginning"),
        pytest.param("A0000000-0000", id="as-other-programs-write-it"),
    ],
)
def test_a_request_by_its_id(ten, asked):
    """A whole trace id, or as much of it as no other begins with."""
    assert choose(ten, asked).duration_ns == 100_000_000


def test_an_id_without_its_zeros_is_found():
    """Some programs leave the leading zeros of an id out."""
    assert choose([request("abc123", 10), request("def456", 20)], "abc123").duration_ns == 10_000_000


def test_an_unknown_id_lists_what_exists(ten):
    """The answer to a wrong id is the ids that there are, the slowest first."""
    with pytest.raises(UnusableTraceError) as caught:
        choose(ten, "beef")
    first, slowest, *rest = str(caught.value).splitlines()
    assert first == "No trace with an id that begins with 'beef'. Here are 10 traces, the slowest first:"
    assert slowest == f"  a{10:031x}  100 ms"
    assert len(rest) == 9


def test_an_id_that_fits_several_asks_for_more(ten):
    """An ambiguous beginning is not a choice."""
    with pytest.raises(UnusableTraceError, match=r"9 traces have an id that begins with '1': give more"):
        choose(ten, "1")


def test_a_long_list_is_cut(ten):
    """Ten ids are enough to see how they look."""
    more = [request(f"b{n:031x}", 5) for n in range(3)]
    with pytest.raises(UnusableTraceError, match=r"and 3 more$"):
        choose([*ten, *more], "beef")


@pytest.mark.parametrize(
    ("traces", "message"),
    [
        pytest.param([], "There is no complete request to show. No span can be used", id="empty"),
        pytest.param(
            [request("1", 10, parent=("gone",))],
            "no complete request to show. Here is 1 trace, this one:\n  .*  partial: its root is missing",
            id="partial",
        ),
    ],
)
def test_nothing_to_show_says_why(traces, message):
    """Without a complete request the error says what there is instead."""
    with pytest.raises(UnusableTraceError, match=message):
        choose(traces)


def test_a_partial_trace_is_shown_when_asked_for():
    """By its id also a part of a request can be seen, and is called that."""
    view = choose([request("1", 10, parent=("gone",)), request("2", 20)], "1".zfill(32))
    assert view.root_fault == "is missing"
    assert view.why == "the one asked for"


def untold(trace_id, *lengths):
    """A trace of roots in a row, of which none has a stage at or below it."""
    return build_trace(*((f"root {n}", ZERO_NS, ZERO_NS + n) for n in lengths), trace_id=trace_id)


@pytest.mark.parametrize("percentile", [50, 100])
@pytest.mark.parametrize("again", [True, False])
def test_a_trace_without_any_stage_is_shown_where_nothing_else_is(percentile, again):
    """Anyone's trace can be looked at; where there are requests it is one of these that is shown."""
    traces = [untold("a", 30), untold("b", 10), untold("c", 20)]

    def shown(traces):
        return choose(traces, percentile=percentile, again=(lambda: traces) if again else None)

    view = shown(traces)
    assert view.name == ("root 30" if percentile == 100 else "root 20")
    assert view.why.endswith("of 3 traces, in which no span has a stage")
    assert sum(end - start for _, _, _, start, end in view.path) == view.duration_ns
    assert shown([*traces, request("d", 1)]).why.endswith("of 1 request")
    assert shown([request("d", 1), *traces]).trace_id == "d".zfill(32)


@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("percentile", [50, 100])
def test_what_begins_as_requests_do_is_one(again, percentile):
    """One that came to no stage counts as in the report, wherever it stands; others do not."""
    asked = [build_trace(("POST /ask", ZERO_NS, ZERO_NS + n), ("m", ZERO_NS, ZERO_NS + 1, "POST /ask"),
                         stages={"m": "generation"}, trace_id=f"{n:x}") for n in (20, 30)]  # fmt: skip
    failed = [build_trace(("POST /ask", ZERO_NS, ZERO_NS + n), trace_id=f"{n:x}") for n in (10, 40, 50)]
    traces = [*failed, *asked, untold("f", 90)]

    view = choose(traces, percentile=percentile, again=(lambda: traces) if again else None)

    assert (view.duration_ns, view.why.endswith("of 5 requests")) == ({50: 30, 100: 50}[percentile], True)


def test_a_trace_without_any_stage_is_found_by_its_id():
    """Its longest root is shown, and that it has no stage is said; a request in the trace is shown rather."""
    traces = [untold("abc", 30, 40), request("def", 20)]

    view = choose(traces, "00abc")

    assert (view.name, view.why) == ("root 40", "the longest of 2 in its trace; no span has a stage")
    assert choose([untold("0", 5)], "0").why == "the one asked for; no span has a stage"
    mixed = build_trace(
        ("long", ZERO_NS, ZERO_NS + 9), ("ask", ZERO_NS, ZERO_NS + 5), stages={"ask": "request"}
    )
    assert choose([mixed], "0").name == "ask"


def test_the_longest_of_two_requests_in_one_trace():
    """A trace may hold several roots; which one is shown is said."""
    trace = build_trace(
        ("first", ZERO_NS, ZERO_NS + 5),
        ("second", ZERO_NS, ZERO_NS + 9),
        stages={"first": "request", "second": "request"},
    )
    view = choose([trace], "0")
    assert (view.name, view.why) == ("second", "the longest of 2 in its trace")


class Again:
    """Traces that can be read several times, and count how many of them somebody still holds."""

    def __init__(self, traces):
        self.traces, self.held, self.most_held, self.times = traces, weakref.WeakSet(), 0, 0

    def __call__(self):
        """Read them once more."""
        self.times += 1
        for trace in self.traces:
            copy = Held(trace.trace_id, trace.spans)
            self.held.add(copy)
            yield copy
            del copy
            self.most_held = max(self.most_held, len(self.held))


class Held(Trace):
    """A trace to which there can be weak references."""

    __slots__ = ("__weakref__",)


@pytest.mark.parametrize(("percentile", "times"), [(100, 1), (50, 2)])
def test_a_large_file_is_not_held(ten, percentile, times):
    """The slowest needs one pass, another percentile two; one or two of many traces are held at a time."""
    again = Again(ten)

    view = choose(again(), percentile=percentile, again=again)

    assert view.duration_ns == percentile * 1_000_000
    assert (again.times, again.most_held <= 3) == (times, True)


def test_a_file_that_changed_between_the_passes_is_refused(ten):
    """The request that was chosen is not there any more."""
    with pytest.raises(UnusableTraceError, match="changed while it was read"):
        choose(ten, percentile=50, again=lambda: ten[:1])
