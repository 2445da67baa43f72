"""Spans that are not made yet: what is of each one, and what it has in common with many others.

A file's spans differ in their ids and times, and otherwise in little.  What they share is read once: all of
the `Body`, or its `Shape`, which leaves the values.  A draft is ids, times and a body; it becomes a
`SpanRecord` when somebody asks for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from hotspan.analysis.columns import MAX
from hotspan.analysis.dialects.added import has_more
from hotspan.analysis.patterns.repeats import INPUTS
from hotspan.tracer import semconv
from hotspan.tracer.record import SpanRecord, Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from hotspan.analysis.columns import Longs
    from hotspan.tracer.record import AttributeValue

Values = Sequence[object]
# What `likeness_of` looks at: the spans of one shape have the same.
LIKENING = frozenset({semconv.STAGE, semconv.OUTCOME, semconv.ENTRY, semconv.NOT_SELECTED, *INPUTS})


class Hole(NamedTuple):
    """Where a value stands among those of a span, and what makes an attribute of what stands there."""

    place: int
    made: Callable[[Any], AttributeValue] | None  # None: it is the value
    integers: Callable[[Sequence[Any]], Longs] | None = None  # those in many such places, at once


class Shape:
    """What spans with the same attributes have in common.

    Args:
        template: The span, with any ids, times and values.
        holes: By attribute, in order: where its value is found; the others have that of the template.
    """

    __slots__ = ("holes", "likeness", "template")

    def __init__(self, template: SpanRecord, holes: Mapping[str, Hole]) -> None:
        self.template, self.holes = template, holes
        self.likeness = likeness_of(template)

    def span(self, values: Values) -> SpanRecord:
        """Return the span with these values."""
        said = dict(self.template.attributes)
        for key, (place, made, _) in self.holes.items():
            said[key] = values[place] if made is None else made(values[place])  # type: ignore[assignment]  # as it says
        return self.template._replace(attributes=said)


class Body:
    """All of a span but its ids and its times.

    Args:
        template: The span, with any ids and times, and where it has a shape with any values.
        likeness: See `likeness_of`.
        shape: Where the span has one.
        values: What is in the shape's holes.

    Attributes:
        is_entry: Requests enter the writer's program with the span, below another library's.
    """

    __slots__ = ("_span", "is_entry", "likeness", "shape", "template", "values")

    def __init__(
        self, template: SpanRecord, likeness: Likeness | None, shape: Shape | None = None, values: Values = ()
    ) -> None:
        self.template, self.likeness, self.shape, self.values = template, likeness, shape, values
        self.is_entry = likeness is not None and likeness.is_entry
        self._span: SpanRecord | None = None

    @property
    def span(self) -> SpanRecord:
        """The span, with any ids and times."""
        if self.shape is None:
            return self.template
        if self._span is None:
            self._span = self.shape.span(self.values)
        return self._span


# Trace id, span id, parent's id, start and end in ns, and the rest.  A plain tuple: there are a million.
Draft = tuple[str, str, str | None, int, int | None, Body]
START: Final = 3  # where these stand in it
END: Final = 4
BODY: Final = 5


def draft_of(span: SpanRecord) -> Draft:
    """Return a span as a draft."""
    return (*span[:3], *span[4:6], Body(span, likeness_of(span)))


def span_of(draft: Draft) -> SpanRecord:
    """Return the span of a draft."""
    trace_id, span_id, parent_id, start, end, body = draft
    said = body.span
    return SpanRecord._make((trace_id, span_id, parent_id, said.name, start, end, *said[6:]))


def spans_of(drafts: Iterable[Draft | SpanRecord]) -> list[SpanRecord]:
    """Return the spans of drafts; what is no draft is returned as it is."""
    return [draft if isinstance(draft, SpanRecord) else span_of(draft) for draft in drafts]


class DraftTrace(Trace):
    """A trace whose spans are made when they are asked for."""

    __slots__ = ("drafts", "is_mixed")

    def __init__(self, trace_id: str, drafts: Sequence[Draft | SpanRecord], *, is_mixed: bool = True) -> None:
        super().__init__(trace_id, ())
        self.drafts = drafts
        self.is_mixed = is_mixed  # there are spans among them

    @property
    def spans(self) -> tuple[SpanRecord, ...]:
        """The spans, in the order in which they were read."""
        if not self._spans:
            self._spans = tuple(spans_of(self.drafts))
        return self._spans

    def __len__(self) -> int:
        return len(self.drafts)


def drafts_of(trace: Trace) -> list[Draft]:
    """Return the spans of a trace as drafts, in a new list."""
    if isinstance(trace, DraftTrace) and not trace.is_mixed:
        return list(trace.drafts)  # type: ignore[arg-type]  # as just told
    spans = trace.drafts if isinstance(trace, DraftTrace) else trace.spans
    return [draft_of(span) if isinstance(span, SpanRecord) else span for span in spans]


class Bodies:
    """Many bodies, to be asked for one attribute of all at once."""

    def __init__(self, bodies: Sequence[Body]) -> None:
        self.n = len(bodies)
        places: dict[Shape | None, list[int]] = {}
        if len({body.shape for body in bodies}) > 1:
            for place, body in enumerate(bodies):
                places.setdefault(body.shape, []).append(place)
            self._parts = [_part(shape, found, [bodies[i] for i in found]) for shape, found in places.items()]
        else:
            self._parts = [_part(bodies[0].shape, range(self.n), bodies)] if bodies else []

    def templates(self) -> Iterator[SpanRecord]:
        """Yield a span of each kind: all others differ from one of these in values only."""
        for part in self._parts:
            yield from (
                (part.shape.template,)
                if part.shape
                else {id(body): body.template for body in part.bodies}.values()
            )

    def have(self, key: str) -> bool:
        """Return whether any has the attribute."""
        return any(part.has(key) for part in self._parts)

    def column(self, key: str) -> Sequence[AttributeValue]:
        """Return the attribute of each; `None` for one that has none of the kind."""
        if len(self._parts) == 1:
            return self._parts[0].column(key)
        found: list[AttributeValue] = [None] * self.n
        for part in self._parts:
            if part.has(key):
                for place, value in zip(part.places, part.column(key), strict=True):
                    found[place] = value
        return found

    def integers(self, key: str) -> Longs | None:
        """Return the attribute of each, if it is known without a look at each that all are integers."""
        found = np.empty(self.n, dtype=np.int64)
        for part in self._parts:
            values = part.integers(key)
            if values is None:
                return None
            found[part.places] = values
        return found

    def arrays(self, key: str, is_wanted: Sequence[bool]) -> Iterator[AttributeValue | Longs]:
        """Yield the attribute of some, in any order; those that hold integers may come as one array."""
        for part in self._parts:
            if part.has(key):
                yield from part.arrays(key, [is_wanted[place] for place in part.places])

    def rows(self, keys: Sequence[str]) -> Sequence[Mapping[str, AttributeValue]]:
        """Return those attributes of each that it has."""
        found: list[Mapping[str, AttributeValue]] = [{}] * self.n
        for part in self._parts:
            for place, row in zip(part.places, part.rows(keys), strict=True):
                found[place] = row
        return found


class _Part(NamedTuple):
    """Bodies of one shape, or of none."""

    shape: Shape | None
    places: Sequence[int]
    bodies: Sequence[Body]
    values: Sequence[Values]  # of the shape's holes, a column each

    def has(self, key: str) -> bool:
        if self.shape is not None:
            return key in self.shape.template.attributes
        return any(key in body.template.attributes for body in set(self.bodies))

    def column(self, key: str) -> Sequence[AttributeValue]:
        if self.shape is None:
            return [body.template.attributes.get(key) for body in self.bodies]
        hole = self.shape.holes.get(key)
        if hole is None:
            return [self.shape.template.attributes.get(key)] * len(self.bodies)
        found: Any = self.values[hole.place]
        return found if hole.made is None else list(map(hole.made, found))

    def integers(self, key: str) -> Longs | int | None:
        if self.shape is None:
            return None
        hole = self.shape.holes.get(key)
        if hole is None:
            value = self.shape.template.attributes.get(key)
            return value if type(value) is int and abs(value) <= MAX else None
        return hole.integers(self.values[hole.place]) if hole.integers and hole.made is int else None

    def arrays(self, key: str, is_wanted: Sequence[bool]) -> Iterable[AttributeValue | Longs]:
        hole = self.shape.holes.get(key) if self.shape else None
        if hole is None or hole.integers is None or hole.made is int:
            return itertools.compress(self.column(key), is_wanted)
        return (hole.integers(list(itertools.compress(self.values[hole.place], is_wanted))),)

    def rows(self, keys: Sequence[str]) -> Iterable[Mapping[str, AttributeValue]]:
        if self.shape is None:
            said = [body.template.attributes for body in self.bodies]
            return [{key: row[key] for key in keys if key in row} for row in said]
        had = [key for key in keys if self.has(key)]
        if not had:
            return [{}] * len(self.bodies)
        columns = [self.column(key) for key in had]
        return [dict(zip(had, values, strict=True)) for values in zip(*columns, strict=True)]


def _part(shape: Shape | None, places: Sequence[int], bodies: Sequence[Body]) -> _Part:
    values = list(zip(*[body.values for body in bodies], strict=True)) if shape else []
    return _Part(shape, places, bodies, values)


class Likeness:
    """What the spans at one place of a form have in common.

    There is one of each kind, so that it is compared and hashed as what it is: in no time.

    Attributes:
        is_entry: Requests enter the writer's program with such a span, below another library's.
    """

    __slots__ = ("is_entry",)

    def __init__(self, *, is_entry: bool) -> None:
        self.is_entry = is_entry


_likenesses: dict[tuple[object, ...], Likeness] = {}
_MAX_LIKENESSES: Final = 4_096  # that are remembered; one that is forgotten is none of another's kind


def likeness_of(span: SpanRecord) -> Likeness | None:
    """Return what a span has in common with others; `None` where no trace with it has a form.

    That its resource is the same is told by its id: whoever keeps the one has to keep the other.
    """
    attributes = span.attributes
    stage = attributes.get(semconv.STAGE)
    if not stage or type(stage) is not str:
        return None
    if semconv.NOT_SELECTED in attributes or not INPUTS.isdisjoint(attributes) or has_more(span):
        return None
    outcome, is_entry = attributes.get(semconv.OUTCOME), attributes.get(semconv.ENTRY) is True
    key = is_entry, stage, span.name, span.status, outcome, id(span.resource), span.scope.name
    try:
        found = _likenesses.get(key)
    except TypeError:  # an outcome that is a list, or the like
        return None
    if found is None:
        if len(_likenesses) >= _MAX_LIKENESSES:
            _likenesses.clear()
        found = _likenesses[key] = Likeness(is_entry=is_entry)
    return found
