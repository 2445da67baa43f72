"""The fields of an object in anyone's JSON, each by itself: a bad one costs itself only, and is said.

`null` is how JSON spells a field that is not there, NaN how data frames do: nothing is said of either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from hotspan.analysis.readers import ids, values
from hotspan.tracer.record import (
    KINDS,
    STATUSES,
    Attributes,
    Event,
    Kind,
    Link,
    Status,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

Say = Callable[[str], None]
SPAN: Final = "a span"
_MAY_BE_NOTHING: Final = (str, float)


class Fields:
    """An object, or nothing where there is none, whose fields are asked for by what they are meant to be.

    Of several keys the first that holds something counts.

    Args:
        found: What stands where the object belongs.
        say: Told of every field that cannot be read.
        of: What the object is, for those messages.
    """

    __slots__ = ("_found", "_of", "_say")

    def __init__(self, found: object, say: Say, of: str = SPAN) -> None:
        self._found = found if isinstance(found, dict) else values.mapping(found)
        self._say = say
        self._of = of

    def get(self, *keys: str) -> Any:
        """Return what a field holds, whatever it is, and `None` where it holds nothing."""
        return self._first(keys)[1]

    def has(self, key: str) -> bool:
        """Return whether a field holds something."""
        return not _is_absent(self._found.get(key))

    def whole(self) -> Mapping[str, Any]:
        """Return the object itself."""
        return self._found

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return the fields that hold something."""
        return [(key, value) for key, value in self._found.items() if not _is_absent(value)]

    def bad(self, what: str) -> None:
        """Say that a field, or a part of it, cannot be read."""
        self._say(f"{what} of {self._of} cannot be read")

    def text(self, *keys: str) -> str:
        """Return a text; a number in digits; empty where there is none."""
        key, value = self._first(keys)
        if value is None or isinstance(value, str):
            return value or ""
        if isinstance(value, int | float):
            return values.shown(value)
        self.bad(key)
        return ""

    def time(self, unit_ns: int, *keys: str) -> int | None:
        """Return a time in nanoseconds since 1970; see `values.time_ns`."""
        key, value = self._first(keys)
        try:
            return values.time_ns(value, unit_ns)
        except ValueError:
            self.bad(key)
            return None

    def start(self, unit_ns: int, *keys: str) -> int:
        """Return the time at which a span starts.

        Raises:
            ValueError: There is none.
        """
        return values.start_ns(self.get(*keys), unit_ns)

    def parent(self, *keys: str, read: Callable[[str], str | None] = ids.span_id) -> str | None:
        """Return a parent's id as 16 hex digits; of one that is none a hash, so that the parent is missing.

        Args:
            keys: Where it stands.
            read: What makes an id of a text.
        """
        value = self.get(*keys)
        if value is None:
            return None
        found = read(value) if isinstance(value, str) else None
        if found is None and (found := ids.parent_id(values.text(value))) is not None:
            self._say(
                f"the parent's id {values.shown(value)} of {self._of} is none, so its parent is missing"
            )
        return found

    def kind(self, *keys: str) -> Kind:
        """Return the kind of a span in any spelling of `values.member`, unspecified where it says none."""
        return cast("Kind", self._member("kind", keys, KINDS))

    def status(self, *keys: str) -> Status:
        """Return the status of a span in any spelling of `values.member`, unset where it says none."""
        return cast("Status", self._member("status", keys, STATUSES))

    def _member(self, what: str, keys: Sequence[str], members: Sequence[str]) -> str:
        value = self.get(*keys)
        found = values.member(value, members)
        if found is None and value not in (None, ""):
            self._say(f"the {what} {values.shown(value)} of {self._of} is not known")
        return found or members[0]

    def inner(self, *keys: str, of: str | None = None) -> Fields:
        """Return an object inside, without a field where there is none."""
        key, value = self._first(keys)
        if value is not None and not isinstance(value, Mapping):
            self.bad(key)
        return Fields(value, self._say, of or self._of)

    def listing(self, *keys: str) -> Sequence[Any]:
        """Return an array, empty where there is none."""
        key, value = self._first(keys)
        if value is not None and not isinstance(value, list | tuple):
            self.bad(key)
        return values.listing(value)

    def objects(self, *keys: str, of: str | None = None) -> Iterator[Fields]:
        """Yield the objects in an array; an element that is none is said."""
        return (Fields(item, self._say, of or self._of) for item in self.mappings(*keys))

    def mappings(self, *keys: str) -> Iterator[Mapping[str, Any]]:
        """Yield the objects in an array as they are; an element that is none is said."""
        for item in self.listing(*keys):
            if isinstance(item, dict):
                yield item
            else:
                self.bad(f"one of the {keys[0]}")

    def spans(self, key: str) -> Iterator[Fields]:
        """Yield what stands in an array of spans; what is no object is a span without a field."""
        value = self._found.get(key)
        return (Fields(item, self._say) for item in (value if isinstance(value, list | tuple) else [value]))

    def attributes(self, *keys: str) -> Attributes:
        """Return an object, or OTLP's pairs, as attributes; what holds nothing is left out."""
        key, value = self._first(keys)
        if isinstance(value, list | tuple):
            return self._pairs(key, value)
        if value is not None and not isinstance(value, Mapping):
            self.bad(key)
        return values.attributes(value)

    def _pairs(self, key: str, pairs: Sequence[Any]) -> Attributes:
        good = [pair for pair in pairs if _is_pair(values.mapping(pair))]
        if len(good) < len(pairs):
            self.bad(f"one of the {key}")
        return values.key_values(good)

    def unpacked(self, *keys: str) -> Fields:
        """Return the object with the JSON texts, or the pairs of a map, of tables as what they hold."""
        packed = {key: value for key in keys if isinstance(value := self._found.get(key), str | list | tuple)}
        if not packed:
            return self
        unpacked = {key: self._unpacked(key, value) for key, value in packed.items()}
        return Fields({**self._found, **unpacked}, self._say, self._of)

    def _unpacked(self, key: str, value: object) -> object:
        if isinstance(value, str) and value:
            try:
                value = values.from_json(value.encode(errors="replace"))
            except ValueError:
                self.bad(key)
                return None
        pairs = values.listing(value)
        if pairs and all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):  # noqa: PLR2004 - a pair
            return dict(pairs)
        return value

    def inside(self, found: Mapping[str, Any]) -> Fields:
        """Return other fields of the same object."""
        return Fields(found, self._say, self._of)

    def events(self, unit_ns: int, *time_keys: str) -> tuple[Event, ...]:
        """Return an array of objects with a name, a time and attributes as events."""
        timed = ((item, item.time(unit_ns, *time_keys)) for item in self.objects("events", of="an event"))
        return tuple(
            Event(item.text("name"), at_ns, item.attributes("attributes"))
            for item, at_ns in timed
            if at_ns is not None
        )

    def link(self) -> Link:
        """Return the object, which has the ids of what is linked, as a link."""
        trace_id, span_id = self.text("trace_id").removeprefix("tr-"), self.text("span_id")
        return Link(ids.trace_id(trace_id) or "", ids.span_id(span_id) or "", self.attributes("attributes"))

    def _first(self, keys: Sequence[str]) -> tuple[str, Any]:
        for key in keys:
            value = self._found.get(key)
            if value is not None and (type(value) not in _MAY_BE_NOTHING or not _is_absent(value)):
                return key, value
        return keys[0], None


def _is_pair(found: Mapping[str, Any]) -> bool:
    return isinstance(found.get("key"), str) and isinstance(found.get("value"), Mapping | None)


def _is_absent(value: object) -> bool:
    # By type, and not by comparing: a large array would be compared element by element.
    if type(value) is float:
        return value != value  # noqa: PLR0124 - not a number
    return value is None or (type(value) is str and not value)
