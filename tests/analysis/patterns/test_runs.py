"""Which calls follow each other at once: a drawing for each branch."""

from __future__ import annotations

import pytest
from made_traces import Call, answer, request

from hotspan.analysis import analyse
from hotspan.analysis.collect import Collector
from hotspan.analysis.forms import form_of
from hotspan.analysis.patterns.texts import has_several
from hotspan.tracer import semconv
from hotspan.tracer.record import Scope, Trace


def tools(*intervals, name="tool"):
    """Calls of one name."""
    return [Call("tool", name, start, end) for start, end in intervals]


def row(*calls):
    """The runs of one request: calls in them, and the time beyond each run's longest."""
    found = analyse([request(1, 1000, *calls)]).patterns.runs
    return [(run.n_calls, run.n_runs, (run.total_ns - run.longest_calls_ns) / 1e6) for run in found]


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        # |-----|-----|--|          back to back
        pytest.param(tools((0, 100), (100, 200), (200, 250)), [(3, 1, 150)], id="three-in-a-row"),
        # |-----|.|-----|           a pause of less than a tenth of the call before
        pytest.param(tools((0, 100), (109, 209)), [(2, 1, 100)], id="a-short-pause"),
        # |-----|...|-----|         somebody works on the result
        pytest.param(tools((0, 100), (150, 250)), [], id="a-pause"),
        # |-----|
        #    |-----|                at once already
        pytest.param(tools((0, 100), (50, 150)), [], id="at-once"),
        # |-----|                   beside something longer: nobody waits for them
        # |-----|-----|
        pytest.param(
            [*tools((0, 100), (100, 200)), Call("retrieval", "search", 0, 900)],
            [],
            id="off-the-critical-path",
        ),
        # |aaaaa|bbbbb|             another tool, store or model may be asked at the same time
        pytest.param([*tools((0, 100)), *tools((100, 200), name="other")], [(2, 1, 100)], id="another-name"),
        # |aaaaa|bbbbb|             in other stages, one name prepares what the next one takes
        pytest.param(
            [Call("rerank", "coarse", 0, 100), Call("rerank", "fine", 100, 200)],
            [],
            id="rerank-twice",
        ),
        # |-----|-----|             two at once after the first: which of them came next is chance
        #       |---|
        pytest.param(tools((0, 100), (100, 200), (100, 160)), [], id="two-start-together"),
        # |aaaaa|sssss|             a tool uses what a search has found
        pytest.param([Call("retrieval", "search", 0, 100), *tools((100, 200))], [], id="another-stage"),
        # |aaaaa|mmm|bbbbb|         the model chose the second tool
        pytest.param(
            [*tools((0, 100)), answer(100, 160), *tools((160, 260), name="other")],
            [],
            id="another-name-after-a-model-call",
        ),
        # |-----|mmm|-----|         a model call between them
        pytest.param([*tools((0, 100), (160, 260)), answer(100, 160)], [], id="another-call-between"),
        # model calls answer each other
        pytest.param([answer(0, 400), answer(400, 800)], [], id="model-calls"),
        # two rows with a pause between them
        pytest.param(tools((0, 100), (100, 200), (400, 500), (500, 600)), [(4, 2, 200)], id="two-rows"),
    ],
)
def test_calls_in_a_row(calls, expected):
    """Same stage, one parent, back to back, waited for."""
    assert row(*calls) == expected


def test_a_second_try_is_no_row():
    """The first call failed: the second is not more of the same work."""
    first, second = tools((0, 100), (100, 200))
    first.status = "error"

    assert row(first, second) == []


def test_rows_are_added_up_over_requests():
    """With the number of requests and the longest row."""
    traces = [request(k, 1000, *tools(*((100 * i, 100 * i + 100) for i in range(k)))) for k in range(1, 5)]

    (found,) = analyse(traces).patterns.runs

    assert (found.n_requests, found.n_runs, found.n_calls, found.n_longest) == (3, 3, 2 + 3 + 4, 4)


def test_rows_of_several_names_are_one_kind():
    """However the names are mixed; rows of one name alone are told apart."""
    traces = [
        request(1, 1000, *tools((0, 100), name="a"), *tools((100, 200), name="b")),
        request(2, 1000, *tools((0, 100), name="c"), *tools((100, 200), name="a")),
        request(3, 1000, *tools((0, 100), (100, 200), name="a")),
    ]

    found = {run.names: run.n_runs for run in analyse(traces).patterns.runs}

    assert found == {("a", "b", "c"): 2, ("a",): 1}


def own(*calls):
    """A request of Hotspan's own spans."""
    trace = request(1, 1000, *calls)
    return [span._replace(scope=Scope(semconv.SCOPE_NAME)) for span in trace.spans]


def test_rows_of_one_form_are_found_in_its_traces_together():
    """Whether a call follows the one before is a matter of each trace's times; all take the short way."""
    collector, traces = Collector(), []
    for number, starts in enumerate([(0, 100, 200), (0, 100, 250), (0, 150, 250), (0, 150, 300)], start=1):
        calls = zip(starts, "aab", strict=True)
        spans = own(*(tools((start, start + 100), name=name)[0] for start, name in calls))
        traces.append(Trace(str(number), [span._replace(trace_id=str(number)) for span in spans]))
        collector.add(traces[-1])

    assert len(collector._waiting) == len(traces)  # noqa: SLF001 - the short way
    assert {(run.names, run.n_calls, run.n_requests) for run in analyse(traces).patterns.runs} == {
        (("a", "b"), 3 + 2, 2),
        (("a",), 2, 1),
    }


@pytest.mark.parametrize(("stage", "is_plain"), [("embedding", False), ("retrieval", True)])
def test_embeddings_in_a_row_take_the_long_way(stage, is_plain):
    """How many texts each had is in its span."""
    assert form_of(own(Call(stage, "a", 0, 100), Call(stage, "b", 100, 200))).is_plain is is_plain


@pytest.mark.parametrize(
    ("said", "several"),
    [
        ({}, False),
        ({semconv.BATCH_SIZE: 32}, True),
        ({semconv.BATCH_SIZE: 1}, False),
        ({semconv.PYDANTIC_N_INPUTS: 2}, True),
        ({semconv.OPENINFERENCE_SECOND_TEXT: "b"}, True),
        ({semconv.OPENINFERENCE_INPUT: '{"model": "m", "input": ["a", "b"]}'}, True),
        ({semconv.OPENINFERENCE_INPUT: '{"model": "m", "input": "a"}'}, False),
        ({semconv.OPENINFERENCE_INPUT: '["a", "b'}, False),
        ({semconv.LANGFUSE_INPUT: '["a", "b"]'}, True),
        ({semconv.LANGFUSE_INPUT: '["a"]'}, False),
        ({semconv.MLFLOW_INPUTS: '{"input": [[1, 2], [3]]}'}, True),
        ({semconv.MLFLOW_INPUTS: '{"input": [1, 2, 3]}'}, False),
    ],
)
def test_what_says_that_a_call_had_several_texts(said, several):
    """Counts and recorded inputs, as the libraries write them; a list of numbers is one text's tokens."""
    assert has_several(said) is several
