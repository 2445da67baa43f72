"""The time of a request's model calls in units of one, where one is known."""

from __future__ import annotations

from made_traces import Call, answer, many, request

from hotspan.analysis import analyse
from hotspan.exporters.reports.console import render
from hotspan.exporters.reports.screen import Screen
from hotspan.tracer import semconv

ABANDONED = {semconv.OUTCOME: semconv.ABANDONED}


def test_a_request_without_a_successful_call_has_none_and_the_table_says_so():
    """How long one call takes is known where one succeeded; the line names how many requests that is."""
    traces = many(
        4,
        lambda k: request(
            k,
            300,
            *(answer(100 * i, 100 * i + 100, attributes={} if k == 1 else ABANDONED) for i in range(3)),
        ),
    )

    report = analyse(traces)
    text = render(report, Screen(width=100))

    assert report.amplification.n_requests == 4
    assert report.amplification.n_timed == 1
    assert report.amplification.time_amplification.mean == 3
    assert "3.00\N{MULTIPLICATION SIGN} the time of one call (in 1 of 4 requests)" in text


def test_a_request_whose_agent_called_no_model_is_not_counted():
    """An agent that answered from a cache tells nothing of how many calls an answer takes."""
    agent, call = Call(semconv.AGENT, "a", 0, 300), answer(0, 100, inside="a")
    traces = many(4, lambda k: request(k, 300, agent, *([call] if k == 1 else [])))

    found = analyse(traces).amplification

    assert (found.is_agent, found.n_requests) == (True, 1)
