"""Span records as the spans that OpenTelemetry's OTLP exporters take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.sdk.resources import Resource as SdkResource
from opentelemetry.sdk.trace import Event as SdkEvent
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link as SdkLink
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from hotspan.exporters.otlp_json import MAX_DEPTH, clean_text, in_int64

if TYPE_CHECKING:
    from hotspan.tracer.record import Attributes, Event, Link, Resource, Scope, SpanRecord

_IS_REMOTE: Final = 0x200  # OTLP's SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK
_MAX_CACHED: Final = 256
_MAX_UINT32: Final = (1 << 32) - 1
# OpenTelemetry's API has no "unspecified" kind; "internal" is its default.
_KINDS: Final = {kind.name.lower(): kind for kind in SpanKind} | {"unspecified": SpanKind.INTERNAL}
_NO_STATE: Final = TraceState()


class _Resource(SdkResource):
    """A resource as it was recorded, found again by identity.

    The SDK's own compares by its attributes as JSON, once for every span, and drops what it does not expect
    in them; another process's resource must arrive as that process wrote it.
    """

    def __init__(self, resource: Resource) -> None:
        super().__init__({}, clean_text(resource.schema_url))
        self._recorded = clean_attributes(resource.attributes)

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes as recorded."""
        return self._recorded

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


class _Event(SdkEvent):
    """An event that knows how many attributes it lost."""

    def __init__(self, event: Event) -> None:
        super().__init__(clean_text(event.name), clean_attributes(event.attributes), event.time_ns)
        self._n_dropped = _count(event.n_dropped_attributes)

    @property
    def dropped_attributes(self) -> int:
        """The number of attributes that were dropped at the source."""
        return self._n_dropped


class _Span(ReadableSpan):
    """A finished span that knows how much of it was dropped at the source."""

    record: SpanRecord

    @property
    def dropped_attributes(self) -> int:
        """The number of attributes that were dropped at the source."""
        return _count(self.record.n_dropped_attributes)

    @property
    def dropped_events(self) -> int:
        """The number of events that were dropped at the source."""
        return _count(self.record.n_dropped_events)

    @property
    def dropped_links(self) -> int:
        """The number of links that were dropped at the source."""
        return _count(self.record.n_dropped_links)


class SpanConverter:
    """Converts records; the resources and scopes that it has seen are made once."""

    def __init__(self) -> None:
        # By identity: all spans of a process share one object.  Each entry holds it, so its id stays its own.
        self._resources: dict[int, tuple[Resource, _Resource]] = {}
        self._scopes: dict[int, tuple[Scope, InstrumentationScope]] = {}

    def convert(self, record: SpanRecord) -> ReadableSpan:
        """Return the record as an SDK span; an unfinished one has no end time."""
        is_remote = bool(record.flags & _IS_REMOTE)
        span = _Span(
            name=clean_text(record.name),
            context=_context(record.trace_id, record.span_id, record.trace_state),
            parent=_context(record.trace_id, record.parent_id, is_remote=is_remote)
            if record.parent_id
            else None,
            resource=self._resource(record.resource),
            attributes=clean_attributes(record.attributes),
            events=[_Event(event) for event in record.events],
            links=[_link(link) for link in record.links],
            kind=_KINDS[record.kind],
            status=Status(
                StatusCode[record.status.upper()],
                clean_text(record.status_message) if record.status == "error" else None,
            ),
            start_time=record.start_ns,
            end_time=record.end_ns,
            instrumentation_scope=self._scope(record.scope),
        )
        span.record = record
        return span

    def _resource(self, resource: Resource) -> _Resource:
        found = self._resources.get(id(resource))
        if found is None:
            if len(self._resources) >= _MAX_CACHED:
                self._resources.clear()
            found = self._resources[id(resource)] = (resource, _Resource(resource))
        return found[1]

    def _scope(self, scope: Scope) -> InstrumentationScope:
        found = self._scopes.get(id(scope))
        if found is None:
            if len(self._scopes) >= _MAX_CACHED:
                self._scopes.clear()
            made = InstrumentationScope(
                clean_text(scope.name),
                clean_text(scope.version),
                clean_text(scope.schema_url),
                clean_attributes(scope.attributes),
            )
            found = self._scopes[id(scope)] = (scope, made)
        return found[1]


def size_of(record: SpanRecord) -> int:
    """Return about how many bytes the record takes as protobuf, rather too many than too few."""
    events = sum(64 + len(event.name) + _size(event.attributes) for event in record.events)
    links = sum(96 + _size(link.attributes) for link in record.links)
    return (
        160
        + 4 * len(record.name)
        + 4 * len(record.status_message)
        + _size(record.attributes)
        + events
        + links
    )


def _size(value: object) -> int:
    if isinstance(value, str):
        return 8 + (len(value) if value.isascii() else len(value.encode("utf-8", "replace")))
    if isinstance(value, bytes):
        return 8 + len(value)
    if isinstance(value, Mapping):
        return sum(16 + _size(key) + _size(item) for key, item in value.items())
    if isinstance(value, Sequence):
        return sum(4 + _size(item) for item in value)
    return 16


def clean_attributes(attributes: Attributes) -> dict[str, Any]:
    """Return the attributes as protobuf can hold them."""
    return {clean_text(key): _clean(value) for key, value in attributes.items()}


def _clean(value: object, depth: int = 0) -> object:
    """Return a value that protobuf takes: text without lone surrogates, larger integers as their digits."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, int):
        return value if in_int64(value) else str(value)
    if value is None or isinstance(value, (float, bytes)):
        return value
    return _clean_nested(value, depth + 1) if depth < MAX_DEPTH else "…"


def _clean_nested(value: object, depth: int) -> object:
    if isinstance(value, Mapping):
        return {clean_text(str(key)): _clean(item, depth) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [_clean(item, depth) for item in value]
    return f"<{type(value).__qualname__}>"


def _context(trace_id: str, span_id: str, trace_state: str = "", *, is_remote: bool = False) -> SpanContext:
    state = TraceState.from_header([trace_state]) if trace_state else _NO_STATE
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote, TraceFlags(TraceFlags.SAMPLED), state)


def _link(link: Link) -> SdkLink:
    return SdkLink(_context(link.trace_id, link.span_id, link.trace_state), clean_attributes(link.attributes))


def _count(number: int) -> int:
    return min(max(number, 0), _MAX_UINT32)
