"""The OpenTelemetry SDK's own batch processor and exporters, for the contenders that are built on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contenders.harness.target import Target
    from opentelemetry.sdk.trace import ReadableSpan

FLUSH_MS = 120_000


class DropExporter(SpanExporter):
    """Takes spans and forgets them: the cheapest exporter that there is."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002 - the SDK's signature
        """Say that all is well."""
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Do nothing."""


class KeepExporter(SpanExporter):
    """Keeps spans until `accounts` reads them."""

    kept: ClassVar[list[ReadableSpan]] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Keep them."""
        self.kept.extend(spans)
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Do nothing."""


def accounts(read: Callable[[ReadableSpan], tuple[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Return what `read` makes of each span that was kept, and forget them.

    Args:
        read: Span -> the model that was asked for, and figure -> ns.
    """
    spans, KeepExporter.kept[:] = list(KeepExporter.kept), []
    return dict(map(read, spans))


def exporter(target: Target) -> SpanExporter:
    """Return the SDK's exporter for this target, with its defaults."""
    if target.kind == "drop":
        return DropExporter()
    if target.kind == "keep":
        return KeepExporter()
    if target.kind == "file":
        from opentelemetry.exporter.otlp.json.file import FileSpanExporter  # noqa: PLC0415 - few have it

        return FileSpanExporter(target.path)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 - not all have it
        OTLPSpanExporter,
    )

    return OTLPSpanExporter(f"{target.url}/v1/traces")


def processor(target: Target) -> BatchSpanProcessor:
    """Return a batch processor with its defaults; where spans are to be held, its queue holds all."""
    if target.kind == "hang":
        return BatchSpanProcessor(exporter(target), max_queue_size=target.n_spans + 1_000)
    return BatchSpanProcessor(exporter(target))
