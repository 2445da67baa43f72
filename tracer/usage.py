"""Token counts as servers and libraries spell them, read into one shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

_INPUT: Final = ("prompt_tokens", "input_tokens")
_OUTPUT: Final = ("completion_tokens", "output_tokens")
_CACHED: Final = (
    ("prompt_tokens_details", "cached_tokens"),  # OpenAI chat, vLLM, SGLang, llama.cpp
    ("input_tokens_details", "cached_tokens"),  # OpenAI responses
    ("input_token_details", "cache_read"),  # LangChain
)
_REASONING: Final = (
    ("completion_tokens_details", "reasoning_tokens"),
    ("output_tokens_details", "reasoning_tokens"),
    ("output_token_details", "reasoning"),
)


class Usage(NamedTuple):
    """Token counts of one answer; None where the server did not say.

    Cached tokens are part of `input_tokens`, reasoning tokens are part of `output_tokens`.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None

    def updated_by(self, later: Usage) -> Usage:
        """Return the later counts where there are some: servers that report along the way report totals."""
        return Usage(*(old if new is None else new for old, new in zip(self, later, strict=True)))


def field(source: Any, name: str) -> Any:
    """Return `name` of a mapping or an object, None where it is not there."""
    if type(source) is dict or isinstance(source, Mapping):
        return source.get(name)
    return getattr(source, name, None)


def read_usage(source: Any) -> Usage:
    """Return the counts in a `usage` object of any of the known shapes."""
    return Usage(
        _first_count(source, _INPUT),
        _first_count(source, _OUTPUT),
        _first_detail(source, _CACHED),
        _first_detail(source, _REASONING),
    )


def read_timings(timings: Any) -> Usage:
    """Return the counts in llama.cpp's `timings`, whose `prompt_n` leaves out the cached tokens."""
    prompt, cached = _count(field(timings, "prompt_n")), _count(field(timings, "cache_n"))
    whole = None if prompt is None else prompt + (cached or 0)
    return Usage(whole, _count(field(timings, "predicted_n")), cached)


def _count(value: Any) -> int | None:
    """Return a plausible count; some servers send null, floats, or -1 for unknown."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if 0 <= value < 2**63 else None


def _first_count(source: Any, names: tuple[str, ...]) -> int | None:
    for name in names:
        if (count := _count(field(source, name))) is not None:
            return count
    return None


def _first_detail(source: Any, paths: tuple[tuple[str, str], ...]) -> int | None:
    for group, name in paths:
        details = field(source, group)
        if details is not None and (count := _count(field(details, name))) is not None:
            return count
    return None
