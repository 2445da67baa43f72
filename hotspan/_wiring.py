"""Which exporter serves which setting: capture does not know exporters, so its face hands them in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotspan.tracer import config, faults, metric

if TYPE_CHECKING:
    from hotspan.tracer.channel import Exporter
    from hotspan.tracer.metric import MetricSink
    from hotspan.tracer.settings import Settings


def _file(settings: Settings) -> Exporter | None:
    if settings.file is None:
        return None
    from hotspan.exporters.files import FileExporter  # noqa: PLC0415 - only who writes a file pays

    return FileExporter(settings.file, notes=faults.notes)


def _otlp(settings: Settings) -> Exporter | None:
    if settings.otlp is None:
        return None
    from hotspan.exporters.otlp import OtlpExporter  # noqa: PLC0415 - imports the OTLP exporters

    return OtlpExporter(settings.otlp, protocol=settings.protocol)


def _processors(settings: Settings) -> Exporter | None:
    if not settings.span_processors:
        return None
    from hotspan.exporters.processors import ProcessorExporter  # noqa: PLC0415 - imports the SDK

    return ProcessorExporter(settings.span_processors)


def _provider(settings: Settings) -> Exporter | None:
    if settings.provider is None:
        return None
    from hotspan.exporters.processors import ProviderExporter  # noqa: PLC0415 - imports the SDK

    return ProviderExporter(settings.provider)


def _metrics_file(settings: Settings) -> MetricSink | None:
    if settings.file is None:
        return None
    from hotspan.exporters.otlp_metrics import MetricsFile  # noqa: PLC0415 - only who samples pays

    return MetricsFile(settings.file)


config.factories.update(file=_file, otlp=_otlp, processors=_processors, provider=_provider)
metric.sink_factories.append(_metrics_file)
