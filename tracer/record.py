"""What a finished span is, for everything that comes after capture: `SpanRecord` and `Trace`.

All times are Unix time in integer nanoseconds.  Ids are lower-case hex, 32 digits for a trace and 16 for a
span.  Nothing here is ever changed after it was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, final, overload

if TYPE_CHECKING:
    from collections.abc import Callable

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


@final
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


class PlainSpan(Protocol):
    """A finished span as capture keeps it, where it has nothing but attributes: no event, link or status.

    Attributes:
        trace_id: 128 bits.
        span_id: 64 bits.
        parent_id: 64 bits; 0 for a root.
        name: Span name.
        kind: One of `KINDS`.
        flags: W3C trace flags.
        start_ns: Start on the process's clock, nanoseconds; `SpanBatch.anchor_ns` more is Unix time.
        end_ns: End on the same clock.
        constants: Attributes that many spans share, as one object.
        own: Attributes of this span, which win.  Text and integers may still be out of bounds, keys no text.
    """

    trace_id: int
    span_id: int
    parent_id: int
    name: str
    kind: Kind
    flags: int
    start_ns: int
    end_ns: int
    constants: Attributes
    own: Mapping[str, Any]


class SpanBatch(Sequence[SpanRecord]):
    """Finished spans on their way to the exporters: a sequence of records, made when one asks for them.

    Most spans are plain, and an exporter that writes text or bytes can do so without a record in between,
    which is half of the work: see `items`.

    Args:
        items: The spans: records, and plain spans.
        resource: The process of the plain spans.
        scope: The instrumentation of the plain spans.
        anchor_ns: Unix time of zero on the process's clock.
        to_record: Makes a record of a plain span.
    """

    __slots__ = ("_records", "anchor_ns", "items", "resource", "scope", "to_record")

    def __init__(
        self,
        items: list[SpanRecord | PlainSpan],
        resource: Resource,
        scope: Scope,
        anchor_ns: int,
        to_record: Callable[[Any], SpanRecord],
    ) -> None:
        self.items, self.resource, self.scope = items, resource, scope
        self.anchor_ns, self.to_record = anchor_ns, to_record
        self._records: list[SpanRecord] | None = None

    @property
    def records(self) -> list[SpanRecord]:
        """All of the spans as records."""
        if self._records is None:
            self._records = [s if type(s) is SpanRecord else self.to_record(s) for s in self.items]
        return self._records

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[SpanRecord]:
        return iter(self.records)

    @overload
    def __getitem__(self, index: int) -> SpanRecord: ...
    @overload
    def __getitem__(self, index: slice) -> list[SpanRecord]: ...
    def __getitem__(self, index: int | slice) -> SpanRecord | list[SpanRecord]:
        return self.records[index]


class Trace:
    """All spans with one trace id, indexed by parent.  Never changed after it was made."""

    __slots__ = ("_by_id", "_children", "_spans", "trace_id")

    def __init__(self, trace_id: str, spans: Iterable[SpanRecord]) -> None:
        self.trace_id = trace_id
        self._spans: tuple[SpanRecord, ...] = tuple(spans)
        # Made at the first question: a large file's traces are mostly asked none.
        self._by_id: dict[str, SpanRecord] | None = None
        self._children: dict[str | None, list[SpanRecord]] = {}

    @property
    def spans(self) -> tuple[SpanRecord, ...]:
        """The spans, in the order in which they were read."""
        return self._spans

    @property
    def by_id(self) -> dict[str, SpanRecord]:
        """The spans by their id; of several with one id the last one."""
        if self._by_id is None:
            self._by_id = {span.span_id: span for span in self.spans}
        return self._by_id

    def _of_parent(self, parent_id: str | None) -> Sequence[SpanRecord]:
        if not self._children:
            by_id = self.by_id
            for span in self.spans:
                parent = span.parent_id if span.parent_id in by_id else None
                self._children.setdefault(parent, []).append(span)
        return self._children.get(parent_id, ())

    def children_of(self, span: SpanRecord) -> Sequence[SpanRecord]:
        """Return the spans whose parent is `span`, in the order of the file."""
        return self._of_parent(span.span_id)

    @property
    def roots(self) -> Sequence[SpanRecord]:
        """Return the spans without a parent in this trace."""
        return self._of_parent(None)

    def __len__(self) -> int:
        return len(self.spans)

    def __repr__(self) -> str:
        return f"Trace({self.trace_id!r}, {len(self.spans)} spans)"
