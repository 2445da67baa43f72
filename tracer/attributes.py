"""Attribute values as OTLP can hold them, taken at the moment they are set.

A value that is no plain scalar is copied at once: a list that the program changes later, or a tensor that it
wants to free, must not be held until the background thread comes to it.  Nothing here raises.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from itertools import islice
from typing import Any, Final

from hotspan.tracer import semconv
from hotspan.tracer.faults import is_the_programs
from hotspan.tracer.record import NO_ATTRIBUTES

MAX_ATTRIBUTES: Final = 256  # of one span
MAX_PART_ATTRIBUTES: Final = 128  # of one event or link
MAX_TEXT: Final = 131_072  # characters of one value; what is cut is said beside it
MAX_NAME: Final = 1_024  # characters of the name of a stage, a span or an event
MAX_ITEMS: Final = 1_024  # items of one list
MAX_FLOATS: Final = 256  # a longer list of floats is an embedding: its shape is kept, its numbers are not
MAX_NODES: Final = 4_096  # items of one value, all levels of nesting together
MAX_DEPTH: Final = 6
UNREADABLE: Final = "<unreadable>"
MIN_INT, MAX_INT = -(2**63), 2**63 - 1  # what OTLP's only integer type holds
# How keys begin, what matters most first, each with what matters more: without it a span says nothing.
_BY_IMPORTANCE: Final = (("hotspan.", "error."), ("hotspan.", "error.", "gen_ai."), ("",))
# Types of which no value can change: such a value may be looked at later, by another thread.
IMMUTABLE: Final = frozenset({str, int, float, bool})
# Types whose text is short, is no content, and is what a reader expects.
_TEXTUAL: Final = frozenset({"datetime", "decimal", "uuid", "pathlib", "fractions", "ipaddress"})


def snapshot(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of `attributes` with every value as OTLP can hold it."""
    kept: dict[str, Any] = {}
    for key, value in attributes.items():
        name = key_text(key)
        kept[name] = coerce(name, value, kept)
    return kept


def fits(key: str, own: Mapping[str, Any], constants: Mapping[str, Any]) -> bool:
    """Return whether a span that has these attributes may be given one under `key`.

    It may not where it would be cut at the end anyway; so a running span holds three kinds at the most.
    """
    if len(own) + len(constants) < MAX_ATTRIBUTES or key in own or key in constants:
        return True
    as_important = next(prefixes for prefixes in _BY_IMPORTANCE if key.startswith(prefixes))
    if as_important == ("",):
        return False
    n_as_important = sum(
        type(other) is str and other.startswith(as_important) for other in (*own, *constants)
    )
    return n_as_important < MAX_ATTRIBUTES


def most_important(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return `MAX_ATTRIBUTES` of more attributes, in their order: the more important ones, then the first."""
    kept: set[str] = set()
    for prefixes in _BY_IMPORTANCE:
        as_important = (key for key in attributes if key not in kept and key.startswith(prefixes))
        kept.update(list(islice(as_important, MAX_ATTRIBUTES - len(kept))))
    return {key: value for key, value in attributes.items() if key in kept}


def snapshot_part(attributes: Mapping[str, Any]) -> tuple[Mapping[str, Any], int]:
    """Return a copy of an event's or a link's first attributes, and how many there were beyond the bound."""
    if not attributes:
        return NO_ATTRIBUTES, 0
    if len(attributes) <= MAX_PART_ATTRIBUTES:
        return snapshot(attributes), 0
    first = dict(islice(attributes.items(), MAX_PART_ATTRIBUTES))
    return snapshot(first), len(attributes) - len(first)


def finish(attributes: dict[str, Any]) -> None:
    """Make good what was put off when the attributes were set: bounds of text and integers, keys as text."""
    odd = []
    for key, value in attributes.items():
        kind = type(value)
        is_good = len(value) <= MAX_TEXT if kind is str else kind is not int or MIN_INT <= value <= MAX_INT
        if not is_good or type(key) is not str:
            odd.append(key)
    for key in odd:
        name = key_text(key)
        attributes[name] = coerce(name, attributes.pop(key), attributes)


def key_text(key: object) -> str:
    """Return the key as text, whatever it is."""
    if isinstance(key, str):
        return key
    try:
        return str(key)
    except Exception:  # noqa: BLE001 - a key must not break the program that uses it
        return UNREADABLE


def text_of(value: object, most: int = MAX_TEXT) -> str:
    """Return a message or a name as plain text of at most so many characters."""
    return str.__getitem__(key_text(value), slice(most))


def coerce(key: str, value: Any, beside: MutableMapping[str, Any]) -> Any:
    """Return `value` as a str, bool, int, float, bytes, None, list or dict of such.

    Numbers of numpy and the like become Python's, arrays become lists, long arrays and long lists of floats
    their shape; text and lists are cut at a bound with the original length set in `beside` under
    `<key>.hotspan.original_length`.  Anything else becomes its type's name, since its text may be content, or
    slow, or raise.
    """
    try:
        reader = _Reader()
        kept = reader.read(value, MAX_DEPTH)
    except Exception as exc:
        if is_the_programs(exc):
            raise
        return UNREADABLE
    if reader.original_length is not None:
        beside[f"{key}.{semconv.ORIGINAL_LENGTH}"] = reader.original_length
    return kept


class _Reader:
    """Reads one value, with a bound on all of its items together.

    Attributes:
        original_length: Length of the value itself, where it was cut.
    """

    __slots__ = ("_n_nodes", "original_length")

    def __init__(self) -> None:
        self._n_nodes = 0
        self.original_length: int | None = None

    def read(self, value: Any, depth: int) -> Any:  # noqa: PLR0911 - a table of types
        """Return the kept form of `value`, at most `depth` levels deep."""
        self._n_nodes += 1
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, (str, bytes, bytearray)):
            return self._cut(value, depth)
        if isinstance(value, int):
            number = int(value)  # an IntEnum, say: only a plain int is compared without its own methods
            return number if MIN_INT <= number <= MAX_INT else _digits(number)
        if isinstance(value, float):
            return float(value)
        if depth == 0 or self._n_nodes > MAX_NODES:
            return _type_name(value)
        if isinstance(value, Mapping):
            self._note(len(value), depth)
            return {key_text(k): self.read(v, depth - 1) for k, v in islice(value.items(), MAX_ITEMS)}
        if isinstance(value, (list, tuple, set, frozenset, range)):
            return self._items(value, depth)
        return self._foreign(value, depth)

    def _cut(self, value: str | bytes | bytearray, depth: int) -> str | bytes:
        if len(value) > MAX_TEXT and depth == MAX_DEPTH:
            self.original_length = len(value)
        if isinstance(value, str):
            text = value if type(value) is str else str.__str__(value)
            return text[:MAX_TEXT]
        return bytes(value[:MAX_TEXT])

    def _items(self, value: Any, depth: int) -> Any:
        length = len(value)
        if length > MAX_FLOATS and isinstance(next(iter(value)), float):
            return f"<{_type_name(value)[1:-1]} of {length} floats>"
        self._note(length, depth)
        if type(value) is list and _are_plain_integers(value):  # the token times of a long answer
            self._n_nodes += length
            return value[:MAX_ITEMS]
        return [self.read(item, depth - 1) for item in islice(value, MAX_ITEMS)]

    def _note(self, length: int, depth: int) -> None:
        if length > MAX_ITEMS and depth == MAX_DEPTH:
            self.original_length = length

    def _foreign(self, value: Any, depth: int) -> Any:
        """Numbers and arrays of numpy, torch and their like, by what they can do rather than by import."""
        shape = getattr(value, "shape", None)
        if shape == () and hasattr(value, "item"):
            item = value.item()
            return float(value) if type(item) is type(value) else self.read(item, depth - 1)
        if isinstance(shape, tuple) and hasattr(value, "tolist"):
            n_items = 1
            for extent in shape:
                n_items *= int(extent)
            if n_items > MAX_FLOATS:
                return f"<{_type_name(value)[1:-1]} {'x'.join(map(str, shape))}>"
            return self.read(value.tolist(), depth - 1)
        if type(value).__module__.partition(".")[0] in _TEXTUAL:
            return str(value)
        return _type_name(value)


def _are_plain_integers(values: list[Any]) -> bool:
    return set(map(type, values)) == {int} and min(values) >= MIN_INT and max(values) <= MAX_INT


def _type_name(value: object) -> str:
    return f"<{type(value).__qualname__}>"


def _digits(number: int) -> str:
    try:
        return str(number)
    except ValueError:  # more digits than Python is willing to write
        return f"<int of {number.bit_length()} bits>"
