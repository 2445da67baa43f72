"""What a finished span is, for everything that comes after capture: `SpanRecord` and `Trace`.

All times are Unix time in integer nanoseconds.  Ids are lower-case hex, 32 digits for a trace and 16 for a
span.  Nothing here is ever changed after it was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

AttributeValue = (
    str | bool | int | float | bytes | Sequence["AttributeValue"] | Mapping[str, "AttributeValue"] | None
)
Attributes = Mapping[str, AttributeValue]
Kind = Literal["unspecified", "internal", "server", "client", "producer", "consumer"]
Status = Literal["unset", "ok", "error"]

NO_ATTRIBUTES: Attributes = MappingProxyType({})

# The order is OTLP's numbering of the enums.
KINDS: tuple[Kind, ...] = ("unspecified", "internal", "server", "client", "producer", "consumer")
STATUSES: tuple[Status, ...] = ("unset", "ok", "error")


class Resource(NamedTuple):
    """The process that wrote a span.  Shared by all spans of that process."""

    attributes: Attributes = NO_ATTRIBUTES
    schema_url: str = ""


class Scope(NamedTuple):
    """The instrumentation that wrote a span."""

    name: str = ""
    version: str = ""
    attributes: Attributes = NO_ATTRIBUTES
    schema_url: str = ""


class Event(NamedTuple):
    """Something that happened at one moment inside a span."""

    name: str
    time_ns: int
    attributes: Attributes = NO_ATTRIBUTES
    n_dropped_attributes: int = 0


class Link(NamedTuple):
    """A reference to a span that is not the parent."""

    trace_id: str
    span_id: str
    attributes: Attributes = NO_ATTRIBUTES
    trace_state: str = ""


class SpanRecord(NamedTuple):
    """One finished (or, with `end_ns` None, never finished) span.

    A named tuple rather than a frozen dataclass: it is made once per span on the recorder's thread and once
    per span read from a file, and costs a quarter there.
    """

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    start_ns: int
    end_ns: int | None
    attributes: Attributes = NO_ATTRIBUTES
    kind: Kind = "internal"
    status: Status = "unset"
    status_message: str = ""
    events: tuple[Event, ...] = ()
    links: tuple[Link, ...] = ()
    resource: Resource = Resource()
    scope: Scope = Scope()
    trace_state: str = ""
    flags: int = 0
    n_dropped_attributes: int = 0
    n_dropped_events: int = 0
    n_dropped_links: int = 0

    @property
    def duration_ns(self) -> int:
        """End minus start; 0 for a span that has no end."""
        return 0 if self.end_ns is None else self.end_ns - self.start_ns


class Trace:
    """All spans with one trace id, indexed by parent.  Never changed after it was made."""

    __slots__ = ("_children", "by_id", "spans", "trace_id")

    def __init__(self, trace_id: str, spans: Iterable[SpanRecord]) -> None:
        self.trace_id = trace_id
        self.spans: tuple[SpanRecord, ...] = tuple(spans)
        self.by_id: dict[str, SpanRecord] = {span.span_id: span for span in self.spans}
        self._children: dict[str | None, list[SpanRecord]] = {}
        for span in self.spans:
            parent = span.parent_id if span.parent_id in self.by_id else None
            self._children.setdefault(parent, []).append(span)

    def children_of(self, span: SpanRecord) -> Sequence[SpanRecord]:
        """Return the spans whose parent is `span`, in the order of the file."""
        return self._children.get(span.span_id, ())

    @property
    def roots(self) -> Sequence[SpanRecord]:
        """Return the spans without a parent in this trace."""
        return self._children.get(None, ())

    def __len__(self) -> int:
        return len(self.spans)

    def __repr__(self) -> str:
        return f"Trace({self.trace_id!r}, {len(self.spans)} spans)"
