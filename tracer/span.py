"""The fast span: an OpenTelemetry API span that is also the OpenTelemetry context it is current in.

    ContextVar ──► Span (a Context)          answers "current span" with itself,
                    └── .base ──► Context    every other key with the context that was there before

Making a span current is therefore one `ContextVar.set`, with no copy of the context and no token of our own.
Whoever copies the context (`set_value`, baggage, an SDK span below ours) receives a plain dict with the
same content, so spans of other libraries become children of ours and ours of theirs.

Notes on the hot path: attributes that are known at decoration are one dict that all spans share, what is set
on one span is a dict of its own.  What can wait is done on the recorder's thread: the two are joined there,
bounds of values that cannot change are checked, wall time is added.  Ids come from a generator without lock.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import trace as otel
from opentelemetry.context import Context
from opentelemetry.trace import TraceState

from hotspan.tracer import clock, process, semconv
from hotspan.tracer.attributes import IMMUTABLE, MAX_ATTRIBUTES, coerce, fits, key_text, snapshot
from hotspan.tracer.context import (
    NOT_HERE,
    SPAN_KEY,
    STAGE_KEY,
    ContextOverlay,
    attach,
    get_context,
    reset,
)
from hotspan.tracer.faults import fault
from hotspan.tracer.finished import Extra
from hotspan.tracer.outcome import describe, message_of, outcome_of
from hotspan.tracer.span_api import SpanApi

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opentelemetry.trace import SpanContext
    from opentelemetry.util.types import Attributes as OTelAttributes

    from hotspan.tracer.record import Kind, Status

_FAR_FROM_FULL: Final = MAX_ATTRIBUTES // 2  # below it nothing is counted; a stage has few constants
SAMPLED: Final = 1

random_bits = process.random_bits  # looked up here at each span: a test puts its own in this place


def discard(_span: Span) -> None:
    """Take a finished span while nothing is configured."""


def uncounted() -> int:
    """Stand for `on_start` while nothing is configured."""
    return 1


# Where finished spans go, and whether exception messages may be recorded: set by the recorder.
# `on_start` returns how many were started before, and every `CHECK_EVERY`th start is followed by `on_check`.
CHECK_EVERY: Final = 512  # a power of two
on_start: Callable[[], int] = uncounted
on_check: Callable[[Span], object] = discard
on_end: Callable[[Span], None] = discard
keep_messages = False
# Whether anything is recorded at all; set by `config`, which reads the environment at the first question.
is_active: Callable[[], bool] = bool


class Span(SpanApi, ContextOverlay):
    """One running stage, and the OpenTelemetry context in which it is the current span.

    Attributes:
        name: Span name, as OpenTelemetry's conventions spell it.
        start_ns: Start on the process's monotonic clock (`clock.now_ns`), nanoseconds.
        end_ns: End on the same clock; 0 while the span runs.
        recording: False for a span of a request that was not sampled: it is propagated, never written.
        extra: Status, events, links and the like, made when the first of them comes.
        entry: The token to leave the `with` statement that made the span current; there while it is inside.
        constants: Attributes that many spans share; never changed.
        own: Attributes that were set on this span; see `finished.attributes_of`.
    """

    __slots__ = (
        "base", "constants", "end_ns", "entry", "extra", "flags", "kind", "name", "own", "parent_id",
        "recording", "span_id", "start_ns", "trace_id", "trace_state",
    )  # fmt: skip

    base: Context
    trace_id: int
    span_id: int
    parent_id: int
    name: str
    kind: Kind
    start_ns: int
    end_ns: int
    flags: int
    recording: bool
    trace_state: TraceState
    extra: Extra | None
    entry: Any
    constants: Mapping[str, Any]
    own: dict[str, Any]

    # --- Life ------------------------------------------------------------------------------------------

    def end(self, end_time: int | None = None) -> None:
        """End the span, once; `end_time` is Unix time in nanoseconds."""
        if self.end_ns:
            return
        self.end_ns = clock.now_ns() if end_time is None else clock.from_wall_ns(end_time)
        if self.recording:
            try:
                on_end(self)
            except Exception as own:  # noqa: BLE001 - the program goes on, whatever becomes of the span
                fault(own)

    def enter(self) -> object:
        """Make the span current and return what `leave` takes."""
        return attach(self)

    def leave(self, token: object) -> None:
        """Make the context from before `enter` current again."""
        try:
            reset(token)
        except NOT_HERE:
            self._leave_elsewhere()

    def close(self, token: object) -> None:
        """Leave and end the span: `leave` and `end` in one call, since every stage comes by here."""
        try:
            reset(token)
        except NOT_HERE:
            self._leave_elsewhere()
        if not self.end_ns:
            self.end_ns = clock.now_ns()
            if self.recording:
                try:
                    on_end(self)
                except Exception as own:  # noqa: BLE001 - as in `end`
                    fault(own)

    def _leave_elsewhere(self) -> None:
        # A generator whose steps run in threads of their own, say.  What it stood above becomes current.
        if get_context() is self:
            attach(self.base)

    def fail(self, exc: BaseException) -> None:
        """Record by which exception the stage was left; the caller re-raises it."""
        try:
            outcome = outcome_of(exc)
            if outcome is None:
                self._record_error(exc)
            elif outcome:
                self.outcome(outcome)
        except RecursionError:
            return  # at the end of the stack not all of it can be said; the span must end all the same
        except Exception as own:  # noqa: BLE001 - the user's exception must not be replaced by one of ours
            fault(own)

    def outcome(self, outcome: str) -> None:
        """Set how the stage ended where neither "ok" nor an exception says it; truncated is an error."""
        self.set(semconv.OUTCOME, outcome)
        if outcome == semconv.TRUNCATED:
            self._set_error("")

    def _record_error(self, exc: BaseException) -> None:
        if self.end_ns or not self.recording:
            return
        kind = type(exc).__qualname__
        self._set_error(f"{kind}: {message_of(exc)}" if keep_messages else kind)
        self.set(semconv.ERROR_TYPE, kind)
        self.record_exception(exc)

    def _set_error(self, message: str) -> None:
        if self.recording and not self.end_ns and self.status != "ok":  # "ok" is the user's last word
            more = self._more()
            more.status, more.status_message = "error", message or more.status_message

    @property
    def status(self) -> Status:
        """How the span ended, in OpenTelemetry's terms."""
        return "unset" if self.extra is None else self.extra.status

    @status.setter
    def status(self, status: Status) -> None:
        self._more().status = status

    # --- What a user of Hotspan sets ----------------------------------------------------------------------

    def set(self, key: str, value: object) -> Span:
        """Set one attribute and return the span; any value is taken, and kept as what OTLP can hold."""
        # Hot: of a value that nobody can change the size is looked at later.  The dict is made with the span,
        # so that two threads which set something first need no lock.
        own = self.own
        if type(value) in IMMUTABLE and type(key) is str and len(own) < _FAR_FROM_FULL:
            if self.recording and not self.end_ns:
                own[key] = value
        else:
            self._set_other(key, value)
        return self

    def _set_other(self, key: object, value: object) -> None:
        name = key_text(key)
        if not self.recording or self.end_ns:
            return
        if fits(name, self.own, self.constants):
            self.own[name] = coerce(name, value, self.own)
        else:
            self._more().n_dropped_attributes += 1

    def _more(self) -> Extra:
        extra = self.extra
        if extra is None:
            with process.lock:
                extra = self.extra = self.extra or Extra()
        return extra

    def set_many(self, attributes: Mapping[str, object]) -> Span:
        """Set several attributes and return the span."""
        # Hot: one look at each type, then one copy in C; keys are looked at when the attributes are joined.
        own = self.own
        if type(attributes) is dict and len(attributes) + len(own) < _FAR_FROM_FULL:
            for value in attributes.values():
                if type(value) not in IMMUTABLE:
                    break
            else:
                if self.recording and not self.end_ns:
                    own |= attributes
                return self
        for key, value in attributes.items():
            self.set(key, value)
        return self

    def set_later(self, make: Callable[[], Mapping[str, Any]]) -> None:
        """Set what `make` returns, which is called on the recorder's thread once the span has ended."""
        if self.recording and not self.end_ns:
            self._more().make_attributes = make

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The attributes set so far, to be read."""
        return MappingProxyType({**self.constants, **self.own})

    def traceparent(self) -> str:
        """Return the W3C `traceparent` header value of this span."""
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{self.flags:02x}"

    # --- The rest of OpenTelemetry's API -------------------------------------------------------------------

    def record_exception(
        self,
        exception: BaseException,
        attributes: OTelAttributes = None,
        timestamp: int | None = None,
        escaped: bool = False,  # noqa: FBT001, FBT002 - OpenTelemetry's signature
    ) -> None:
        """Add an exception event; the message is content, and kept only when content is captured."""
        escape = {semconv.EXCEPTION_ESCAPED: True} if escaped else {}
        described = describe(exception, content=keep_messages) | dict(attributes or {}) | escape
        self.add_event(semconv.EXCEPTION_EVENT, described, timestamp)

    def __exit__(self, exc_type: object, exc: BaseException | None, tb: object) -> None:
        """End the span, as OpenTelemetry's own spans do when used as a context manager."""
        if exc is not None:
            self.fail(exc)
        self.end()

    def __repr__(self) -> str:
        return f"<Span {self.name!r} {self.traceparent()}>"


class NoopSpan(Span):
    """The span where nothing is traced: every method works, nothing is kept, and it is never current."""

    __slots__ = ()

    def enter(self) -> object:
        """Leave the current context as it is: it may hold the application's own span."""
        return None

    def leave(self, token: object) -> None:
        """Do nothing, as `enter` did."""

    def close(self, token: object) -> None:
        """Do nothing, as `enter` did."""


# --- Starting ----------------------------------------------------------------------------------------------

_NO_STATE: Final = TraceState()
_CHECK_MASK: Final = CHECK_EVERY - 1

# Share of new traces that are recorded, as a bound on 64 random bits of the trace id; `config` sets it.
_EVERY_TRACE: Final = 1 << 64
sample_bound = _EVERY_TRACE


def make_span(name: str, attributes: Mapping[str, Any], kind: Kind = "internal") -> Span:
    """Start a span below the current one, not made current; `attributes` are shared and never changed."""
    # Hot: an `__init__` would be one more call per span.
    context: Any = get_context()
    span = Span()
    span.own = {}
    if type(context) is Span:
        span.trace_id = context.trace_id
        span.parent_id = context.span_id
        span.flags = context.flags
        span.recording = context.flags & SAMPLED == SAMPLED  # `recording` ends with the delivery
        span.trace_state = context.trace_state
        if context.end_ns:
            context = _skip_ended(context)
    elif context.get(SPAN_KEY) is None:
        _begin_trace(span)
    else:
        _adopt(span, otel.get_current_span(context).get_span_context(), attributes)
    span.base = context
    span.span_id = random_bits(64) or 1
    span.name = name
    span.kind = kind
    span.constants = attributes
    span.extra = None
    span.end_ns = 0
    if span.recording and not on_start() & _CHECK_MASK:
        on_check(span)
    span.start_ns = clock.now_ns()
    return span


def _begin_trace(span: Span) -> None:
    span.trace_id = trace_id = random_bits(128) or 1
    span.parent_id = 0
    # The first question is the cheaper one, and as a rule it is the answer.
    sampled = sample_bound >= _EVERY_TRACE or trace_id & 0xFFFF_FFFF_FFFF_FFFF < sample_bound
    span.recording, span.flags = sampled, SAMPLED if sampled else 0
    span.trace_state = _NO_STATE


def _skip_ended(context: Any) -> Any:
    # Spans that have ended say nothing to look-ups; skipped, a chain of tasks does not grow for ever.
    while type(context) is Span and context.end_ns:
        context = context.base
    return context


def _adopt(span: Span, parent: SpanContext | None, attributes: Mapping[str, Any]) -> None:
    if parent is None or not parent.is_valid:  # None: a span of somebody's own that does not say
        _begin_trace(span)
        return
    span.trace_id, span.parent_id = parent.trace_id, parent.span_id
    span.flags, span.trace_state = parent.trace_flags, parent.trace_state
    span.recording = bool(parent.trace_flags & SAMPLED)
    ours = current_span()  # beyond the other library's span, or the very parent (`use_span`)
    if ours is not None and ours.trace_id == span.trace_id:
        if ours.span_id != span.parent_id:
            span.own[semconv.OUTER_STAGE] = f"{ours.span_id:016x}"
    elif attributes.get(semconv.STAGE) == semconv.REQUEST:
        span.own[semconv.ENTRY] = True


def current_span() -> Span | None:
    """Return the innermost stage span of this context, or None outside of any."""
    context = get_context()
    if type(context) is Span:
        return context
    found: Any = context.get(SPAN_KEY)  # first: `use_span` makes a stage current under this key alone
    if type(found) is not Span:
        found = context.get(STAGE_KEY)
    return found if type(found) is Span else None


def _make_noop() -> Span:
    span = NoopSpan.__new__(NoopSpan)
    span.base = Context()
    span.trace_id = span.span_id = span.parent_id = span.flags = 0
    span.recording = False
    span.trace_state = _NO_STATE
    span.name, span.kind = "", "internal"
    span.constants, span.own, span.extra = {}, {}, None
    span.start_ns, span.end_ns = 0, 1
    return span


NOOP_SPAN: Final = _make_noop()  # what a user gets where there is no stage to write to


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
