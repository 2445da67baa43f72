"""Case 073: what `ConsoleSpanExporter` printed, fed to a reader of traces."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

from hotspan.analysis import load


def _one_line(span):
    return span.to_json(indent=None) + "\n"


@pytest.mark.parametrize(
    "options", [{}, {"formatter": _one_line}], ids=["over-many-lines", "one-line-a-span"]
)
def test_what_the_real_exporter_printed_is_read(tmp_path, options):
    """Ids with 0x, ISO times, concatenated objects: the spans, as the SDK had them, to the microsecond."""
    with (tmp_path / "console.txt").open("w") as out:
        provider = TracerProvider(resource=Resource({"service.name": "handbook"}))
        provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=out, **options)))
        tracer = provider.get_tracer("test")
        with tracer.start_as_current_span("answer") as root:
            links = [Link(root.get_span_context(), {"why": "retry"})]
            child = tracer.start_span(
                "chat", kind=SpanKind.CLIENT, links=links, attributes={"texts": ["a", "b"]}
            )
            child.add_event("first_token", {"n": 1}, timestamp=1_790_000_000_123_456_000)
            child.set_status(Status(StatusCode.ERROR, "no answer"))
            child.end()
        provider.shutdown()

    (trace,) = load(tmp_path / "console.txt")

    by_name = {span.name: span for span in trace.spans}
    chat, answer = by_name["chat"], by_name["answer"]
    assert chat.parent_id == answer.span_id == f"{root.get_span_context().span_id:016x}"
    assert trace.trace_id == f"{root.get_span_context().trace_id:032x}"
    assert (chat.kind, chat.status, chat.status_message) == ("client", "error", "no answer")
    assert abs(chat.start_ns - child.start_time) < 1_000  # the exporter rounds to a microsecond
    assert abs(chat.end_ns - child.end_time) < 1_000
    assert chat.attributes == {"texts": ("a", "b")}
    assert chat.events[0] == ("first_token", 1_790_000_000_123_456_000, {"n": 1}, 0)
    assert chat.links[0][:3] == (trace.trace_id, answer.span_id, {"why": "retry"})
    assert answer.resource.attributes["service.name"] == "handbook"
