"""OpenTelemetry's older instrumentation of the openai client, that of httpx, and bare spans around them."""

import bare_spans
import openai
from bare_spans import finish as finish  # noqa: PLC0414 - handed on
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor


def set_up(url):
    """Instrument, and return what decorates a function and what makes a client."""
    mark = bare_spans.set_up(url)
    OpenAIInstrumentor().instrument()
    HTTPXClientInstrumentor().instrument()
    return mark, openai.OpenAI
