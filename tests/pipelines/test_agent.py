"""The agent's loop, over real HTTP against a server whose answers the test writes."""

from __future__ import annotations

import threading

import pytest
from scripted_engine import BROKEN, SPOKEN, decision, scripted_engine
from servers import answer, message

import hotspan
from hotspan.pipelines.agent import MAX_RETRIES, MAX_STEPS, Agent
from hotspan.pipelines.tools import Tool
from hotspan.testing import capture

LOOK = decision(("echo", "a"))
FINISH = decision(("finish", ""))


def echo_tool():
    """A tool that says its argument again, and refuses an empty one."""

    @hotspan.tool
    def echo(text):
        if not text:
            raise ValueError("nothing to say")  # noqa: TRY003, EM101 - one line of a test's tool
        return text.upper()

    return Tool("echo", "say it again", {"type": "string", "maxLength": 20}, echo)


def solve(*replies, tools=None):
    """Run one task; return the answer, the bodies of the model calls, and the tree of spans."""
    with scripted_engine(*replies) as (engine, server), capture() as captured:
        with Agent(engine, tools or [echo_tool()]) as agent:
            text = agent.answer("Say a.")
        calls = [request.json for request in server.requests if request.target.endswith("/completions")]
        return text, calls, captured.spans


def test_two_decisions_then_the_answer():
    """The shortest run is three model calls: `finish` counts from the third step, where it is offered."""
    text, calls, _ = solve(LOOK, LOOK, FINISH, SPOKEN)

    offers = ['"finish"' in str(call).replace("'", '"') for call in calls]
    assert text == "It is so."
    assert offers == [False, False, True, False]


def test_the_model_is_shown_what_its_tools_found():
    """An observation is in the next prompt, beside the task."""
    _, calls, _ = solve(LOOK, LOOK, FINISH, SPOKEN)

    assert "echo(a): A" not in str(calls[0])
    assert all("echo(a): A" in str(call) and "Task: Say a." in str(call) for call in calls[1:])


def test_a_model_that_never_finishes_is_stopped():
    """The step limit holds, and the answer is given all the same."""
    text, calls, _ = solve(*[LOOK] * MAX_STEPS, SPOKEN)

    assert (text, len(calls)) == ("It is so.", MAX_STEPS + 1)


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(BROKEN, id="server-error"),
        pytest.param(answer(message('{"thought": "')), id="answer-cut-short"),
        pytest.param(answer(b"<html>"), id="no-json"),
    ],
)
def test_a_failed_decision_is_asked_for_again(failure):
    """A failed or unusable model call costs one retry, not the request."""
    text, calls, _ = solve(failure, LOOK, LOOK, FINISH, SPOKEN)

    assert (text, len(calls)) == ("It is so.", 5)
    assert calls[0] == calls[1]


def test_retries_are_limited():
    """An engine that is dead ends the request with its own error, after every retry is used."""
    with scripted_engine(BROKEN) as (engine, server), Agent(engine, [echo_tool()]) as agent:
        with pytest.raises(hotspan.EngineError, match="on fire"):
            agent.answer("Say a.")

        assert len(server.requests) == 2 + 1 + MAX_RETRIES


def test_tools_of_one_step_run_at_once_below_it():
    """Three calls wait for one another, so only concurrency ends them; all are children of the step."""
    together = threading.Barrier(3, timeout=10)

    @hotspan.tool("meet")
    def meet(_text):
        return str(together.wait())

    three = decision(("meet", "1"), ("meet", "2"), ("meet", "3"))
    tool = Tool("meet", "wait for the others", {"type": "string", "maxLength": 9}, meet)
    text, _, spans = solve(three, three, decision(("finish", "")), SPOKEN, tools=[tool])

    steps = {span.span_id: span for span in spans if span.name == "step"}
    meetings = [span for span in spans if span.name == "execute_tool meet"]
    assert text == "It is so."
    assert len(meetings) == 6
    assert all(span.parent_id in steps for span in meetings)


@pytest.mark.parametrize(
    ("action", "shown"),
    [
        pytest.param(("echo", ""), "echo(): error: nothing to say", id="refused-argument"),
        pytest.param(("fly", "up"), "fly(up): error: there is no such tool", id="unknown-tool"),
    ],
)
def test_a_tool_that_fails_is_an_observation(action, shown):
    """The run goes on, and the model is told."""
    text, calls, _ = solve(decision(action), LOOK, FINISH, SPOKEN)

    assert text == "It is so."
    assert shown in str(calls[1])


def test_a_fault_of_a_tool_is_not_hidden():
    """Only a refused argument is an observation; a bug in a tool ends the request."""

    def broken(_text):
        raise KeyError("bug")  # noqa: EM101 - one line of a test's tool

    with pytest.raises(KeyError, match="bug"):
        solve(LOOK, tools=[Tool("echo", "", {"type": "string", "maxLength": 9}, broken)])


def test_the_tree_of_a_run():
    """One request holds one agent; a step holds its assembly, its decision and its tools."""
    _, _, spans = solve(LOOK, LOOK, FINISH, SPOKEN)

    names = {span.span_id: span.name for span in spans}
    edges = sorted((names.get(span.parent_id, ""), span.name) for span in spans)
    assert edges == sorted(
        [
            ("", "request agent"),
            ("request agent", "invoke_agent researcher"),
            *[("invoke_agent researcher", "step")] * 3,
            *[("step", "context_assembly")] * 3,
            *[("step", "chat tiny")] * 3,
            *[("step", "execute_tool echo")] * 2,
            ("invoke_agent researcher", "context_assembly"),
            ("invoke_agent researcher", "chat tiny"),
        ]
    )


def test_the_newest_notes_stay_when_the_budget_is_small():
    """Old observations are left out first; the task never is."""
    script = [decision(("echo", "old" * 6)), decision(("echo", "new" * 6)), FINISH, SPOKEN]
    with (
        scripted_engine(*script) as (engine, server),
        Agent(engine, [echo_tool()], context_tokens=24) as agent,
    ):
        agent.answer("Say a.")

    third = str(server.requests[4].json)
    assert "Task: Say a." in third
    assert "NEWNEW" in third
    assert "OLDOLD" not in third
