"""Decisions: the schema that bounds them, and the reading of what a model made of it."""

from __future__ import annotations

import json

import pytest

from hotspan.pipelines.decision import Action, InvalidDecisionError, read, schema
from hotspan.pipelines.tools import Tool

ECHO = Tool("echo", "say it again", {"type": "string", "maxLength": 9}, str)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param('{"thought": "t", "actions": [{"tool": "echo", "argument": "a"}]}', id="plain"),
        pytest.param(
            'Sure:\n```json\n{"thought": "t", "actions": [{"tool": "echo", "argument": "a"}]}\n```',
            id="in-a-fence",
        ),
    ],
)
def test_read(answer):
    """The JSON object is found, whatever a model writes around it."""
    decision = read(answer)

    assert (decision.thought, decision.actions) == ("t", (Action("echo", "a"),))
    assert not decision.finished


def test_read_keeps_three_actions():
    """An engine that did not enforce the schema cannot make the agent call more tools than it may."""
    actions = [{"tool": "echo", "argument": str(number)} for number in range(5)]

    assert len(read(json.dumps({"thought": "", "actions": actions})).actions) == 3


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("", id="nothing"),
        pytest.param('{"thought": "t", "actions": [{"tool": "ec', id="cut-short"),
        pytest.param("[1]", id="no-object"),
        pytest.param('{"thought": "t"}', id="no-actions"),
        pytest.param('{"thought": "t", "actions": []}', id="empty-actions"),
        pytest.param('{"thought": "t", "actions": ["echo"]}', id="action-is-text"),
        pytest.param('{"thought": "t", "actions": 7}', id="actions-is-a-number"),
    ],
)
def test_what_is_no_decision_is_refused(answer):
    """Anything else is one kind of error, which the agent retries."""
    with pytest.raises(InvalidDecisionError, match="decision"):
        read(answer)


def test_finish_is_offered_only_when_allowed():
    """The schema itself keeps the model from finishing too early."""
    assert '"finish"' not in json.dumps(schema([ECHO], may_finish=False))
    assert '"finish"' in json.dumps(schema([ECHO], may_finish=True))


def test_every_string_is_bounded():
    """No string of the schema lets a model write without an end."""

    def strings(part):
        if isinstance(part, dict):
            if part.get("type") == "string":
                yield part
            for value in part.values():
                yield from strings(value)
        elif isinstance(part, list):
            for value in part:
                yield from strings(value)

    found = list(strings(schema([ECHO], may_finish=True)))
    assert found
    assert all({"maxLength", "enum", "pattern"} & part.keys() for part in found)
