"""Why nothing fulfils the conditions of `--where`: what there is in their fields, or which fields there are.

Memory is bounded: of many values and names, the first ones are kept.
"""

from __future__ import annotations

import difflib
from collections import Counter
from typing import TYPE_CHECKING, Final

from hotspan.analysis.spelling import is_number, spelt, written
from hotspan.analysis.where import FIELDS, ORDERINGS, REQUEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hotspan.analysis.where import Condition
    from hotspan.tracer.record import SpanRecord

_MOST: Final = 1000  # values of a field, and names
_LONGEST: Final = 100  # characters of a value or a name
_LISTED: Final = 12  # names in a message
_SHOWN: Final = 5  # values in a message
_NEAR: Final = 3
_OWN: Final = "hotspan."  # keys that describe spans, and that nobody gave
_UNITS: Final = (("s", 10**9), ("ms", 10**6), ("us", 10**3))


class Misses:
    """What was found for each of the conditions, as long as nothing fulfils all of them."""

    def __init__(self, conditions: Iterable[Condition]) -> None:
        self._misses = [_Miss(condition) for condition in conditions]
        self._names: dict[str, None] = {}
        self._has_joint = len(self._misses) > 1

    def note(self, stage: str | None, spans: Sequence[SpanRecord], *, of_request: bool) -> None:
        """Take in a call, or a request: then the conditions on requests look at it."""
        for miss in self._misses:
            if miss.condition.of_request == of_request:
                miss.note(stage, spans)
        if self._wants_names:
            lead = REQUEST if of_request else ""
            keys = (key for span in spans for key in span.attributes if len(key) <= _LONGEST)
            self._names.update(dict.fromkeys(f"{lead}{name}" for name in (*FIELDS, *keys)))

    @property
    def wants_calls(self) -> bool:
        """Whether anything is still to be learned from calls."""
        return self._wants_names or any(not miss.condition.of_request for miss in self._misses)

    @property
    def _wants_names(self) -> bool:
        return len(self._names) < _MOST and any(miss.is_unknown for miss in self._misses)

    def reasons(self) -> list[str]:
        """Return a sentence for each condition that nothing fulfils by itself."""
        if not self._names and all(miss.is_unknown for miss in self._misses):
            return []  # nothing was there to be asked
        found = [self._reason(miss) for miss in self._misses if not miss.is_fulfilled]
        if not found and self._has_joint:
            return ["Each condition is fulfilled, but never all of them together."]
        return found

    def _reason(self, miss: _Miss) -> str:
        label = miss.condition.label
        if not miss.is_unknown:
            return miss.reason()
        of_request = miss.condition.of_request
        names = sorted(self._names, key=lambda name: name.startswith(REQUEST) != of_request)
        return f"No {_who(miss.condition)} has the attribute {miss.condition.field}. {listed(label, names)}"


class _Miss:
    """What was found for one condition."""

    def __init__(self, condition: Condition) -> None:
        self.condition = condition
        self.is_fulfilled = False
        self._values: Counter[tuple[bool, str]] = Counter()  # whether it is a text, and how it is spelt
        self._range: tuple[int | float, int | float] | None = None
        self._n_left_out = 0

    @property
    def is_unknown(self) -> bool:
        """Whether nothing has the field."""
        return not (self._values or self._n_left_out)

    def note(self, stage: str | None, spans: Sequence[SpanRecord]) -> None:
        found = self.condition.found(stage, spans)
        self.is_fulfilled = self.is_fulfilled or self.condition.holds_for(found)
        if self.condition.operator in ORDERINGS:
            self._note_range([value for value in found if is_number(value)])
        for key in {(isinstance(value, str), spelt(value)) for value in found}:
            if key in self._values or (len(self._values) < _MOST and len(key[1]) <= _LONGEST):
                self._values[key] += 1
            else:
                self._n_left_out += 1

    def _note_range(self, numbers: list[int | float]) -> None:
        if numbers:
            known = numbers if self._range is None else [*self._range, *numbers]
            self._range = min(known), max(known)

    def reason(self) -> str:
        """Return what there is in the field, the most frequent first, and what may have been meant."""
        label = self.condition.label
        if self._range is not None:
            return f"{label} is {' to '.join(dict.fromkeys(map(self._shown_number, self._range)))}."
        who = _who(self.condition)
        values = self._values.most_common(_SHOWN)
        parts = [f"{_typed(key)} ({n:,} {who}{'' if n == 1 else 's'})" for key, n in values]
        others = ["others"] if len(self._values) > len(values) or self._n_left_out else []
        return f"{label} is {', '.join([*parts, *others])}.{self._meant()}"

    def _shown_number(self, number: float) -> str:
        if self.condition.field != "duration":
            return spelt(number)
        unit, size = next((unit for unit in _UNITS if number >= unit[1]), ("ns", 1))
        return f"{number / size:.6g}{unit}"

    def _meant(self) -> str:
        if self.condition.operator != "=":
            return ""
        by_text = {text.lower(): (is_text, text) for is_text, text in reversed(self._values)}
        near = dict.fromkeys(
            key
            for word in self.condition.words
            for key in difflib.get_close_matches(word.text.lower(), by_text, n=1)
        )
        return f" Did you mean {' or '.join(_typed(by_text[key]) for key in near)}?" if near else ""


def _who(condition: Condition) -> str:
    return "request" if condition.of_request else "call"


def _typed(key: tuple[bool, str]) -> str:
    is_text, text = key
    return written(text) if is_text else text


def listed(wanted: str, names: Iterable[str]) -> str:
    """Return names for a message: those that are most like the wanted one, and a few others."""
    there = list(dict.fromkeys(names))
    near = _nearest(wanted, there)
    others = [name for name in there if name not in near and not name.removeprefix(REQUEST).startswith(_OWN)]
    rest = ", ".join(others[:_LISTED])
    return f"Did you mean {' or '.join(near)}? Others are: {rest}." if near else f"There are: {rest}."


def _nearest(wanted: str, there: Sequence[str]) -> list[str]:
    if not wanted.startswith(REQUEST):
        moved = f"{REQUEST}{wanted}"
        return [moved] if moved in there else difflib.get_close_matches(wanted, there, n=_NEAR)
    field = wanted.removeprefix(REQUEST)
    if field in there:
        return [field]
    # What all of them begin with makes none of them alike.
    fields = [name.removeprefix(REQUEST) for name in there if name.startswith(REQUEST)]
    return [f"{REQUEST}{name}" for name in difflib.get_close_matches(field, fields, n=_NEAR)]
