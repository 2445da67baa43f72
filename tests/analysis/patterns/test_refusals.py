"""Why attempts failed, as their writers say it."""

from __future__ import annotations

import pytest
from made_traces import answer, request

from hotspan.analysis import analyse
from hotspan.tracer import semconv
from hotspan.tracer.record import Event


def failed(**why):
    """The event of a failed attempt."""
    return Event(semconv.ATTEMPT_EVENT, 0, {semconv.ATTEMPT_NUMBER: 1, **why})


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param(answer(0, 9), {}, id="none-failed"),
        pytest.param(
            answer(0, 9, events=(failed(**{semconv.HTTP_STATUS: 429}), failed(**{semconv.HTTP_STATUS: 503}))),
            {"429": 1, "503": 1},
            id="each-attempt-once",
        ),
        pytest.param(
            answer(0, 9, status="error", attributes={semconv.HTTP_STATUS: 503}), {"503": 1}, id="on-the-span"
        ),
        pytest.param(
            answer(
                0,
                9,
                status="error",
                attributes={semconv.HTTP_STATUS: 429},
                events=(failed(**{semconv.HTTP_STATUS: 429}),),
            ),
            {"429": 1},
            id="said-twice-counted-once",
        ),
        pytest.param(
            answer(0, 9, status="error", attributes={semconv.ERROR_TYPE: "openai.RateLimitError"}),
            {"429": 1},
            id="by-the-name-of-the-exception",
        ),
        pytest.param(
            answer(0, 9, events=(failed(**{semconv.ERROR_TYPE: "ConnectTimeout"}),)),
            {"ConnectTimeout": 1},
            id="no-status",
        ),
        pytest.param(answer(0, 9, attributes={semconv.HTTP_STATUS: 200}), {}, id="a-200-is-no-refusal"),
        pytest.param(answer(0, 9, status="error"), {}, id="nothing-said"),
    ],
)
def test_reasons(call, expected):
    """Statuses as they are, exceptions by the status that they stand for."""
    assert analyse([request(1, 10, call)]).patterns.refusals == expected


def test_only_attempts_after_which_another_came_were_retried():
    """The last attempt of a call that failed is none, nor is the only one."""
    two = answer(
        0,
        9,
        status="error",
        attributes={semconv.ATTEMPTS: 2, semconv.HTTP_STATUS: 500},
        events=(failed(**{semconv.HTTP_STATUS: 429}), failed(**{semconv.HTTP_STATUS: 500})),
    )
    once = answer(0, 9, status="error", attributes={semconv.HTTP_STATUS: 400})
    report = analyse([request(1, 10, two), request(2, 10, once)])

    assert report.patterns.refusals == {"429": 1, "500": 1, "400": 1}
    assert report.patterns.retried == {"429": 1}
    (finding,) = (one for one in report.findings if one.id == "retries")
    assert [key for key in finding.evidence if key.startswith("attempts_with")] == ["attempts_with_429"]


def test_a_failed_call_has_one_reason_however_many_attempts_it_made():
    """Attempts of calls that succeeded in the end, or broke off, are no failures of calls."""
    exhausted = answer(
        0,
        9,
        status="error",
        attributes={semconv.ATTEMPTS: 2, semconv.HTTP_STATUS: 500},
        events=(failed(**{semconv.HTTP_STATUS: 429}), failed(**{semconv.HTTP_STATUS: 500})),
    )
    broken = answer(
        0,
        9,
        status="error",
        attributes={semconv.ERROR_TYPE: "StreamError", semconv.OUTCOME: semconv.TRUNCATED},
    )
    mended = answer(0, 9, attributes={semconv.ATTEMPTS: 2}, events=(failed(**{semconv.HTTP_STATUS: 503}),))
    silent = answer(0, 9, status="error")
    report = analyse(
        [request(k, 10, call) for k, call in enumerate((exhausted, broken, mended, silent), start=1)]
    )
    (finding,) = (one for one in report.findings if one.id == "model-calls-failed")

    assert report.patterns.failures == {"500": 1}
    assert finding.evidence["error"] == 2
    assert {key: n for key, n in finding.evidence.items() if key.startswith("failed_calls")} == {
        "failed_calls_with_500": 1,
        "failed_calls_otherwise": 1,
    }
