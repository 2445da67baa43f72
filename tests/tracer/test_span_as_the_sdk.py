"""The span honours OpenTelemetry's span API: the same calls on the SDK's span and on ours, compared."""

import logging

import pytest
from opentelemetry import baggage, propagate, trace
from opentelemetry import context as otel_context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
)

import hotspan
from hotspan.testing import capture

REMOTE = SpanContext(0x1234, 0x56, True, TraceFlags(1), TraceState([("k", "v")]))


class Pair:
    """An SDK tracer whose finished spans can be read."""

    def __init__(self):
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("app")


@pytest.fixture
def sdk():
    """An SDK set-up of its own; the global provider stays as it is."""
    pair = Pair()
    yield pair
    pair.provider.shutdown()


def both(sdk, calls):
    """Make the same calls on a span of the SDK and on one of ours; return both as plain data."""
    theirs = sdk.tracer.start_span("step")
    calls(theirs)
    theirs.end()
    (their,) = sdk.exporter.get_finished_spans()
    with capture(capture_content=True) as captured:
        ours = hotspan.step().start()
        calls(ours)
        ours.end()
        (our,) = captured.spans
    constant = set(hotspan.step().attributes)
    as_theirs = (
        their.name,
        dict(their.attributes or {}),
        their.status.status_code.name.lower(),
        their.status.description or "",
        [(event.name, dict(event.attributes or {})) for event in their.events],
        [(f"{link.context.span_id:016x}", dict(link.attributes or {})) for link in their.links],
    )
    as_ours = (
        our.name,
        {key: value for key, value in our.attributes.items() if key not in constant},
        our.status,
        our.status_message,
        [(event.name, dict(event.attributes)) for event in our.events],
        [(link.span_id, dict(link.attributes)) for link in our.links],
    )
    return as_theirs, as_ours


def ended(span):
    """End, and then try everything else."""
    span.end()
    span.set_attribute("late", 1)
    span.set_attributes({"late": 1})
    span.add_event("late")
    span.add_link(REMOTE)
    span.update_name("late")
    span.set_status(StatusCode.ERROR, "late")
    span.end()


CALLS = [
    pytest.param(lambda s: s.set_attribute("a", 1), id="set_attribute"),
    pytest.param(lambda s: s.set_attributes({"a": "x", "b": 1.5, "c": True, "d": -3}), id="set_attributes"),
    pytest.param(lambda s: (s.set_attribute("a", 1), s.set_attribute("a", 2)), id="set-twice"),
    pytest.param(lambda s: s.update_name("renamed"), id="update_name"),
    pytest.param(lambda s: s.set_status(StatusCode.OK), id="status-ok"),
    pytest.param(lambda s: s.set_status(StatusCode.ERROR, "why"), id="status-error"),
    pytest.param(lambda s: s.set_status(Status(StatusCode.ERROR, "why")), id="status-object"),
    pytest.param(
        lambda s: (s.set_status(StatusCode.ERROR, "why"), s.set_status(StatusCode.OK)), id="error-then-ok"
    ),
    pytest.param(
        lambda s: (s.set_status(StatusCode.OK), s.set_status(StatusCode.ERROR, "x")), id="ok-is-final"
    ),
    pytest.param(
        lambda s: (s.set_status(StatusCode.ERROR, "x"), s.set_status(StatusCode.UNSET)), id="unset-ignored"
    ),
    pytest.param(
        lambda s: (s.set_status(StatusCode.ERROR, "x"), s.set_status(StatusCode.ERROR)), id="error-again"
    ),
    pytest.param(lambda s: s.set_status("error"), id="status-of-another-type"),
    pytest.param(lambda s: s.add_event("e", {"k": 1}), id="event"),
    pytest.param(lambda s: (s.add_event("e"), s.add_event("e", None)), id="events"),
    pytest.param(lambda s: s.add_link(REMOTE, {"k": "v"}), id="link"),
    pytest.param(lambda s: s.add_link(trace.INVALID_SPAN_CONTEXT), id="link-to-nothing"),
    pytest.param(
        lambda s: s.add_link(trace.INVALID_SPAN_CONTEXT, {"k": "v"}), id="link-with-attributes-only"
    ),
    pytest.param(ended, id="nothing-after-the-end"),
]


@pytest.mark.parametrize("calls", CALLS)
def test_same_calls_same_span(sdk, calls, caplog):
    """What OpenTelemetry's specification says of a call holds for ours as for the SDK's."""
    caplog.set_level(logging.CRITICAL)

    theirs, ours = both(sdk, calls)

    assert ours == theirs


def test_record_exception_is_the_same_event(sdk):
    """An exception event has the SDK's type and message; `escaped` is told only when it is true."""

    def calls(span):
        try:
            raise ValueError("bad")  # noqa: EM101, TRY301 - a program's own error
        except ValueError as exc:
            span.record_exception(exc, {"extra": 1})

    theirs, ours = both(sdk, calls)

    (their_name, their_event), (our_name, our_event) = theirs[4][0], ours[4][0]
    assert our_name == their_name
    assert our_event["exception.type"] == their_event["exception.type"]
    assert our_event["exception.message"] == their_event["exception.message"]
    assert our_event["extra"] == their_event["extra"]
    assert "test_span_as_the_sdk.py" in our_event["exception.stacktrace"]


def test_end_time_and_event_time_are_unix_time():
    """Times that are given are taken as Unix time in nanoseconds, to the nanosecond."""
    with capture() as captured:
        span = hotspan.step().start()
        span.add_event("then", timestamp=1_700_000_000_000_000_001)
        span.end(end_time=1_800_000_000_000_000_003)
        (found,) = captured.spans

    assert found.end_ns == 1_800_000_000_000_000_003
    assert found.events[0].time_ns == 1_700_000_000_000_000_001


def test_is_recording_until_the_end():
    """A span records until it ends, one that is not sampled never does, and neither does the one outside."""
    with capture():
        span = hotspan.step().start()
        assert span.is_recording()
        span.end()
        assert not span.is_recording()
    with capture(sample_ratio=0.0), hotspan.request() as span:
        assert not span.is_recording()
        assert not span.get_span_context().trace_flags.sampled
    assert not hotspan.current().is_recording()


def test_get_current_span_is_the_stage():
    """OpenTelemetry's current span is the stage itself, and `current()` finds it too."""
    with capture(), hotspan.request() as span:
        assert trace.get_current_span() is span
        assert hotspan.current() is span
        assert span.context == span.get_span_context()
    assert trace.get_current_span() is trace.INVALID_SPAN


def test_sdk_spans_and_stages_are_one_tree(sdk):
    """An SDK span inside a stage is its child, and a stage inside an SDK span is that span's child."""
    with capture() as captured:
        with sdk.tracer.start_as_current_span("app") as root:
            with hotspan.request() as stage:
                with sdk.tracer.start_as_current_span("library") as inside:
                    assert hotspan.current() is stage
                    with hotspan.embedding() as innermost:
                        pass
    request, embedding = captured.one("request"), captured.one("embeddings")

    assert request.parent_id == f"{root.get_span_context().span_id:016x}"
    assert inside.parent.span_id == stage.span_id
    assert embedding.parent_id == f"{inside.get_span_context().span_id:016x}"
    assert len({request.trace_id, embedding.trace_id, f"{inside.get_span_context().trace_id:032x}"}) == 1
    assert innermost.parent_id == inside.get_span_context().span_id


@pytest.mark.parametrize("sampled", [True, False])
def test_the_parents_sampling_decision_is_respected(sampled):
    """Below a remote or foreign parent that is not sampled nothing is written, whatever our own ratio."""
    parent = SpanContext(1, 2, True, TraceFlags(int(sampled)))
    with capture() as captured:
        with trace.use_span(NonRecordingSpan(parent)), hotspan.request() as span:
            assert span.get_span_context().trace_flags == int(sampled)
            assert span.trace_id == 1

    assert len(captured.spans) == int(sampled)


def test_use_span_makes_our_span_current():
    """`use_span` works on ours: children below it, `current()` finds it above an outer stage."""
    with capture() as captured:
        with hotspan.request():
            span = hotspan.step("used").start()
            with trace.use_span(span, end_on_exit=True):
                assert hotspan.current() is span
                with hotspan.tool("t"):
                    pass

    assert captured.tree() == [["request", ["step used", ["execute_tool t"]]]]


def test_use_span_of_the_noop_span_hides_nothing():
    """A stage below the no-op span is a root of its own, not a child of nothing."""
    with capture() as captured:
        with trace.use_span(hotspan.current()), hotspan.request():
            pass

    (found,) = captured.spans
    assert found.parent_id is None
    assert int(found.trace_id, 16) != 0


def test_the_noop_span_is_never_current(sdk):
    """Where nothing is traced, a client's span leaves the application's own span current."""
    from hotspan.tracer.span import start_span  # noqa: PLC0415 - what clients use

    with sdk.tracer.start_as_current_span("app") as app:
        span = start_span("chat m", "generation")
        token = span.enter()
        assert trace.get_current_span() is app
        span.leave(token)
        span.set("k", 1).outcome("truncated")
        span.fail(ValueError())
        span.end()
        assert trace.get_current_span() is app
    assert span.status == "unset"
    assert dict(span.attributes) == {}


def test_inject_and_extract_carry_the_stage():
    """`inject` writes the stage's traceparent and tracestate; `extract` elsewhere makes it the parent."""
    carrier = {}
    with capture() as captured:
        with trace.use_span(NonRecordingSpan(REMOTE)), hotspan.request() as sender:
            propagate.inject(carrier)
        token = otel_context.attach(propagate.extract(carrier))
        with hotspan.step() as receiver:
            pass
        otel_context.detach(token)

    assert carrier["traceparent"] == sender.traceparent()
    assert carrier["tracestate"] == "k=v"
    assert receiver.parent_id == sender.span_id
    assert {span.trace_state for span in captured.spans} == {"k=v"}


def test_baggage_passes_through_stages():
    """Baggage from above is seen inside; baggage set inside is seen below, and gone with its own token."""
    with capture():
        outer = otel_context.attach(baggage.set_baggage("user", "u1"))
        with hotspan.request() as span:
            assert baggage.get_baggage("user") == "u1"
            inner = otel_context.attach(baggage.set_baggage("tenant", "t1"))
            assert trace.get_current_span() is span
            with hotspan.step():
                assert baggage.get_all() == {"user": "u1", "tenant": "t1"}
            otel_context.detach(inner)
            assert baggage.get_all() == {"user": "u1"}
        otel_context.detach(outer)
    assert baggage.get_all() == {}


def test_a_span_as_context_manager_ends_with_its_error():
    """`with span:` ends the span; an exception makes it an error with one event."""
    with capture() as captured:
        with pytest.raises(KeyError), hotspan.step().start():
            raise KeyError

    (found,) = captured.spans
    assert (found.status, len(found.events)) == ("error", 1)


def test_ok_set_by_the_program_is_the_last_word():
    """An error after the program has said OK is recorded as an event, and the status stays OK."""
    with capture() as captured:
        with hotspan.step() as span:
            span.set_status(StatusCode.OK)
            span.fail(KeyError())

    (found,) = captured.spans
    assert (found.status, found.status_message, len(found.events)) == ("ok", "", 1)


def test_links_of_a_link_object():
    """A link's context arrives with its trace id and state."""
    link = Link(REMOTE, {"k": 1})
    with capture() as captured:
        with hotspan.step() as span:
            span.add_link(link.context, link.attributes)

    (found,) = captured.spans[0].links
    assert (found.trace_id, found.span_id, found.trace_state) == (f"{0x1234:032x}", f"{0x56:016x}", "k=v")
