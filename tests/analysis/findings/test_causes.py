"""What is no cause, and what inside a stage is one."""

from __future__ import annotations

import pytest
from made_traces import answer, many, request

from hotspan.analysis import analyse
from hotspan.tracer import semconv
from hotspan.tracer.record import Trace

N = 25


@pytest.mark.parametrize("name", ["asyncio.exceptions.CancelledError", "GeneratorExit", "KeyboardInterrupt"])
def test_what_other_writers_spans_gave_up_is_no_failure(name):
    """Their status is an error all the way up; the exception says that nothing failed."""
    given_up = {"status": "error", "attributes": {semconv.ERROR_TYPE: name}}
    report = analyse(many(N, lambda k: request(k, 1000, answer(0, 1000, **given_up), **given_up)))

    assert (report.request.n_errors, report.request.n_cancelled) == (0, N)
    assert not {"requests-failed", "model-calls-failed"} & {finding.id for finding in report.findings}


def test_a_slow_tail_in_no_stage_names_that_time():
    """Its figures have a name as any stage's have."""
    slow = {3000: range(1, 7), 300: range(7, 101)}
    runs = [request(k, ms, answer(0, 200)) for ms, numbers in slow.items() for k in numbers]
    (found,) = [finding for finding in analyse(runs).findings if finding.id == "slow-tail"]
    assert found.text.endswith("of the difference is in no stage.")
    assert found.evidence["unattributed_of_slowest_mean_ms"] == 2800
    assert found.evidence["unattributed_of_all_mean_ms"] == (6 * 2800 + 94 * 100) / 100


def test_a_slow_tail_inside_a_stage_names_that_stage_alone():
    """A call's time in none of its phases is no time without a stage."""
    slow = {3000: range(1, 7), 300: range(7, 101)}
    runs = [request(k, ms, answer(0, ms)) for ms, numbers in slow.items() for k in numbers]
    (text,) = [finding.text for finding in analyse(runs).findings if finding.id == "slow-tail"]
    assert text.endswith("of the difference is inside generation, in none of its phases.")


@pytest.mark.parametrize(("pause", "severity"), [(9000, "warning"), (0, "info")])
def test_calls_inside_of_requests_tell_little_where_one_is_always_in_flight(pause, severity):
    """Whatever ran then did so while a request was."""
    asked = [request(k, 1000 if pause else 10_000, answer(0, 900)) for k in range(1, N + 1)]
    alone = [request(100 + k, 100, answer(0, 100), at=10_000 * k + 50) for k in range(1, N)]
    strays = [Trace(one.trace_id, [one.spans[1]._replace(parent_id=None)]) for one in alone]
    (found,) = [finding for finding in analyse(asked + strays).findings if finding.id == "context-lost"]

    assert found.severity == severity
    assert ("most likely" in found.text) is (severity == "warning")
