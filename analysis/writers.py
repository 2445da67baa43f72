"""What the spans' resources say about the processes that wrote them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hotspan.analysis.columns import MAX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotspan.tracer.record import Resource, SpanRecord


@dataclass(slots=True)
class Writers:
    """What the spans' resources say about the processes that wrote them."""

    n_spans_of: Counter[int] = field(default_factory=Counter)  # id of a resource -> its spans
    resources: dict[int, Resource] = field(default_factory=dict)  # keeps them alive: their ids are keys

    def add(self, span: SpanRecord, n_spans: int = 1) -> None:
        """Count spans for the writer of one of them."""
        key = id(span.resource)
        self.n_spans_of[key] += n_spans
        self.resources.setdefault(key, span.resource)

    def values(self, key: str) -> list[object]:
        """Return the distinct values of one resource attribute, in the order of first appearance."""
        found = (resource.attributes.get(key) for resource in self.resources.values())
        return list(dict.fromkeys(value for value in found if isinstance(value, str | int | float)))

    def weighted(self, key: str) -> Iterator[tuple[float, int]]:
        """Yield a resource attribute of each writer that is a finite number, and how many spans it wrote."""
        for identity, resource in self.resources.items():
            value = resource.attributes.get(key)
            if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX:
                yield value, self.n_spans_of[identity]
