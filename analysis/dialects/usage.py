"""Tokens and models: what other writers call them, some as JSON in a string."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hotspan.tracer.record import Attributes

_MAX_DIGITS: Final = 18  # of a count
# Our key -> the other ones for the same, in order of trust.
_NUMBERS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (
        semconv.INPUT_TOKENS,
        (
            semconv.INPUT_TOKENS_OLD,
            semconv.OPENINFERENCE_INPUT_TOKENS,
            semconv.VERCEL_INPUT_TOKENS,
            semconv.VERCEL_INPUT_TOKENS_OLD,
        ),
    ),
    (
        semconv.OUTPUT_TOKENS,
        (
            semconv.OUTPUT_TOKENS_OLD,
            semconv.OPENINFERENCE_OUTPUT_TOKENS,
            semconv.VERCEL_OUTPUT_TOKENS,
            semconv.VERCEL_OUTPUT_TOKENS_OLD,
        ),
    ),
    (semconv.CACHED_TOKENS, (semconv.CACHED_TOKENS_OLD, semconv.OPENINFERENCE_CACHED_TOKENS)),
    (semconv.REASONING_TOKENS, (semconv.OPENINFERENCE_REASONING_TOKENS,)),
)
_JSON_KEYS: Final = (
    semconv.LANGFUSE_USAGE,
    semconv.MLFLOW_USAGE,
    semconv.LANGSMITH_USAGE,
    semconv.GENKIT_OUTPUT,
)
# Our key -> the names inside such JSON: OpenAI's, Anthropic's, LangChain's, Langfuse's, Genkit's.
_JSON_NAMES: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (semconv.INPUT_TOKENS, ("prompt_tokens", "input_tokens", "input", "inputTokens")),
    (semconv.OUTPUT_TOKENS, ("completion_tokens", "output_tokens", "output", "outputTokens")),
    (
        semconv.CACHED_TOKENS,
        ("cache_read_input_tokens", "input_cached_tokens", "cached_tokens", "cache_read"),
    ),
    (semconv.REASONING_TOKENS, ("output_reasoning_tokens", "reasoning_tokens", "reasoning")),
)
_MODELS: Final = (
    semconv.OPENINFERENCE_MODEL,
    semconv.OPENINFERENCE_EMBEDDING_MODEL,
    semconv.LANGFUSE_MODEL,
    semconv.MLFLOW_MODEL,
    semconv.GENKIT_NAME,
)


USAGE_KEYS: Final = (*(other for _, others in _NUMBERS for other in others), *_JSON_KEYS, *_MODELS)
USAGE: Final = frozenset(key for key, _ in _NUMBERS)  # ours, each for one count


def usage_of(attributes: Attributes) -> Iterator[tuple[str, int]]:
    """Yield our key and the number, for each count that is there under another key or as text."""
    stated = _stated(attributes)
    for key, others in _NUMBERS:
        mine = attributes.get(key)
        if isinstance(mine, int) and not isinstance(mine, bool):
            continue
        found = (count_of(attributes.get(other)) for other in (key, *others))
        count = next((n for n in found if n is not None), stated.get(key))
        if count is not None:
            yield key, count


def is_unknown_usage(attributes: Attributes) -> bool:
    """Return whether no tokens are counted: no prompt is empty, so that a 0 says that none was told.

    OpenAI-compatible streams tell their usage only if asked to; several libraries then write zeros.
    """
    sent, answered = (attributes.get(key) for key in (semconv.INPUT_TOKENS, semconv.OUTPUT_TOKENS))
    return sent == 0 and not answered


def model_of(attributes: Attributes) -> str | None:
    """Return the model's name where it is under another key alone."""
    if semconv.REQUEST_MODEL in attributes or semconv.RESPONSE_MODEL in attributes:
        return None
    found = (attributes.get(key) for key in _MODELS)
    return next((value.strip('"') for value in found if isinstance(value, str) and value), None)


def count_of(value: object) -> int | None:
    """Return a count of tokens: an integer, or one that came as text or as a float."""
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) <= _MAX_DIGITS else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < float("inf") and value == int(value) else None


def measure_of(value: object) -> float | None:
    """Return a duration: a number that is not negative, or one that a collector made a text of."""
    if isinstance(value, str):
        try:
            value = float(value) if value.isascii() else None
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value < float("inf") else None


def _stated(attributes: Attributes) -> dict[str, int]:
    for key in _JSON_KEYS:
        text = attributes.get(key)
        if isinstance(text, str):
            parsed = json_of(text)
            if isinstance(parsed, dict):
                return dict(_inside(parsed))
    return {}


def _inside(parsed: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    nested = [value for value in parsed.values() if isinstance(value, dict)]  # …_details
    for key, names in _JSON_NAMES:
        found = (count_of(level.get(name)) for level in (parsed, *nested) for name in names)
        count = next((n for n in found if n is not None), None)
        if count is not None:
            yield key, count


def json_of(text: str) -> Any:
    """Return what a JSON text holds; `None` for what is no JSON."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
