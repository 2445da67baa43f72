"""What is no cause, and what inside a stage is one."""

from __future__ import annotations

import pytest
from made_traces import answer, many, request

from hotspan.analysis import analyse
from hotspan.tracer import semconv

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
