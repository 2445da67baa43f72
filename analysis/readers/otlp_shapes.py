"""Shapes of spans in OTLP/JSON: the text of attributes that come again and again, with holes for the values.

A text that fits a shape needs no decoder: its keys, their order and the types of its values are known, and
what stands in the holes is kept as text.  That is half of the work, and nearly all of it for the values that
nobody asks for.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from hotspan.analysis.drafts import LIKENING, Body, Hole, Shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from hotspan.tracer.record import SpanRecord

_MAX_SHAPES: Final = 8  # of the spans of one name
_MAX_NAMES: Final = 1_024
_MIN_MISSES: Final = 64  # a power of two: to learn a shape takes as long as to decode some hundred spans
_MAX_PATTERN: Final = 1 << 14  # characters: larger ones hold a text, or more keys than come again
_BEFORE: Final = '"attributes":['
_PAIR: Final = re.compile(r'\{"key":"([^"\\]+)","value":\{"([a-z]+Value)":')
_AFTER: Final = re.compile(r'\],"status":\{(?:"code":[0-9])?\}\},?')
_BETWEEN: Final = '"},{"intValue":"'
_decode_integers = msgspec.json.Decoder(tuple[int, ...]).decode
_raw_decode = json.JSONDecoder().raw_decode


class _Type(NamedTuple):
    """How a value is written, with a hole, and what makes the value of what stands there."""

    written: str
    made: Callable[[Any], Any] | None


def _integers(text: str) -> tuple[int, ...]:
    return _decode_integers(f"[{text.replace(_BETWEEN, ',')}]")


_TYPES: Final = {
    "stringValue": _Type(r'"([^"\\\x00-\x1f]*)"\}\}', None),
    "intValue": _Type(r'"([0-9]{1,18})"\}\}', int),
    "doubleValue": _Type(r"(-?(?:0|[1-9][0-9]{0,18})(?:\.[0-9]{1,25})?(?:[eE][-+]?[0-9]{1,2})?)\}\}", float),
    "boolValue": _Type(r"(true|false)\}\}", "true".__eq__),
    "arrayValue": _Type(r'\{"values":\[\{"intValue":"([^\]]*)"\}\]\}\}\}', _integers),
}


class _Known(NamedTuple):
    """A shape as text."""

    match: Callable[[str], re.Match[str] | None]
    shape: Shape
    arrays: tuple[int, ...]  # places of texts that may be no array at all: they are read at once


@dataclass(slots=True)
class _Name:
    """The spans of one name and kind."""

    known: list[_Known] = field(default_factory=list)
    n_misses: int = 0


class Shapes:
    """The shapes of one writer's spans."""

    def __init__(self) -> None:
        self._names: dict[str, _Name] = {}

    def body(self, head: str, tail: str) -> Body | None:
        """Return what a span says, if it has a shape that was learnt.

        Args:
            head: Text of its name and kind.
            tail: Text of its attributes and all behind them.
        """
        name = self._names.get(head)
        if name is None:
            return None
        for number, (match, shape, arrays) in enumerate(name.known):
            found = match(tail)
            if found is None:
                continue
            if number:  # those that are met most come first
                name.known[number - 1 : number + 1] = reversed(name.known[number - 1 : number + 1])
            values: Any = found.groups()
            if arrays:
                values = list(values)
                try:
                    for place in arrays:
                        values[place] = _integers(values[place])
                except ValueError:
                    return None
            return Body(shape.template, shape.likeness, shape, values)
        return None

    def learn(self, head: str, tail: str, span: SpanRecord) -> None:
        """Take a span that had to be decoded; now and then its shape is learnt from it."""
        name = self._names.get(head)
        if name is None:
            if len(self._names) >= _MAX_NAMES:
                self._names.clear()
            name = self._names[head] = _Name()
        name.n_misses += 1
        is_time = name.n_misses >= _MIN_MISSES and name.n_misses.bit_count() == 1
        if is_time and len(name.known) < _MAX_SHAPES and (known := _learnt(tail, span)):
            name.known.append(known)


def _learnt(tail: str, span: SpanRecord) -> _Known | None:
    """Return the shape of a text; `None` where it has none."""
    if not tail.startswith(_BEFORE):
        return None
    pattern, at = [re.escape(_BEFORE)], len(_BEFORE)
    keys: list[str] = []
    holes: dict[str, Hole] = {}
    arrays: list[int] = []
    while pair := _PAIR.match(tail, at):
        key, kind = pair.groups()
        keys.append(key)
        written, made = _TYPES.get(kind, (None, None))
        value = re.compile(written).match(tail, pair.end()) if written and key not in LIKENING else None
        if value and written:
            pattern += (re.escape(pair.group()), written)
            if kind == "arrayValue":
                arrays.append(len(holes))
                made = None
            holes[key] = Hole(len(holes), made)
            end = value.end()
        else:  # it stays what it is
            end = _raw_decode(tail, pair.end())[1] + len("}}")
            pattern.append(re.escape(tail[at:end]))
        at = end + (tail[end : end + 1] == ",")
        pattern.append(re.escape(tail[end:at]))
    if keys != list(span.attributes) or not holes or not _AFTER.fullmatch(tail, at):
        return None
    pattern.append(re.escape(tail[at:]))
    if sum(map(len, pattern)) > _MAX_PATTERN:
        return None
    return _Known(re.compile("".join(pattern)).fullmatch, Shape(span, holes), tuple(arrays))
