"""Model spans that show no answer: a wrapper, a helper, or a call that failed."""

import pytest

from hotspan.analysis.dialects import makes_no_call
from hotspan.tracer.record import Event, Scope, SpanRecord

LLM = {"openinference.span.kind": "LLM"}
OPENAI = "openinference.instrumentation.openai"


@pytest.mark.parametrize(
    ("said", "status", "event", "expected"),
    [
        pytest.param({}, "ok", "note", True, id="nothing"),
        pytest.param({"output.value": "x"}, "ok", "note", False, id="an-answer"),
        pytest.param({}, "error", "note", False, id="a-failure"),
        pytest.param({}, "unset", "exception", False, id="an-exception-without-a-status"),
    ],
)
def test_a_span_without_answer_and_failure_made_no_call(said, status, event, expected):
    """Of a writer that always records one or the other; a collector may have lost the status."""
    events = (Event(event, 5),)
    span = SpanRecord(
        "1", "1", None, "chat", 0, 9, LLM | said, status=status, events=events, scope=Scope(OPENAI)
    )

    assert makes_no_call(span) is expected


def test_of_other_writers_nothing_can_be_said():
    """Answers are content, which most record only if asked to."""
    assert not makes_no_call(SpanRecord("1", "1", None, "chat", 0, 9, LLM, scope=Scope("app")))
