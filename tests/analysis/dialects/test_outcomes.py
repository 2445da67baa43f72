"""What an exception in another writer's span says of how the span ended."""

from __future__ import annotations

import pytest

from hotspan.analysis.classify import outcome_of
from hotspan.analysis.dialects import translate
from hotspan.tracer import semconv
from hotspan.tracer.record import Event, SpanRecord

MS = 1_000_000
CHAT = {"gen_ai.operation.name": "chat"}
OURS = {semconv.STAGE: semconv.GENERATION}


def ended(attributes, status, events):
    """Return a model call as the analysis sees it."""
    (found,) = translate(
        [SpanRecord("1", "1", None, "c", 0, 50 * MS, attributes, status=status, events=tuple(events))]
    )
    return found


GIVEN_UP = [
    ("asyncio.exceptions.CancelledError", "cancelled"),
    ("CancelledError", "cancelled"),
    ("asyncio.CancelledError", "cancelled"),
    ("trio.Cancelled", "cancelled"),
    ("GeneratorExit", "abandoned"),
    ("KeyboardInterrupt", "interrupted"),
]


@pytest.mark.parametrize("place", ["error.type", "event"])
@pytest.mark.parametrize("stage", [CHAT, OURS])
@pytest.mark.parametrize(("exception", "outcome"), GIVEN_UP)
def test_what_was_given_up_is_no_failure(exception, outcome, stage, place):
    """The status is an error in most writers' spans; what left the span says what it was."""
    said = {"error.type": exception} if place == "error.type" else {}
    left = [Event("exception", 5 * MS, {"exception.type": exception})] if place == "event" else []
    found = ended(stage | said, "error", left)

    assert outcome_of(found) == outcome
    assert found.status != "error"


@pytest.mark.parametrize(
    ("said", "names", "status", "outcome"),
    [
        pytest.param({}, ["CancelledError", "ValueError"], "error", "error", id="another-error-came-last"),
        pytest.param({}, ["CancelledError"], "ok", "ok", id="handled"),
        pytest.param({"error.type": "TimeoutError"}, ["CancelledError"], "error", "error", id="error-type"),
        pytest.param({"error.type": "_OTHER"}, ["CancelledError"], "error", "cancelled", id="no-name"),
        pytest.param({"error.type": "app.OrderCancelledError"}, [], "error", "error", id="a-program's-own"),
        pytest.param({semconv.OUTCOME: "truncated"}, ["CancelledError"], "error", "truncated", id="ours"),
        pytest.param({"error.type": ("a",)}, [], "error", "error", id="any-type"),
    ],
)
def test_an_exception_that_says_nothing_of_the_end(said, names, status, outcome):
    """Only the exception that left the span counts, by its whole name."""
    events = [Event("exception", at * MS, {"exception.type": name}) for at, name in enumerate(names, 1)]
    found = ended(CHAT | said, status, events)

    assert outcome_of(found) == outcome


@pytest.mark.parametrize("outcome", ["ok", "error", "truncated", "cancelled", "abandoned", "interrupted"])
@pytest.mark.parametrize("status", ["unset", "ok", "error"])
@pytest.mark.parametrize("stage", [CHAT, OURS])
def test_our_word_for_the_outcome_is_believed_whatever_the_status(outcome, status, stage):
    """A program that marks its own spans says how they ended, where it sets no status too."""
    assert outcome_of(ended(stage | {semconv.OUTCOME: outcome}, status, [])) == outcome


@pytest.mark.parametrize("outcome", ["", "fine", 1, ("error",)])
def test_another_word_for_the_outcome_says_nothing(outcome):
    """Then the status decides."""
    assert outcome_of(ended(OURS | {semconv.OUTCOME: outcome}, "error", [])) == "error"
    assert outcome_of(ended(OURS | {semconv.OUTCOME: outcome}, "unset", [])) == "ok"
