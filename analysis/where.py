"""The language of `--where`: conditions on calls and on requests, parsed and applied to spans.

    where     = condition { ("and" | ",") condition }
    condition = ["request."] field operator value { "|" value }
    field     = stage | name | outcome | duration | service | the key of an attribute
    operator  = "=" | "!=" | "~" (contains) | "!~" | ">" | ">=" | "<" | "<="
    value     = a word, a text in quotes, a number; for `duration` a number with its unit (ns us ms s min h)

Source: docs/definitions.md#a-part-of-a-run.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hotspan.analysis.classify import OUTCOMES, outcome_of
from hotspan.tracer import semconv
from hotspan.tracer.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hotspan.tracer.record import AttributeValue, SpanRecord

_REQUEST: Final = "request."
_UNITS_NS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
}
_ORDERINGS: Final[dict[str, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_VALUE: Final = r"""(?:"[^"]*"|'[^']*'|[^\s,|"'=!~<>][^\s,|"']*)"""  # `==` is a slip, and no value
_COMPARED: Final = re.compile(r"""\s*(?P<field>[^\s=!~<>,"']+)\s*(?P<operator>!=|!~|>=|<=|=|~|>|<)\s*""")
_VALUES: Final = re.compile(rf"(?P<values>{_VALUE}(?:\s*\|\s*{_VALUE})*)")
_JOINT: Final = re.compile(r"\s*(?:,|\band\b)", re.IGNORECASE)
_DURATION: Final = re.compile(r"(?P<number>[0-9]*\.?[0-9]+)\s*(?P<unit>[a-zµ]+)")
_HELP: Final = "Write FIELD OPERATOR VALUE, such as stage=rerank, duration>500ms or request.outcome=error."


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition on the spans of a call, or on the root of a request."""

    of_request: bool
    field: str
    operator: str
    values: tuple[str, ...]

    def holds(self, stage: str | None, spans: Sequence[SpanRecord]) -> bool:
        """Return whether a call fulfils it.

        Args:
            stage: The call's stage.
            spans: The call's spans, outermost first: its duration and outcome are those of the first, an
                attribute may be on any of them, or on the process that wrote them.
        """
        found = list(_values(self.field, stage, spans))
        if self.operator in ("!=", "!~"):
            return not any(self._matches(value, wanted) for value in found for wanted in self.values)
        return any(self._matches(value, wanted) for value in found for wanted in self.values)

    def _matches(self, value: AttributeValue, wanted: str) -> bool:
        if self.operator in _ORDERINGS:
            number, bound = _number(value), self._bound(wanted)
            return number is not None and _ORDERINGS[self.operator](number, bound)
        if self.operator in ("~", "!~"):
            return wanted.lower() in _text(value).lower()
        number = _number(value)
        return number == _as_number(wanted) if number is not None else _text(value) == wanted

    def _bound(self, wanted: str) -> float:
        return duration_ns(wanted) if self.field == "duration" else float(wanted)


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
                raise _unreadable(text, position, "here 'and', ',' or the end is expected.")
            position = joint.end()
    return Where(" and ".join(given), tuple(conditions))


def _condition(text: str, position: int) -> tuple[Condition, int]:
    """Return the condition that begins at a position, and where it ends."""
    compared = _COMPARED.match(text, position)
    if compared is None:
        raise _unreadable(text, position, "here a condition is expected.")
    field, of_request = compared["field"], compared["field"].startswith(_REQUEST)
    if field == _REQUEST:
        raise _unreadable(text, compared.end("field"), f"here a field is expected, behind {_REQUEST!r}.")
    match = _VALUES.match(text, compared.end())
    if match is None:
        raise _unreadable(
            text, compared.end(), "here a value is expected, in quotes if it begins with = ! ~ < >."
        )
    values = tuple(_unquoted(value) for value in re.findall(_VALUE, match["values"]))
    condition = Condition(of_request, field.removeprefix(_REQUEST), compared["operator"], values)
    try:
        _check(condition)
    except ValueError as error:
        raise _unreadable(text, match.start(), str(error)) from None
    return condition, match.end()


def _check(condition: Condition) -> None:
    """Refuse, as ValueError, a value that the operator cannot compare with."""
    if condition.field == "duration" and condition.operator not in _ORDERINGS:
        msg = "a duration is compared with >, >=, < or <=."
        raise ValueError(msg)
    if condition.field == "outcome" and condition.operator in ("=", "!="):
        for value in condition.values:
            if value not in OUTCOMES:
                msg = f"{value!r} is no outcome: there are {', '.join(OUTCOMES)}."
                raise ValueError(msg)
    if condition.operator in _ORDERINGS:
        if len(condition.values) > 1:
            msg = f"{condition.operator} takes one value, and no alternatives."
            raise ValueError(msg)
        for value in condition.values:
            if condition.field == "duration":
                duration_ns(value)
            elif _as_number(value) is None:
                msg = f"{value!r} is no number to compare with."
                raise ValueError(msg)


def duration_ns(text: str) -> float:
    """Return a duration such as `1.5s` in nanoseconds.

    Raises:
        ValueError: It is no number with a unit.
    """
    match = _DURATION.fullmatch(text)
    if match is None or match["unit"] not in _UNITS_NS:
        msg = f"{text!r} is no duration: give a number and a unit ({', '.join(_UNITS_NS)}), such as 500ms."
        raise ValueError(msg)
    return float(match["number"]) * _UNITS_NS[match["unit"]]


def _unreadable(text: str, position: int, why: str) -> ConfigurationError:
    at = position + len(text[position:]) - len(text[position:].lstrip())
    return ConfigurationError(f"--where cannot be read: {why}\n  {text}\n  {' ' * at}^\n{_HELP}")


def _unquoted(value: str) -> str:
    return value[1:-1] if value[0] in "\"'" else value


def _values(field: str, stage: str | None, spans: Sequence[SpanRecord]) -> Iterable[AttributeValue]:
    first = spans[0]
    if field == "stage":
        return (stage,)
    if field == "name":
        return (span.name for span in spans)
    if field == "outcome":
        return (outcome_of(first),)
    if field == "duration":
        return (first.duration_ns,)
    key = semconv.SERVICE_NAME if field == "service" else field
    found = [span.attributes[key] for span in spans if key in span.attributes]
    return found or [span.resource.attributes[key] for span in spans if key in span.resource.attributes]


def _text(value: AttributeValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number(value: AttributeValue) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
