"""Finished spans to OpenTelemetry span processors: the user's own, or those of the application's provider."""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.resources import Resource as SdkResource
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.trace import TracerProvider

from hotspan.exporters.otlp_spans import SpanConverter
from hotspan.exporters.starting import Starts
from hotspan.tracer import semconv
from hotspan.tracer.errors import ConfigurationError
from hotspan.tracer.record import Resource

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hotspan.tracer.record import SpanRecord
    from hotspan.tracer.span import Span


class ProcessorExporter:
    """Calls `on_start` of each processor at each start, and `on_end` with each finished span.

    The one on the thread that starts the stage, the other later, on a thread of ours.  A processor that
    raises does not keep the span from the others.

    Args:
        processors: OpenTelemetry span processors.
        resource: The resource of the spans at their start.

    Raises:
        ConfigurationError: One of them has no `on_end`.
    """

    def __init__(self, processors: Iterable[Any], resource: SdkResource | None = None) -> None:
        self._processors = tuple(processors)
        self._starts = [Starts(p, resource or SdkResource.get_empty()) for p in self._processors]
        for processor in self._processors:
            if not callable(getattr(processor, "on_end", None)):
                msg = f"span_processors: {processor!r} is no OpenTelemetry span processor: it has no on_end()"
                raise ConfigurationError(msg)
        self._converter = SpanConverter()

    def started(self, span: Span) -> None:
        """Tell the processors of a stage that is about to start."""
        for tell in self._starts:
            tell(span)

    def export(self, spans: Sequence[SpanRecord], /) -> None:
        """Hand the spans over.

        Raises:
            Exception: What the first processor that failed raised, with the number of spans as `n_lost`.
        """
        failure: Exception | None = None
        n_lost = 0
        for span in spans:
            raised = self._hand_over(span)
            if raised is not None:
                failure, n_lost = failure or raised, n_lost + 1
        if failure is not None:
            failure.n_lost = n_lost  # type: ignore[attr-defined]  # read by the recorder
            raise failure

    def _hand_over(self, span: SpanRecord) -> Exception | None:
        failure: Exception | None = None
        readable = self._converter.convert(span)
        for processor in self._processors:
            try:
                processor.on_end(readable)
            except Exception as exc:  # noqa: BLE001 - the other processors get the span all the same
                failure = failure or exc
        return failure

    def shutdown(self) -> None:
        """Shut the processors down."""
        for processor in self._processors:
            processor.shutdown()


class ProviderExporter(ProcessorExporter):
    """Hands spans to the processors of the application's tracer provider, under its resource.

    Args:
        provider: An OpenTelemetry SDK `TracerProvider`; it is used and never changed.

    Raises:
        ConfigurationError: The provider's processors cannot be reached.
    """

    def __init__(self, provider: Any) -> None:
        # The SDK has no public way to its processors; all of them are behind this one.
        # Logfire's provider is a wrapper, which has the SDK's as its `provider`.
        wrapped = getattr(provider, "provider", None)
        inner: Any = wrapped if isinstance(wrapped, TracerProvider) else provider
        processor = getattr(inner, "_active_span_processor", None)
        if not isinstance(processor, SpanProcessor):
            msg = (
                f"provider={reprlib.repr(provider)} has no span processors: expected an OpenTelemetry SDK "
                "provider. Set up the application's first, or give its processors as span_processors."
            )
            raise ConfigurationError(msg)
        super().__init__([processor], inner.resource)
        self._resource = Resource(dict(inner.resource.attributes), inner.resource.schema_url)

    def export(self, spans: Sequence[SpanRecord], /) -> None:
        """Hand the spans over as spans of the application; those of other processes stay theirs."""
        super().export([self._as_the_applications(span) for span in spans])

    def _as_the_applications(self, span: SpanRecord) -> SpanRecord:
        return span._replace(resource=self._resource) if span.scope.name == semconv.SCOPE_NAME else span

    def shutdown(self) -> None:
        """Do nothing: the processors are the application's."""
