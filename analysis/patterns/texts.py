"""Whether an embedding call had several texts, as far as its span tells."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from hotspan.tracer import semconv

if TYPE_CHECKING:
    from hotspan.tracer.record import Attributes

_COUNTS: Final = (semconv.BATCH_SIZE, semconv.PYDANTIC_N_INPUTS)
# JSON: a list of texts, or an object that has one.
_INPUTS: Final = (
    semconv.OPENINFERENCE_INPUT,
    semconv.LANGFUSE_INPUT,
    semconv.MLFLOW_INPUTS,
    semconv.INPUT_MESSAGES,
)


def has_several(attributes: Attributes) -> bool:
    """Return whether a call says that it had more than one text."""
    counts = (attributes.get(key) for key in _COUNTS)
    return (
        any(isinstance(count, int | float) and count > 1 for count in counts)
        or semconv.OPENINFERENCE_SECOND_TEXT in attributes
        or any(_are_several(attributes.get(key)) for key in _INPUTS)
    )


def _are_several(text: object) -> bool:
    if not isinstance(text, str) or not text.startswith(("[", "{")):
        return False
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # no JSON, or cut
        return False
    lists = found.values() if isinstance(found, dict) else (found,)
    # A list of numbers is one text: its tokens.
    return any(
        isinstance(texts, list) and len(texts) > 1 and not isinstance(texts[0], int | float)
        for texts in lists
    )
