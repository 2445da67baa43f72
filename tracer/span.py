"""The fast span: an OpenTelemetry API span that is also the OpenTelemetry context it is current in.

    ContextVar ──► Span (a Context)          answers "current span" with itself,
                    └── .base ──► Context    every other key with the context that was there before

Making a span current is therefore one `ContextVar.set`, with no copy of the context and no token of our own.
Whoever copies the context (`set_value`, baggage, an SDK span below ours) receives a plain dict with the
same content, so spans of other libraries become children of ours and ours of theirs.

Notes on the hot path: attributes that are known at decoration are one shared dict that is copied only when
something is set; ids come from one generator without a lock; wall time is added on the recorder's thread.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import trace as otel
from opentelemetry.context import Context
from opentelemetry.trace import SpanContext, TraceFlags, TraceState

from hotspan.tracer import clock, semconv
from hotspan.tracer.attributes import PLAIN, coerce, snapshot
from hotspan.tracer.context import STAGE_KEY, ContextOverlay, attach, detach, get_context
from hotspan.tracer.outcome import message_of, outcome_of, qualified_name, stack_of
from hotspan.tracer.record import NO_ATTRIBUTES, Event, Kind, Link, Resource, Scope, SpanRecord, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opentelemetry.util.types import Attributes as OTelAttributes

MAX_EVENTS: Final = 1024
MAX_LINKS: Final = 128
MAX_ATTRIBUTES: Final = 256
SAMPLED: Final = 1

_STATUS_OF_CODE: Final[Mapping[otel.StatusCode, Status]] = {
    otel.StatusCode.UNSET: "unset",
    otel.StatusCode.OK: "ok",
    otel.StatusCode.ERROR: "error",
}

_random = random.Random()  # noqa: S311 - span ids need to differ, not to be secret
random_bits: Callable[[int], int] = _random.getrandbits
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_random.seed)


def _discard(_span: Span) -> None:
    """Take a finished span while nothing is configured."""


# Where finished spans go, and whether exception messages may be recorded: set by the recorder.
on_start: Callable[[], object] = int
on_end: Callable[[Span], None] = _discard
keep_messages = False
# Whether anything is recorded at all; set by `config`, which reads the environment at the first question.
is_active: Callable[[], bool] = bool


class Span(otel.Span, ContextOverlay):  # type: ignore[misc]  # both define update(); a Context is read-only, ours too
    """One running stage, and the OpenTelemetry context in which it is the current span.

    Attributes:
        name: Span name, as OpenTelemetry's conventions spell it.
        start_ns: Start on the process's monotonic clock (`clock.now_ns`), nanoseconds.
        end_ns: End on the same clock; 0 while the span runs.
        recording: False for a span of a request that was not sampled: it is propagated, never written.
    """

    __slots__ = (
        "_attributes", "_shared", "_token", "base", "dropped", "end_ns", "events", "flags", "kind", "links",
        "name", "owner", "parent_id", "recording", "scope", "span_id", "start_ns", "status", "status_message",
        "trace_id", "trace_state",
    )  # fmt: skip

    base: Context
    recording: bool

    # --- Life ------------------------------------------------------------------------------------------

    def end(self, end_time: int | None = None) -> None:
        """End the span, once; `end_time` is Unix time in nanoseconds."""
        if self.end_ns:
            return
        self.end_ns = clock.now_ns() if end_time is None else clock.from_wall_ns(end_time)
        if self.recording:
            on_end(self)

    def enter(self) -> object:
        """Make the span current and return what `leave` takes."""
        return attach(self)

    def leave(self, token: object) -> None:
        """Make the context from before `enter` current again."""
        detach(token)

    def fail(self, exc: BaseException) -> None:
        """Record by which exception the stage was left; the caller re-raises it."""
        outcome = outcome_of(exc)
        if outcome is None:
            if self.recording:
                self._record_error(exc)
        elif outcome:
            self.outcome(outcome)

    def outcome(self, outcome: str) -> None:
        """Set how the stage ended where neither "ok" nor an exception says it; truncated is an error."""
        self.set(semconv.OUTCOME, outcome)
        if outcome == semconv.TRUNCATED:
            self.status = "error"

    def _record_error(self, exc: BaseException) -> None:
        self.status = "error"
        kind = type(exc).__qualname__
        self.set(semconv.ERROR_TYPE, kind)
        message = message_of(exc) if keep_messages else ""
        self.status_message = f"{kind}: {message}" if message else kind
        self.record_exception(exc)

    # --- What a user of Hotspan sets ----------------------------------------------------------------------

    def set(self, key: str, value: object) -> Span:
        """Set one attribute and return the span; any value is taken, and kept as what OTLP can hold."""
        if self.end_ns or not self.recording:
            return self
        if self._shared:
            self._attributes = dict(self._attributes)
            self._shared = False
        elif len(self._attributes) >= MAX_ATTRIBUTES and key not in self._attributes:
            self.dropped += 1
            return self
        self._attributes[key] = value if type(value) in PLAIN else coerce(key, value, self._attributes)
        return self

    def set_many(self, attributes: Mapping[str, object]) -> Span:
        """Set several attributes and return the span."""
        for key, value in attributes.items():
            self.set(key, value)
        return self

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The attributes set so far; not to be changed."""
        return self._attributes

    def traceparent(self) -> str:
        """Return the W3C `traceparent` header value of this span."""
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{self.flags:02x}"

    # --- The OpenTelemetry span API -----------------------------------------------------------------------

    def get_span_context(self) -> SpanContext:
        """Return the ids by which other spans refer to this one."""
        return SpanContext(self.trace_id, self.span_id, False, TraceFlags(self.flags), self.trace_state)

    def set_attribute(self, key: str, value: Any) -> None:
        """Set one attribute."""
        self.set(key, value)

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Set several attributes."""
        self.set_many(attributes)

    def add_event(self, name: str, attributes: OTelAttributes = None, timestamp: int | None = None) -> None:
        """Add an event; `timestamp` is Unix time in nanoseconds."""
        if self.end_ns or not self.recording:
            return
        time_ns = clock.now_ns() if timestamp is None else clock.from_wall_ns(timestamp)
        if self.events is None:
            self.events = []
        self.events.append((name, time_ns, snapshot(attributes) if attributes else NO_ATTRIBUTES))

    def add_link(self, context: SpanContext, attributes: OTelAttributes = None) -> None:
        """Add a reference to a span that is not the parent."""
        if self.end_ns or not self.recording or not context.is_valid:
            return
        if self.links is None:
            self.links = []
        self.links.append((context, snapshot(attributes) if attributes else NO_ATTRIBUTES))

    def update_name(self, name: str) -> None:
        """Replace the span's name."""
        if not self.end_ns:
            self.name = name

    def is_recording(self) -> bool:
        """Return whether what is set now will be written."""
        return self.recording and not self.end_ns

    def set_status(self, status: otel.Status | otel.StatusCode, description: str | None = None) -> None:
        """Set the status; OK is final, and UNSET changes nothing, as the specification says."""
        if isinstance(status, otel.Status):
            status, description = status.status_code, status.description
        if self.end_ns or self.status == "ok" or status is otel.StatusCode.UNSET:
            return
        self.status = _STATUS_OF_CODE[status]
        self.status_message = description or "" if self.status == "error" else ""

    def record_exception(
        self,
        exception: BaseException,
        attributes: OTelAttributes = None,
        timestamp: int | None = None,
        escaped: bool = False,  # noqa: FBT001, FBT002 - OpenTelemetry's signature
    ) -> None:
        """Add an exception event; the message is content, and kept only when content is captured."""
        described: dict[str, Any] = {
            semconv.EXCEPTION_TYPE: qualified_name(exception),
            semconv.EXCEPTION_STACKTRACE: stack_of(exception),
        }
        if keep_messages:
            described[semconv.EXCEPTION_MESSAGE] = message_of(exception)
        if escaped:
            described[semconv.EXCEPTION_ESCAPED] = True
        described.update(attributes or {})
        self.add_event(semconv.EXCEPTION_EVENT, described, timestamp)

    def __exit__(self, exc_type: object, exc: BaseException | None, tb: object) -> None:
        """End the span, as OpenTelemetry's own spans do when used as a context manager."""
        if exc is not None:
            self.fail(exc)
        self.end()

    # --- Identity ------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:  # type: ignore[override]  # dict forbids hashing; a span is hashed by identity
        return id(self) >> 4

    def __deepcopy__(self, memo: object) -> Span:
        return self

    def __repr__(self) -> str:
        return f"<Span {self.name!r} {self.traceparent()}>"

    # --- What the recorder makes of it ----------------------------------------------------------------------

    def record(self, resource: Resource) -> SpanRecord:
        """Return the finished span as data; called once, on the recorder's thread."""
        events, links = self.events, self.links
        anchor = clock.anchor_ns
        return SpanRecord(
            f"{self.trace_id:032x}",
            f"{self.span_id:016x}",
            f"{self.parent_id:016x}" if self.parent_id else None,
            self.name,
            self.start_ns + anchor,
            self.end_ns + anchor,
            self._attributes,
            self.kind,
            self.status,
            self.status_message,
            tuple(Event(n, t + anchor, a) for n, t, a in events[:MAX_EVENTS]) if events else (),
            tuple(_link(c, a) for c, a in links[:MAX_LINKS]) if links else (),
            resource,
            self.scope,
            self.trace_state.to_header() if self.trace_state else "",
            self.flags,
            self.dropped,
            max(0, len(events) - MAX_EVENTS) if events else 0,
            max(0, len(links) - MAX_LINKS) if links else 0,
        )


def _link(context: SpanContext, attributes: Mapping[str, Any]) -> Link:
    return Link(
        f"{context.trace_id:032x}", f"{context.span_id:016x}", attributes, context.trace_state.to_header()
    )


# --- Starting ----------------------------------------------------------------------------------------------

_SCOPE: Final = Scope(semconv.SCOPE_NAME, "", NO_ATTRIBUTES, semconv.SCHEMA_URL)
_NO_STATE: Final = TraceState()
_new = Span.__new__

# Share of new traces that are recorded, as a bound on 64 random bits of the trace id; `config` sets it.
sample_bound = 1 << 64


def make_span(name: str, attributes: Mapping[str, Any], kind: Kind = "internal") -> Span:
    """Start a span below the current one; it is not made current.

    `attributes` are shared, not copied: plain values that the caller never changes afterwards.
    """
    context = get_context()
    span = _new(Span)
    span.base = context
    if type(context) is Span:
        parent: Any = context
    else:
        parent = otel.get_current_span(context)
    if type(parent) is Span:
        span.trace_id = parent.trace_id
        span.parent_id = parent.span_id
        span.flags = parent.flags
        span.recording = parent.recording
        span.trace_state = parent.trace_state
    else:
        _adopt_foreign_parent(span, parent.get_span_context())
    span.span_id = random_bits(64) or 1
    span.name = name
    span.kind = kind
    span._attributes = attributes  # noqa: SLF001 - a constructor outside the class: no __init__ call per span
    span._shared = True  # noqa: SLF001 - as above
    span._token = None  # noqa: SLF001 - as above
    span.owner = None
    span.events = span.links = None
    span.dropped = span.end_ns = 0
    span.status = "unset"
    span.status_message = ""
    span.scope = _SCOPE
    if span.recording:
        on_start()
    span.start_ns = clock.now_ns()
    return span


def _adopt_foreign_parent(span: Span, parent: SpanContext) -> None:
    if parent.is_valid:
        span.trace_id = parent.trace_id
        span.parent_id = parent.span_id
        span.flags = parent.trace_flags
        span.trace_state = parent.trace_state
    else:
        span.trace_id = random_bits(128) or 1
        span.parent_id = 0
        span.flags = SAMPLED if span.trace_id & (2**64 - 1) < sample_bound else 0
        span.trace_state = _NO_STATE
    span.recording = bool(span.flags & SAMPLED)


def current_span() -> Span | None:
    """Return the innermost stage span of this context, or None outside of any."""
    context = get_context()
    if type(context) is Span:
        return context
    found: Any = context.get(STAGE_KEY)
    if found is None:
        found = otel.get_current_span(context)
    return found if type(found) is Span else None


def _make_noop() -> Span:
    span = _new(Span)
    span.base = Context()
    span.trace_id = span.span_id = span.parent_id = span.flags = 0
    span.recording = False
    span.trace_state = _NO_STATE
    span.name, span.kind = "", "internal"
    span._attributes, span._shared, span._token, span.owner = {}, True, None, None  # noqa: SLF001 - as in make_span
    span.events = span.links = None
    span.dropped, span.start_ns, span.end_ns = 0, 0, 1
    span.status, span.status_message, span.scope = "unset", "", _SCOPE
    return span


# What a user gets where there is no stage to write to: every method works, nothing is kept.
NOOP_SPAN: Final = _make_noop()


def start_span(
    name: str, stage: str, attributes: Mapping[str, Any] | None = None, *, kind: Kind = "internal"
) -> Span:
    """Start a span of `stage` below the current one without making it current; for this package's clients."""
    if not is_active():
        return NOOP_SPAN
    given = {semconv.STAGE: stage, **snapshot(attributes or {})}
    if stage in semconv.OPENINFERENCE_KIND_OF_STAGE:
        given[semconv.OPENINFERENCE_KIND] = semconv.OPENINFERENCE_KIND_OF_STAGE[stage]
    return make_span(name, given, kind)
