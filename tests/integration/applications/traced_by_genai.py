"""OpenTelemetry's newer instrumentation of the openai client, and bare spans around it."""

import bare_spans
import openai
from bare_spans import finish as finish  # noqa: PLC0414 - handed on
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor


def set_up(url):
    """Instrument, and return what decorates a function and what makes a client."""
    mark = bare_spans.set_up(url)
    OpenAIInstrumentor().instrument()
    return mark, openai.OpenAI
