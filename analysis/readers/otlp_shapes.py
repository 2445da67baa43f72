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

import numpy as np

from hotspan.analysis.drafts import LIKENING, Body, Hole, Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hotspan.analysis.columns import Longs
    from hotspan.tracer.record import SpanRecord

_MAX_SHAPES: Final = 8  # of the spans of one name
_MAX_NAMES: Final = 1_024
_MIN_MISSES: Final = 64  # a power of two: to learn a shape takes as long as to decode some hundred spans
_MAX_CHARS: Final = 1 << 14  # larger ones hold a text, or more keys than come again
_MAX_PATTERN: Final = 1 << 14
_N_MISSED: Final = 16  # spans that are looked at for what does not change
_MIN_ALIKE: Final = 4  # spans that have a value in common, for it to be taken for one of all
_MAX_CONSTANT: Final = 4  # shapes of one name with such values: who changes them often gets one without
_BEFORE: Final = '"attributes":['
_PAIR: Final = re.compile(r'\{"key":"([^"\\]+)","value":\{"([a-z]+Value)":')
_AFTER: Final = re.compile(r'\],"status":\{(?:"code":[0-9])?\}\},?')
_BETWEEN: Final = '"},{"intValue":"'
_NO_DIGITS: Final = _BETWEEN.replace(",", "").encode()
_raw_decode = json.JSONDecoder().raw_decode


class _Type(NamedTuple):
    """How a value is written, with a hole, and what makes the value of what stands there."""

    written: re.Pattern[str]
    made: Callable[[Any], Any] | None
    integers: Callable[[Sequence[Any]], Longs] | None = None  # in many such places, at once


class _Pair(NamedTuple):
    """An attribute as text."""

    key: str
    text: str  # all of it, and what parts it from the next one
    n_before: int  # characters before the value
    n_after: int  # behind what its type says of it
    type: _Type | None  # None: one without holes


def _integers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(_BETWEEN)))


def _all_integers(texts: Sequence[str]) -> Longs:
    digits = ",".join(texts).encode().translate(None, _NO_DIGITS)  # ten times as fast as one by one
    return np.fromstring(digits, dtype=np.int64, sep=",")


_TYPES: Final = {
    "stringValue": _Type(re.compile(r'"([^"\\\x00-\x1f]*+)"\}\}'), None),
    "intValue": _Type(re.compile(r'"([0-9]{1,18}+)"\}\}'), int, _all_integers),
    "doubleValue": _Type(
        re.compile(r"(-?(?:0|[1-9][0-9]{0,18})(?:\.[0-9]{1,25})?(?:[eE][-+]?[0-9]{1,2})?)\}\}"), float
    ),
    "boolValue": _Type(re.compile(r"(true|false)\}\}"), "true".__eq__),
    "arrayValue": _Type(
        re.compile(
            r'\{"values":\[\{"intValue":"([0-9]{1,18}+(?:"\},\{"intValue":"[0-9]{1,18}+)*+)"\}\]\}\}\}'
        ),
        _integers,
        _all_integers,
    ),
}


class _Known(NamedTuple):
    """A shape as text."""

    before: str  # the first hole: to compare it takes no time, and the pattern would look at each character
    match: Callable[[str, int], re.Match[str] | None]  # from there on
    shape: Shape


@dataclass(slots=True)
class _Name:
    """The spans of one name and kind."""

    known: list[_Known] = field(default_factory=list)
    n_misses: int = 0
    missed: list[str] = field(default_factory=list)  # shortly before a shape is learnt


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
        for number, (before, match, shape) in enumerate(name.known):
            if tail.startswith(before) and (found := match(tail, len(before))) is not None:
                if number:  # those that are met most come first
                    name.known[number - 1 : number + 1] = reversed(name.known[number - 1 : number + 1])
                return Body(shape.template, shape.likeness, shape, found.groups())
        return None

    def learn(self, head: str, tail: str, span: SpanRecord) -> None:
        """Take a span that had to be decoded; now and then its shape is learnt from it."""
        name = self._names.get(head)
        if name is None:
            if len(self._names) >= _MAX_NAMES:
                self._names.clear()
            name = self._names[head] = _Name()
        name.n_misses += 1
        if len(tail) > _MAX_CHARS or len(name.known) >= _MAX_SHAPES:
            return
        lesson = max(_MIN_MISSES, 1 << (name.n_misses - 1).bit_length())  # the next one: at a power of two
        if name.n_misses > lesson - _N_MISSED:
            name.missed.append(tail)
        if name.n_misses == lesson:
            if known := _learnt(tail, span, name.missed if len(name.known) < _MAX_CONSTANT else ()):
                name.known.append(known)
            name.missed.clear()


def _learnt(tail: str, span: SpanRecord, others: Iterable[str]) -> _Known | None:
    """Return the shape of a text; `None` where it has none.

    Args:
        tail: The text.
        span: What it says.
        others: More such texts: a value that all of them have is no hole, which is found sooner.
    """
    pairs, rest = _taken_apart(tail)
    if not _AFTER.fullmatch(rest) or [pair.key for pair in pairs] != list(span.attributes):
        return None
    kept = LIKENING | _same([pairs, *(_taken_apart(other)[0] for other in others)])
    fixed = [_BEFORE]  # text between the holes
    pattern: list[str] = []
    holes: dict[str, Hole] = {}
    for key, text, n_before, n_after, kind in pairs:
        if kind is None or key in kept:
            fixed[-1] += text
        else:
            fixed[-1] += text[:n_before]
            fixed.append(text[len(text) - n_after :])
            pattern.append(kind.written.pattern)
            holes[key] = Hole(len(holes), kind.made, kind.integers)
    fixed[-1] += rest
    before, *behind = fixed
    whole = "".join(hole + re.escape(text) for hole, text in zip(pattern, behind, strict=True))
    if len(before) + len(whole) > _MAX_PATTERN:
        return None
    return _Known(before, re.compile(whole).fullmatch, Shape(span, holes))


def _same(spans: Sequence[Sequence[_Pair]]) -> set[str]:
    """Return the attributes that are the same in all spans of the first one's keys, if there are several."""
    first = spans[0]
    keys = [pair.key for pair in first]
    alike = [pairs for pairs in spans if [pair.key for pair in pairs] == keys]
    if len(alike) < _MIN_ALIKE:
        return set()
    return {
        key for key, *values in zip(keys, *alike, strict=True) if len({pair.text for pair in values}) == 1
    }


def _taken_apart(tail: str) -> tuple[list[_Pair], str]:
    """Return the attributes at the beginning of a text, and what is behind them."""
    if not tail.startswith(_BEFORE):
        return [], tail
    pairs, at = [], len(_BEFORE)
    while pair := _PAIR.match(tail, at):
        key, name = pair.groups()
        kind = _TYPES.get(name)
        value = kind.written.match(tail, pair.end()) if kind else None
        try:
            end = value.end() if value else _raw_decode(tail, pair.end())[1] + len("}}")
        except (ValueError, RecursionError):  # a blank, or too deep
            return [], tail
        n_after = int(tail[end : end + 1] == ",")
        pairs.append(_Pair(key, tail[at : end + n_after], pair.end() - at, n_after, kind if value else None))
        at = end + n_after
    return pairs, tail[at:]
