"""The language of `--where`: conditions on calls and on requests, parsed and applied to spans.

    where     = condition { ("and" | ",") condition }
    condition = ["request."] field operator value { "|" value }
    field     = stage | name | outcome | duration | service | the key of an attribute
    operator  = "=" | "!=" | "~" (contains) | "!~" | ">" | ">=" | "<" | "<="
    value     = a word, which is the text or the JSON value that it spells; a list as JSON; a text in quotes;
                for `duration` a number with its unit (ns us ms s min h)

Source: docs/definitions.md#a-part-of-a-run.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from hotspan.analysis.classify import OUTCOMES, outcome_of
from hotspan.analysis.spelling import BARE, Word, is_number, json_end, number_of, quoted, spelt
from hotspan.tracer import semconv
from hotspan.tracer.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hotspan.tracer.record import AttributeValue, SpanRecord

FIELDS: Final = ("stage", "name", "outcome", "duration", "service")
REQUEST: Final = "request."
_UNITS_NS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
}
ORDERINGS: Final[dict[str, Callable[[int | float, int | float | Decimal], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_QUOTED: Final = re.compile(r""""(?P<double>[^"]*)"|'(?P<single>[^']*)'""")
_COMPARED: Final = re.compile(r"""\s*(?P<field>[^\s=!~<>,"']+)\s*(?P<operator>!=|!~|>=|<=|=|~|>|<)\s*""")
_OR: Final = re.compile(r"\s*\|\s*")
_END: Final = re.compile(r"\s*(?:[,|]|\band\b|$)", re.IGNORECASE)
_SIGNS: Final = re.compile("[=!~<>]")
_JOINT: Final = re.compile(r"\s*(?:,|\band\b)", re.IGNORECASE)
_NEXT: Final = re.compile(_JOINT.pattern + _COMPARED.pattern, re.IGNORECASE)
_DURATION: Final = re.compile(r"(?P<number>[0-9]*\.?[0-9]+)\s*(?P<unit>[a-zµ]+)")
_NO_CONDITION: Final = "here a condition is expected."
_HELP: Final = "Write FIELD OPERATOR VALUE, such as stage=rerank, duration>500ms or request.outcome=error."


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition on the spans of a call, or on the root of a request."""

    of_request: bool
    field: str
    operator: str
    words: tuple[Word, ...]
    bound: int | float | Decimal | None = None  # of an ordering; durations in nanoseconds

    def __str__(self) -> str:
        words = (quoted(word.text) if word.is_quoted else word.text for word in self.words)
        return f"{self.label}{self.operator}{'|'.join(words)}"

    @property
    def label(self) -> str:
        """The field as it was written."""
        return f"{REQUEST}{self.field}" if self.of_request else self.field

    def holds(self, stage: str | None, spans: Sequence[SpanRecord]) -> bool:
        """Return whether a call fulfils it.

        Args:
            stage: The call's stage.
            spans: The call's spans, outermost first: its duration and outcome are those of the first, an
                attribute may be on any of them, or on the process that wrote them.
        """
        return self.holds_for(self.found(stage, spans))

    def found(self, stage: str | None, spans: Sequence[SpanRecord]) -> Sequence[AttributeValue]:
        """Return the values that a call has in the field."""
        return _values(self.field, stage, spans)

    def holds_for(self, found: Iterable[AttributeValue]) -> bool:
        """Return whether it is fulfilled by what was found in the field."""
        return any(map(self._matches, found)) != (self.operator in ("!=", "!~"))

    def _matches(self, value: AttributeValue) -> bool:
        if self.bound is not None:
            return is_number(value) and ORDERINGS[self.operator](value, self.bound)
        if self.operator in ("~", "!~"):
            text = spelt(value).lower()
            return any(word.text.lower() in text for word in self.words)
        return any(word.stands_for(value) for word in self.words)


@dataclass(frozen=True, slots=True)
class Where:
    """A parsed expression: all its conditions have to hold."""

    text: str
    conditions: tuple[Condition, ...]

    @property
    def of_calls(self) -> tuple[Condition, ...]:
        """The conditions on calls."""
        return tuple(condition for condition in self.conditions if not condition.of_request)

    @property
    def of_requests(self) -> tuple[Condition, ...]:
        """The conditions on requests."""
        return tuple(condition for condition in self.conditions if condition.of_request)


def parse_where(texts: Iterable[str]) -> Where:
    """Return the conditions of one or several expressions; all of them have to hold.

    Raises:
        ConfigurationError: An expression cannot be read; the message shows where.
    """
    conditions: list[Condition] = []
    given = list(texts)
    for text in given:
        position = 0
        while True:
            condition, position = _condition(text, position)
            conditions.append(condition)
            if not text[position:].strip():
                break
            joint = _JOINT.match(text, position)
            if joint is None:
                why = "here 'and', ',' or the end is expected."
                raise _unreadable(text, position, why + _in_quotes(condition, text[position:]))
            if text[joint.end() :].strip() and not _COMPARED.match(text, joint.end()):
                raise _unreadable(text, joint.end(), _NO_CONDITION + _in_quotes(condition, text[position:]))
            position = joint.end()
    return Where(" and ".join(given), tuple(conditions))


def _condition(text: str, position: int) -> tuple[Condition, int]:
    """Return the condition that begins at a position, and where it ends."""
    compared = _COMPARED.match(text, position)
    if compared is None:
        raise _unreadable(text, position, _NO_CONDITION)
    field, of_request = compared["field"], compared["field"].startswith(REQUEST)
    if field == REQUEST:
        raise _unreadable(text, compared.end("field"), f"here a field is expected, behind {REQUEST!r}.")
    words, end = _words(text, compared.end())
    if not words:
        raise _unreadable(
            text, compared.end(), "here a value is expected, in quotes if it begins with = ! ~ < >."
        )
    name = field.removeprefix(REQUEST)
    try:
        bound = _checked(name, compared["operator"], words)
    except ValueError as error:
        raise _unreadable(text, compared.end(), str(error)) from None
    return Condition(of_request, name, compared["operator"], words, bound), end


def _words(text: str, position: int) -> tuple[tuple[Word, ...], int]:
    """Return the alternatives that begin at a position, and where they end."""
    words: list[Word] = []
    end = start = position
    while (found := _word(text, start)) is not None:
        word, end = found
        words.append(word)
        more = _OR.match(text, end)
        if more is None:
            break
        start = more.end()
    return tuple(words), end


def _word(text: str, position: int) -> tuple[Word, int] | None:
    if inside := _QUOTED.match(text, position):
        return Word.in_quotes(inside["double"] or inside["single"] or ""), inside.end()
    end = json_end(text, position)
    if end is not None and _END.match(text, end):
        return Word.bare(text[position:end]), end
    bare = BARE.match(text, position)
    return None if bare is None else (Word.bare(bare[0]), bare.end())


def _checked(field: str, operator: str, words: Sequence[Word]) -> int | float | Decimal | None:
    """Return the bound of an ordering; refuse, as ValueError, a value that cannot be compared with."""
    if field == "duration" and operator not in ORDERINGS:
        msg = "a duration is compared with >, >=, < or <=."
        raise ValueError(msg)
    if field == "outcome" and operator in ("=", "!="):
        for word in words:
            if word.text not in OUTCOMES:
                msg = f"{word.text!r} is no outcome: there are {', '.join(OUTCOMES)}."
                raise ValueError(msg)
    return _bound(field, operator, words) if operator in ORDERINGS else None


def _bound(field: str, operator: str, words: Sequence[Word]) -> int | float | Decimal:
    word, *others = words
    if others:
        msg = f"{operator} takes one value, and no alternatives."
        raise ValueError(msg)
    if field == "duration":
        return duration_ns(word.text)
    number = number_of(word.text)
    if number is None:
        msg = f"{word.text!r} is no number to compare with."
        raise ValueError(msg)
    return number


def duration_ns(text: str) -> Decimal:
    """Return a duration such as `1.5s` in nanoseconds, exactly.

    Raises:
        ValueError: It is no number with a unit.
    """
    match = _DURATION.fullmatch(text)
    if match is None or match["unit"] not in _UNITS_NS:
        msg = f"{text!r} is no duration: give a number and a unit ({', '.join(_UNITS_NS)}), such as 500ms."
        raise ValueError(msg)
    return Decimal(match["number"]) * _UNITS_NS[match["unit"]]


def _unreadable(text: str, position: int, why: str) -> ConfigurationError:
    at = position + len(text[position:]) - len(text[position:].lstrip())
    return ConfigurationError(f"--where cannot be read: {why}\n  {text}\n  {' ' * at}^\n{_HELP}")


def _in_quotes(condition: Condition, rest: str) -> str:
    """Return what to write where the last value may go on in the rest; empty where that is unlikely."""
    following = _NEXT.search(rest)
    more = rest[: following.start()] if following else rest
    *others, last = condition.words
    if last.is_quoted or _SIGNS.search(more) or {'"', "'"} <= set(more):
        return ""
    whole = replace(condition, words=(*others, Word.in_quotes(last.text + more)))
    return f" A value of more than one word needs quotes: {whole}"


def _values(field: str, stage: str | None, spans: Sequence[SpanRecord]) -> Sequence[AttributeValue]:
    first = spans[0]
    if field == "stage":
        return (stage,)
    if field == "name":
        return [span.name for span in spans]
    if field == "outcome":
        return (outcome_of(first),)
    if field == "duration":
        return (first.duration_ns,)
    key = semconv.SERVICE_NAME if field == "service" else field
    found = [span.attributes[key] for span in spans if key in span.attributes]
    return found or [span.resource.attributes[key] for span in spans if key in span.resource.attributes]
