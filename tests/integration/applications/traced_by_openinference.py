"""OpenInference's instrumentation of the openai client, and its decorators around the program's functions."""

import openai
from openinference.instrumentation import TracerProvider
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import BatchSpanProcessor

KINDS = {"request": "chain", "retrieval": "retriever", "rerank": "reranker", "agent": "agent", "tool": "tool"}
provider = TracerProvider()


def set_up(url):
    """Instrument, and return what decorates a function and what makes a client."""
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces")))
    OpenAIInstrumentor().instrument(tracer_provider=provider)
    tracer = provider.get_tracer("app")

    def mark(kind, name):
        def decorate(fn):
            def traced(*args, **kwargs):
                with tracer.start_as_current_span(name, openinference_span_kind=KINDS[kind]):
                    return fn(*args, **kwargs)

            return traced

        return decorate

    return mark, openai.OpenAI


def finish():
    """Wait until everything was sent."""
    provider.shutdown()
