"""A traced function that returns its model's stream: one call, which lasts as long as the stream."""

import pytest

import hotspan
from hotspan.analysis import analyse
from hotspan.analysis.repair import repair
from hotspan.testing import FakeClock, capture
from hotspan.tracer import semconv
from hotspan.tracer.record import Resource, Trace
from hotspan.tracer.testing import build_trace

MS = 1_000_000
STAGES = {"request": "request", "ask": "generation", "model": "generation"}
TOKENS = {semconv.TTFT_NS: 30, semconv.LAST_TOKEN_NS: 70, semconv.OUTPUT_TOKENS: 5}


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        pytest.param((5, 80), 80, id="the-stream-goes-on"),
        pytest.param((20, 80), 80, id="sent-at-the-first-pull"),
        pytest.param((5, 9), 10, id="it-ended-before"),
    ],
)
def test_the_call_lasts_as_long_as_its_stream(inner, expected):
    """Duration, phases and time to the first token are of one call; the request's time is the model's."""
    trace = build_trace(
        ("request", 0, 100),
        ("ask", 0, 10, "request"),
        ("model", *inner, "ask"),
        stages=STAGES,
        attributes={"model": TOKENS if expected > 10 else {}},
    )
    report = analyse([trace])
    (row,) = (row for row in report.stages if row.stage == "generation")

    assert (row.n_calls, row.duration_ns.p50) == (1, expected)
    assert row.critical_path_ratio == expected / 100
    assert sum(phase.mean_ns for phase in row.phases) == expected
    if report.generation.ttft_ns is not None:
        assert report.generation.ttft_ns.p50 <= row.duration_ns.p50
    assert report.to_dict()["evidence"]["late_spans"] == 0


def test_it_goes_through_functions_around_functions():
    """However deep; what is around them is not stretched, and a stage of another kind is not either."""
    spans = [("request", 0, 50), ("outer", 0, 10, "request"), ("ask", 1, 9, "outer"), ("model", 2, 80, "ask")]
    kept, _ = repair(build_trace(*spans, stages=STAGES | {"outer": "generation"}))
    cut, repairs = repair(build_trace(*spans, stages=STAGES | {"outer": "tool"}))

    assert [kept.duration_ns(index) for index in range(4)] == [50, 50, 49, 48]
    assert [cut.duration_ns(index) for index in range(4)] == [50, 10, 9, 8]
    assert repairs.n_late == 2


@pytest.mark.parametrize(("pid", "expected"), [(7, 80), (8, 10)], ids=["its-own", "of-another-process"])
def test_a_frameworks_span_ends_with_its_clients(pid, expected):
    """Whoever wrote the two; what another process wrote has another clock."""
    chat = {"gen_ai.operation.name": "chat"}
    trace = build_trace(
        ("r", 0, 100),
        ("framework", 0, 10, "r"),
        ("client", 5, 80, "framework"),
        attributes=dict.fromkeys(("framework", "client"), chat),
    )
    spans = [
        span._replace(resource=Resource({"process.pid": pid if span.name == "client" else 7}))
        for span in trace.spans
    ]
    tree, _ = repair(Trace("1", spans))

    assert tree.duration_ns(1) == expected


def test_a_decorated_function_around_a_stream_object():
    """As users write it: the decorator cannot know the object that the function returns."""

    class Answer:
        """A client's stream: its span ends with its last item."""

        def __init__(self):
            self.items, self.stage = iter("abc"), hotspan.generation("chat")
            self.stage.__enter__()

        def __iter__(self):
            return self

        def __next__(self):
            clock.advance(ms=100)
            item = next(self.items, None)
            if item is None:
                self.stage.__exit__(None, None, None)
                raise StopIteration
            return item

    @hotspan.generation
    def ask():
        clock.advance(ms=5)
        return Answer()

    with FakeClock() as clock, capture() as captured, hotspan.request("r"):
        list(ask())
    (trace_id,) = {span.trace_id for span in captured.spans}
    report = analyse([Trace(trace_id, list(captured.spans))])
    (row,) = (row for row in report.stages if row.stage == "generation")

    assert (row.n_calls, row.duration_ns.p50) == (1, 405 * MS)
