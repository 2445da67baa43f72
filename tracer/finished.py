"""What a span keeps beside its attributes, and the record that a finished span becomes.

Runs on the recorder's thread: wall time is added here, and ids are written as text here.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from hotspan.tracer import clock, semconv
from hotspan.tracer.attributes import (
    MAX_ATTRIBUTES,
    MAX_NAME,
    finish,
    most_important,
    snapshot,
    snapshot_part,
    text_of,
)
from hotspan.tracer.faults import fault
from hotspan.tracer.record import NO_ATTRIBUTES, Event, Link, Scope, SpanBatch, SpanRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opentelemetry.trace import SpanContext

    from hotspan.tracer.record import Resource, Status
    from hotspan.tracer.span import Span

MAX_EVENTS: Final = 1_024
MAX_LINKS: Final = 128
SCOPE: Final = Scope(semconv.SCOPE_NAME, "", NO_ATTRIBUTES, semconv.SCHEMA_URL)


class Extra:
    """What few spans have: a status, events, links, and counts of what did not fit.

    The limits cut what matters least: the first events are kept; an exception replaces the last.

    Attributes:
        events: (name, time on the process's clock, attributes, how many did not fit), at most `MAX_EVENTS`.
        links: (context, attributes), at most `MAX_LINKS`.
        make_attributes: Returns attributes that take a while to work out.
        status: How the span ended, in OpenTelemetry's terms.
        status_message: Says more of the status "error".
        n_dropped_attributes: Attributes that did not fit, those of links too.
        n_dropped_events: Events that did not fit.
        n_dropped_links: Links that did not fit.
    """

    __slots__ = (
        "events", "links", "make_attributes", "n_dropped_attributes", "n_dropped_events", "n_dropped_links",
        "status", "status_message",
    )  # fmt: skip

    def __init__(self) -> None:
        self.events: list[tuple[str, int, Mapping[str, Any], int]] = []
        self.links: list[tuple[SpanContext, Mapping[str, Any]]] = []
        self.status: Status = "unset"
        self.status_message = ""
        self.make_attributes: Callable[[], Mapping[str, Any]] | None = None
        self.n_dropped_attributes = self.n_dropped_events = self.n_dropped_links = 0

    def add_event(self, name: str, time_ns: int, attributes: Mapping[str, Any]) -> None:
        """Add an event, if it fits or is an exception."""
        if len(self.events) >= MAX_EVENTS:
            self.n_dropped_events += 1
            if name != semconv.EXCEPTION_EVENT:
                return
            self.events.pop()
        self.events.append((text_of(name, MAX_NAME), time_ns, *snapshot_part(attributes)))

    def add_link(self, context: SpanContext, attributes: Mapping[str, Any]) -> None:
        """Add a link, if it fits."""
        if len(self.links) >= MAX_LINKS:
            self.n_dropped_links += 1
            return
        kept, n_dropped = snapshot_part(attributes)
        self.links.append((context, kept))
        self.n_dropped_attributes += n_dropped


_NOTHING: Final = Extra()
_new_record = tuple.__new__


def attributes_of(span: Span) -> Mapping[str, Any]:
    """Return all attributes of a finished span."""
    make = None if span.extra is None else span.extra.make_attributes
    if not span.own and make is None:
        return span.constants
    # A copy: a thread that was setting one more when the span ended may still be at it.
    found = {**span.constants, **span.own}
    finish(found)
    if make is not None:
        found.update(_made(make))
    return found


def _made(make: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    try:
        return snapshot(make())
    except Exception as own:  # noqa: BLE001 - the span is delivered without them
        fault(own)
        return NO_ATTRIBUTES


MAX_PLAIN_ATTRIBUTES: Final = 64  # a plain span's set is remembered by its keys


def batch_of(spans: list[Span], resource: Resource) -> SpanBatch:
    """Return finished spans as what the exporters take."""
    to_record = functools.partial(record_of, resource=resource)
    items: list[Any] = [
        span
        if span.extra is None and not span.trace_state and len(span.own) <= MAX_PLAIN_ATTRIBUTES
        else to_record(span)
        for span in spans
    ]
    return SpanBatch(items, resource, SCOPE, clock.anchor_ns, to_record)


def record_of(span: Span, resource: Resource) -> SpanRecord:
    """Return the finished span as data."""
    anchor = clock.anchor_ns
    extra = span.extra or _NOTHING
    attributes = attributes_of(span)
    n_cut = len(attributes) - MAX_ATTRIBUTES
    # Hot, on the recorder's thread: ids by way of bytes, which is twice as fast as formatting them, and the
    # tuple without the class's own constructor, which is three times as fast.
    fields = (
        span.trace_id.to_bytes(16).hex(),
        span.span_id.to_bytes(8).hex(),
        span.parent_id.to_bytes(8).hex() if span.parent_id else None,
        span.name,
        span.start_ns + anchor,
        span.end_ns + anchor,
        attributes if n_cut <= 0 else most_important(attributes),
        span.kind,
        extra.status,
        text_of(extra.status_message) if extra.status == "error" else "",
        tuple(Event(n, t + anchor, a, d) for n, t, a, d in extra.events) if extra.events else (),
        tuple(_link(c, a) for c, a in extra.links) if extra.links else (),
        resource,
        SCOPE,
        span.trace_state.to_header() if span.trace_state else "",
        span.flags,
        extra.n_dropped_attributes + max(0, n_cut),
        extra.n_dropped_events,
        extra.n_dropped_links,
    )
    return _new_record(SpanRecord, fields)


def _link(context: SpanContext, attributes: Mapping[str, Any]) -> Link:
    return Link(
        f"{context.trace_id:032x}", f"{context.span_id:016x}", attributes, context.trace_state.to_header()
    )
