"""What OpenTelemetry's API asks of a span: the methods that another library may call on ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry import trace as otel
from opentelemetry.trace import SpanContext, TraceFlags

from hotspan.tracer import clock
from hotspan.tracer.attributes import MAX_NAME, text_of
from hotspan.tracer.outcome import status_of
from hotspan.tracer.record import NO_ATTRIBUTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.trace import TraceState
    from opentelemetry.util.types import Attributes as OTelAttributes

    from hotspan.tracer.finished import Extra
    from hotspan.tracer.record import Status


class SpanApi(otel.Span):
    """The part of the API that is told by what a span keeps; `Span` has the rest, and the attributes."""

    __slots__ = ()

    if TYPE_CHECKING:
        trace_id: int
        span_id: int
        flags: int
        trace_state: TraceState
        name: str
        end_ns: int
        recording: bool
        extra: Extra | None
        status: Status

        def set(self, key: str, value: object) -> Any:
            """Set one attribute."""

        def set_many(self, attributes: Mapping[str, object]) -> Any:
            """Set several attributes."""

        def _more(self) -> Extra: ...

    def get_span_context(self) -> SpanContext:
        """Return the ids by which other spans refer to this one."""
        return SpanContext(self.trace_id, self.span_id, False, TraceFlags(self.flags), self.trace_state)

    @property
    def context(self) -> SpanContext:
        """The same as `get_span_context()`, by the name that the SDK's span has for it."""
        return self.get_span_context()

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
        self._more().add_event(name, time_ns, attributes or NO_ATTRIBUTES)

    def add_link(self, context: SpanContext, attributes: OTelAttributes = None) -> None:
        """Add a reference to a span that is not the parent."""
        if self.end_ns or not self.recording or not (context.is_valid or attributes or context.trace_state):
            return
        self._more().add_link(context, attributes or NO_ATTRIBUTES)

    def update_name(self, name: str) -> None:
        """Replace the span's name."""
        if not self.end_ns:
            self.name = text_of(name, MAX_NAME)

    def is_recording(self) -> bool:
        """Return whether what is set now will be written."""
        return self.recording and not self.end_ns

    def set_status(self, status: otel.Status | otel.StatusCode, description: str | None = None) -> None:
        """Set the status; OK is final, and UNSET changes nothing, as the specification says."""
        new, description = status_of(status, description)
        if self.end_ns or self.status == "ok" or new == "unset":
            return
        more = self._more()
        more.status, more.status_message = new, description or ""
