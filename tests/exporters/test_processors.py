"""Finished spans for the application's own provider, also where that is a wrapper."""

import threading

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import hotspan
from hotspan.exporters.starting import Starts


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


class Listening(SpanProcessor):
    """A processor that does something at the start: it copies baggage, and keeps what it saw."""

    def __init__(self, *, raises=None):
        self.seen, self.ended, self.raises = [], [], raises

    def on_start(self, span, parent_context=None):
        """Copy baggage into attributes, as processors of users do."""
        if self.raises is not None:
            raise self.raises
        self.seen.append((span.name, span.context.span_id, span.parent and span.parent.span_id))
        assert isinstance(span, Span)
        assert span.is_recording()
        assert threading.current_thread() is threading.main_thread()
        for key, value in baggage.get_all(parent_context).items():
            span.set_attribute(key, value)

    def on_end(self, span):
        """Keep the id."""
        self.ended.append(span.context.span_id)


def test_processors_are_told_of_each_start_and_may_set_attributes(tmp_path):
    """`on_start` comes at the start, on its thread, with ids and parent; what it sets is in the file too."""
    listening, provider, path = Listening(), TracerProvider(), tmp_path / "run.jsonl"
    provider.add_span_processor(SimpleSpanProcessor(InMemorySpanExporter()))
    hotspan.configure(file=path, provider=provider)
    provider.add_span_processor(listening)  # after `configure`
    token = context.attach(baggage.set_baggage("user.id", "u1"))
    with provider.get_tracer("app").start_as_current_span("app") as app:
        with hotspan.tool("t") as outer, hotspan.step("s") as inner:
            assert [name for name, *_ in listening.seen] == ["app", "execute_tool t", "step s"]
            assert inner.attributes["user.id"] == "u1"
    context.detach(token)
    assert hotspan.shutdown().ok
    ids = [app.get_span_context().span_id, outer.span_id, inner.span_id]

    assert [(found, parent) for _, found, parent in listening.seen] == list(
        zip(ids, [None, *ids], strict=False)
    )
    assert sorted(listening.ended) == sorted(ids)
    spans = [span for trace_ in hotspan.load(path) for span in trace_.spans]
    assert [span.attributes.get("user.id") for span in spans] == ["u1", "u1"]


def test_processors_of_ones_own_are_told_too():
    """`configure(span_processors=…)` gives both calls, for every kind of stage."""
    listening = Listening()
    hotspan.configure(span_processors=[listening])

    @hotspan.generation(model="m")
    def stream():
        yield "a"

    list(stream())
    hotspan.retrieval("wiki")(len)("x")
    assert hotspan.shutdown().ok

    assert [name for name, *_ in listening.seen] == ["chat m", "retrieval wiki"]
    assert listening.ended == [found for _, found, _ in listening.seen]


def test_what_is_not_recorded_is_not_told():
    """An unsampled request starts nothing for a processor, as with the SDK."""
    listening = Listening()
    hotspan.configure(span_processors=[listening], sample_ratio=0.0)
    with hotspan.request():
        pass
    hotspan.shutdown()

    assert (listening.seen, listening.ended) == ([], [])


def test_a_processor_that_raises_at_the_start_is_said_once(caplog):
    """The stage runs, is delivered, and the log has one line."""
    listening = Listening(raises=RuntimeError("broken"))
    hotspan.configure(span_processors=[listening])
    for _ in range(3):
        with hotspan.step("s"):
            pass
    result = hotspan.shutdown()

    assert (result.ok, result.exported, len(listening.ended)) == (True, 3, 3)
    (record,) = caplog.records
    assert "RuntimeError: broken" in record.getMessage()


@pytest.mark.parametrize("make", [SimpleSpanProcessor, BatchSpanProcessor])
def test_a_processor_that_waits_for_the_end_costs_nothing_at_the_start(make):
    """No span is made for one whose `on_start` is empty, nor for a provider that has only such."""
    provider, processor = TracerProvider(), make(InMemorySpanExporter())
    provider.add_span_processor(processor)

    for indifferent in (processor, provider._active_span_processor):  # noqa: SLF001 - as the exporter finds it
        Starts(indifferent, provider.resource)(None)  # it would be looked at
    with pytest.raises(AttributeError):
        Starts(Listening(), provider.resource)._tell(None)  # noqa: SLF001 - that it would
    provider.shutdown()


def test_each_start_is_counted_where_somebody_listens():
    """Spans started = spans delivered, from several threads, with a listener at each start."""

    class Silent(SpanProcessor):
        def on_start(self, span, parent_context=None):  # noqa: ARG002 - OpenTelemetry's signature
            span.set_attribute("seen", True)

    hotspan.configure(span_processors=[Silent()])

    def work():
        for _ in range(700):
            with hotspan.step():
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    open_span = hotspan.step("open").start()
    result = hotspan.shutdown()
    open_span.end()

    assert (result.exported, result.lost) == (2_800, 1)
