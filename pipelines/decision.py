"""What the model decides in one step of the agent: the schema it is held to, and how its answer is read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotspan.pipelines.tools import Tool

FINISH: Final = "finish"
MAX_ACTIONS: Final = 3
THOUGHT_CHARS: Final = 32


class InvalidDecisionError(ValueError):
    """The model's answer is not a decision."""


@dataclass(frozen=True, slots=True)
class Action:
    """One tool call that the model asks for."""

    tool: str
    argument: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What the model thinks, and what it wants to do next, all at once."""

    thought: str
    actions: tuple[Action, ...]

    @property
    def finished(self) -> bool:
        """Whether the model has seen enough to answer."""
        return any(action.tool == FINISH for action in self.actions)


def schema(tools: Sequence[Tool], *, may_finish: bool) -> dict[str, Any]:
    """Return the JSON schema of a decision.

    Every string is bounded, so that no model can write without an end; each tool has its own schema for its
    argument, so that any model's call makes sense.

    Args:
        tools: What may be called.
        may_finish: Whether `finish` is offered too.
    """
    choices = [_choice(tool.name, tool.argument) for tool in tools]
    if may_finish:
        choices.append(_choice(FINISH, {"type": "string", "maxLength": THOUGHT_CHARS}))
    return _object(
        thought={"type": "string", "maxLength": THOUGHT_CHARS},
        actions={"type": "array", "minItems": 1, "maxItems": MAX_ACTIONS, "items": {"anyOf": choices}},
    )


def _choice(tool: str, argument: Any) -> dict[str, Any]:
    return _object(tool={"type": "string", "enum": [tool]}, argument=dict(argument))


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read(answer: str) -> Decision:
    """Return the decision in a model's answer; text around the JSON object is passed over.

    Raises:
        InvalidDecisionError: There is no JSON object, or it is not a decision.
    """
    try:
        found = json.loads(answer[answer.index("{") : answer.rindex("}") + 1])
        actions = tuple(Action(str(each["tool"]), str(each["argument"])) for each in found["actions"])
        decision = Decision(str(found["thought"]), actions[:MAX_ACTIONS])
    except (ValueError, KeyError, TypeError) as exc:
        msg = f"not a decision: {answer[:120]!r}"
        raise InvalidDecisionError(msg) from exc
    if not actions:
        msg = f"a decision without an action: {answer[:120]!r}"
        raise InvalidDecisionError(msg)
    return decision
