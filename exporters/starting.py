"""The start of a stage, told to OpenTelemetry span processors on the thread that starts it.

Some do their work there: those that copy baggage into attributes, Langfuse, which notes what it will export,
Logfire, which shows what is running.  One that only waits for the end is not asked, and costs nothing; for
the others a stage costs what a span of the SDK's costs.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.sdk import trace as sdk
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags, get_current_span

from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.sdk.resources import Resource

    from hotspan.tracer.span import Span

_log = logging.getLogger("hotspan")

_SCOPE: Final = InstrumentationScope(semconv.SCOPE_NAME, "", semconv.SCHEMA_URL)
_INDIFFERENT: Final = {
    kind.on_start for kind in (sdk.SpanProcessor, SimpleSpanProcessor, BatchSpanProcessor)
}  # what these do at the start is nothing
_PLAIN: Final = (str, bool, int, float)


class _Started(sdk.Span):
    """A stage as processors see it at its start; `on_end` comes with the finished one."""


class Starts:
    """Calls `on_start` of a processor for each stage, and gives the stage the attributes that it sets.

    Args:
        processor: An OpenTelemetry span processor, or the one behind which a provider has all of its own.
        resource: The resource of the spans.
    """

    def __init__(self, processor: Any, resource: Resource) -> None:
        self._processor, self._resource = processor, resource
        self._warned = False

    def __call__(self, span: Span) -> None:
        """Tell of a stage that is about to start; what the processor raises is said once."""
        if not _listens(self._processor):
            return
        try:
            self._tell(span)
        except Exception as exc:  # noqa: BLE001 - a processor must not keep the stage from running
            if not self._warned:
                self._warned = True
                _log.warning(
                    "hotspan: a span processor's on_start: %s: %s (said once)", type(exc).__name__, exc
                )

    def _tell(self, span: Span) -> None:
        given = {key: value for key, value in span.constants.items() if isinstance(value, _PLAIN)}
        started = _Started(
            span.name,
            span.get_span_context(),
            _parent_of(span),
            resource=self._resource,
            attributes=given,
            kind=SpanKind[span.kind.upper()],
            span_processor=self._processor,
            instrumentation_scope=_SCOPE,
        )
        started.start(parent_context=span.base)
        for key, value in (started.attributes or {}).items():
            if key not in given or given[key] != value:
                span.set(key, value)
        if started.name != span.name:
            span.update_name(started.name)


def _listens(processor: Any) -> bool:
    """Return whether a processor, or one of those behind it, does anything at the start."""
    behind = getattr(processor, "_span_processors", None)  # of the SDK's multiplexers; grows while we look
    if isinstance(behind, tuple):
        return any(map(_listens, behind))
    on_start: Callable[..., Any] | None = getattr(type(processor), "on_start", None)
    return on_start is not None and on_start not in _INDIFFERENT


def _parent_of(span: Span) -> SpanContext | None:
    if not span.parent_id:
        return None
    around = get_current_span(span.base).get_span_context()
    if around.span_id == span.parent_id:
        return around
    return SpanContext(span.trace_id, span.parent_id, False, TraceFlags(span.flags), span.trace_state)
