"""Which chunks of an answer bear tokens, and of what kind: in OpenAI's shape, and in that of frameworks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hotspan.tracer.usage import field

NO_TOKEN: Final = 0  # role, empty piece, usage, keep-alive
TOKEN: Final = 1  # reasoning, tool call, refusal
ANSWER: Final = 2  # content

_OTHER_TOKEN_FIELDS: Final = (
    "reasoning_content",
    "reasoning",
    "tool_calls",
    "refusal",
    "function_call",
    "audio",
)


def _delta_of(choice: object) -> object:
    delta = field(choice, "delta")
    if delta is None:
        delta = field(choice, "message")
    return choice if delta is None else delta  # legacy completions carry `text` on the choice itself


def bearing(choice: object) -> int:
    """Return whether a choice of a chunk bears an answer token, a token of another kind, or none."""
    delta = _delta_of(choice)
    content = field(delta, "content")
    if content and isinstance(content, (str, list)):
        return ANSWER
    text = field(delta, "text")
    if text and isinstance(text, str):
        return ANSWER
    return TOKEN if bears_other_token(delta) else NO_TOKEN


def bears_other_token(delta: object) -> bool:
    """Return whether a delta bears a token that is no content: reasoning, a refusal, a tool call."""
    for name in _OTHER_TOKEN_FIELDS:
        value = field(delta, name)
        if value and isinstance(value, (str, list, Mapping)):
            return True
        if value is not None and name in {"function_call", "audio"}:
            return True
    if field(delta, "tool_call_chunks"):  # LangChain
        return True
    extra = field(delta, "additional_kwargs")
    return isinstance(extra, Mapping) and bool(extra.get("reasoning_content"))
