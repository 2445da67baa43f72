"""The span as a context: every way to read a mapping, at any depth, and what happens when it is copied."""

import contextvars
import copy

import pytest
from opentelemetry import baggage, trace
from opentelemetry import context as otel_context
from opentelemetry.context import Context

import hotspan
from hotspan.testing import capture
from hotspan.tracer.context import SPAN_KEY, STAGE_KEY, get_context

READS = [
    pytest.param(dict, id="dict"),
    pytest.param(lambda c: {**c}, id="unpack"),
    pytest.param(lambda c: c.copy(), id="copy"),
    pytest.param(lambda c: dict(c.items()), id="items"),
    pytest.param(lambda c: dict(zip(c.keys(), c.values(), strict=True)), id="keys-values"),
    pytest.param(lambda c: {key: c[key] for key in c}, id="iterate"),
    pytest.param(lambda c: {key: c.get(key) for key in reversed(c)}, id="reversed-get"),
    pytest.param(lambda c: c | {}, id="or"),
    pytest.param(lambda c: {} | c, id="ror"),
    pytest.param(Context, id="context"),
]


@pytest.mark.parametrize("read", READS)
def test_a_stage_reads_as_the_context_it_stands_for(read):
    """Every way to read the mapping gives the outer context with the stage as the current span."""
    token = otel_context.attach(otel_context.set_value("mine", 1))
    with capture(), hotspan.request(), hotspan.step() as span:
        found = read(get_context())
        assert dict(found) == {"mine": 1, SPAN_KEY: span, STAGE_KEY: span}
    otel_context.detach(token)


def test_a_stage_answers_the_rest_of_a_mapping():
    """Length, truth, membership, missing keys and equality."""
    with capture(), hotspan.request() as outer, hotspan.step() as span:
        assert len(span) == 2
        assert bool(span)
        assert SPAN_KEY in span
        assert "missing" not in span
        assert span.get("missing", "default") == "default"
        with pytest.raises(KeyError):
            span["missing"]
        assert span == span  # noqa: PLR0124 - the operator is what is tested
        assert span != outer
        assert not span != span  # noqa: PLR0124, SIM202 - the operator is what is tested
        assert len({span, outer}) == 2
        assert copy.copy(span) is span
        assert copy.deepcopy(span) is span


def test_stages_nest_as_deep_as_programs_recurse():
    """Look-ups through hundreds of nested stages need no recursion of their own."""
    token = otel_context.attach(baggage.set_baggage("user", "u1"))

    @hotspan.step
    def down(n):
        return down(n - 1) if n else baggage.get_baggage("user")

    with capture() as captured:
        assert down(300) == "u1"
    otel_context.detach(token)

    assert len(captured.spans) == 301


def test_a_chain_of_contexts_does_not_grow():
    """A task that starts its successor inside its stage, for ever, leaves no chain of ended spans behind."""
    step = hotspan.step("link")

    def one_more():
        with step:
            return contextvars.copy_context()

    with capture():
        context = contextvars.copy_context()
        for _ in range(100):
            context = context.run(one_more)

        def depth():
            found, n = get_context(), 0
            while type(found) is not Context:
                found, n = found.base, n + 1
            return n

        assert context.run(depth) <= 2


def test_detached_out_of_order_stays_quiet(caplog):
    """A token used in another context is no error in the user's log."""
    stage = hotspan.step("x")
    with capture():
        other = contextvars.copy_context()
        other.run(stage.__enter__)
        stage.__exit__(None, None, None)
    assert caplog.records == []


def test_current_outside_is_a_span_that_keeps_nothing():
    """Outside of any stage every method of the current span works and changes nothing."""
    span = hotspan.current()
    span.set("a", 1).set_many({"b": 2})
    span.set_attribute("a", 1)
    span.add_event("e")
    span.record_exception(ValueError())
    span.update_name("n")
    span.set_status(trace.StatusCode.ERROR)
    span.end()

    assert dict(hotspan.current().attributes) == {}
    assert not hotspan.current().get_span_context().is_valid


def test_a_child_is_recorded_also_after_its_parent_was_delivered():
    """A background task may begin a stage long after the request that it belongs to has gone to the file."""
    with capture() as captured:
        with hotspan.request("ask"):
            later = hotspan.propagate(hotspan.step(lambda: hotspan.current().is_recording()))
        delivered = [span.name for span in captured.spans]
        was_recorded = later()

    assert delivered == ["request ask"]
    assert was_recorded
    assert captured.tree() == [["request ask", ["step"]]]


class _Speechless(trace.NonRecordingSpan):
    """A span of somebody's own that does not give its context away."""

    def get_span_context(self):
        return None


def test_a_foreign_span_without_a_context_is_no_parent():
    """A stage below it begins a trace of its own, and the program goes on."""
    with capture() as captured, trace.use_span(_Speechless(trace.INVALID_SPAN_CONTEXT)):
        with hotspan.stage("own"):
            pass

    assert captured.one("own").parent_id is None
