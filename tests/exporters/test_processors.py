"""Finished spans for the application's own provider, also where that is a wrapper."""

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import hotspan


class Wrapper(trace.TracerProvider):
    """A provider around another one, as Logfire's is."""

    def __init__(self, provider):
        self.provider = provider

    def get_tracer(self, *args, **kwargs):
        """Return the inner one's tracer."""
        return self.provider.get_tracer(*args, **kwargs)


def test_stages_reach_the_processors_of_a_wrapped_provider():
    """Spans of both come to one exporter, as one tree and under the application's resource."""
    exporter, inner = InMemorySpanExporter(), TracerProvider(resource=Resource({"service.name": "app"}))
    inner.add_span_processor(SimpleSpanProcessor(exporter))
    provider = Wrapper(inner)
    hotspan.configure(provider=provider)
    with provider.get_tracer("app").start_as_current_span("app"):
        with hotspan.step("s"):
            pass
    assert hotspan.flush(10).ok

    app, step = sorted(exporter.get_finished_spans(), key=lambda span: span.start_time)
    assert step.parent.span_id == app.context.span_id
    assert step.resource.attributes == app.resource.attributes == {"service.name": "app"}
