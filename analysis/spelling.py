"""How the value of an attribute is written, by `--by` and in `--where`: as JSON, a text without its quotes.

Source: docs/definitions.md#a-part-of-a-run.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeGuard

if TYPE_CHECKING:
    from hotspan.tracer.record import AttributeValue

BARE: Final = re.compile(r"""[^\s,|"'=!~<>][^\s,|"']*""")  # a word; `==` is a slip, and no value
_CONSTANTS: Final[Mapping[str, AttributeValue]] = {"true": True, "false": False, "null": None}
_UNWRITABLE: Final = "…"  # nested deeper, or with more digits, than Python writes
_DECODER: Final = json.JSONDecoder()


def spelt(value: AttributeValue) -> str:
    """Return how a value is written: a text as it is, bytes as base64, all else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return _base64(value)
    try:
        return json.dumps(value, ensure_ascii=False, default=_as_json)
    except (RecursionError, ValueError):
        return _UNWRITABLE


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _as_json(value: AttributeValue) -> Any:
    if isinstance(value, bytes):
        return _base64(value)
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, Sequence) else str(value)


def quoted(text: str) -> str:
    """Return a text in the quotes that it does not hold itself."""
    return f"'{text}'" if '"' in text else f'"{text}"'


def written(value: AttributeValue) -> str:
    """Return a value as a condition has it: a text that is no single word in quotes."""
    text = spelt(value)
    return quoted(text) if isinstance(value, str | bytes) and not BARE.fullmatch(text) else text


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value is one that has an order: booleans are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class Word:
    """A value as it was written: what it can stand for."""

    text: str
    meant: AttributeValue  # read as JSON; the text itself where it is none, or in quotes
    is_quoted: bool = False

    @classmethod
    def bare(cls, text: str) -> Word:
        """Return what a word without quotes stands for: the text, and the value that is written so."""
        return cls(text, _read(text))

    @classmethod
    def in_quotes(cls, text: str) -> Word:
        """Return what stands for a text alone."""
        return cls(text, text, is_quoted=True)

    def stands_for(self, value: AttributeValue) -> bool:
        """Return whether a value is the one that was written; numbers are equal as Python has it."""
        if isinstance(value, str):
            return value == self.text
        if isinstance(value, bytes):
            return spelt(value) == self.text
        if isinstance(self.meant, str):
            return False
        if isinstance(value, int) and not isinstance(value, bool):
            return is_number(self.meant) and value == self.meant
        equal = is_number(value) and is_number(self.meant) and value == self.meant
        return equal or spelt(value) == spelt(self.meant)  # the latter for NaN, too


def json_end(text: str, position: int) -> int | None:
    """Return where the list or object ends that is written at a position; `None` where there is none."""
    if text[position : position + 1] not in ("[", "{"):
        return None
    try:
        return _DECODER.raw_decode(text, position)[1]
    except (ValueError, RecursionError):
        return None


def number_of(text: str) -> int | float | None:
    """Return the number that a text says, whole ones exactly."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _read(text: str) -> AttributeValue:
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    number = number_of(text)
    if number is not None:
        return number
    if json_end(text, 0) != len(text):
        return text
    found: AttributeValue = json.loads(text)
    return found
