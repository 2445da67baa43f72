"""Logfire, which sends nothing home: its spans are printed, and kept by a processor of the application's."""

import logfire
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter = InMemorySpanExporter()


def set_up(folder, _url):
    """Configure Logfire, and return what decorates a function with a span."""
    printed = (folder / "console.txt").open("w")
    logfire.configure(
        send_to_logfire=False,
        console=logfire.ConsoleOptions(output=printed, colors="never", include_timestamps=False),
        metrics=False,
        service_name="app",
        service_version="1",
        additional_span_processors=[SimpleSpanProcessor(exporter)],
    )
    return logfire.instrument


def finish():
    """Return what was delivered."""
    logfire.shutdown()
    return exporter.get_finished_spans()
