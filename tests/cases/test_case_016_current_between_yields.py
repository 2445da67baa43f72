"""Between two items the consumer's code runs, under the consumer's own stage and not the stream's."""

import asyncio
import contextvars

from opentelemetry import baggage
from opentelemetry import context as otel_context

import hotspan
from hotspan.testing import FakeClock, capture


def test_the_tree_and_the_times():
    """The body's stages are the stream's, the consumer's are its own, and its time is hold, not busy."""

    @hotspan.generation
    def stream(clock, seen):
        for _ in range(3):
            with hotspan.step("inner"):
                clock.advance(ms=2)
            seen.append(baggage.get_baggage("n"))
            yield "x"

    def consume(clock, seen):
        with hotspan.request("consumer"):
            for i, _ in enumerate(stream(clock, seen)):
                with hotspan.step("own"):
                    clock.advance(ms=5)
                otel_context.attach(baggage.set_baggage("n", i))

    seen = []
    with FakeClock() as clock, capture() as captured:
        contextvars.copy_context().run(consume, clock, seen)

    assert captured.tree() == [
        ["request consumer", ["chat", ["step inner"], ["step inner"], ["step inner"]], *[["step own"]] * 3]
    ]
    assert seen == [None, 0, 1]
    attributes = captured.one("chat").attributes
    assert attributes["hotspan.stream.busy_ns"] == 6_000_000
    assert attributes["hotspan.stream.hold_ns"] == 15_000_000


def test_a_stage_of_the_body_spans_its_yields():
    """A stage that the body holds open over a `yield` is current again when the body goes on."""

    @hotspan.step("stream")
    async def stream():
        with hotspan.step("held") as held:
            yield 1
            assert hotspan.current() is held
            with hotspan.step("inside"):
                yield 2

    async def main():
        async for _ in stream():
            with hotspan.step("own"):
                await asyncio.sleep(0)

    with capture() as captured:
        asyncio.run(main())

    own = [["step own"], ["step own"]]
    assert sorted(captured.tree()) == sorted([["step stream", ["step held", ["step inside"]]], *own])


def test_a_stream_pulled_from_inside_itself():
    """A consumer in the stream's own context (a callback, say) does not send look-ups in circles."""
    seen = []

    @hotspan.step("stream")
    def stream():
        yield hotspan.propagate(next)
        seen.append(baggage.get_baggage("none"))
        yield 2

    with capture() as captured:
        made = stream()
        assert next(made)(made) == 2
        made.close()

    assert seen == [None]
    assert len(captured.spans) == 1


def test_cleanup_runs_under_the_stream():
    """Stages of the body's `finally` are the stream's, when the consumer breaks off."""

    @hotspan.step("stream")
    def stream():
        try:
            yield 1
            yield 2
        finally:
            with hotspan.step("cleanup"):
                pass

    with capture() as captured:
        with hotspan.request("consumer"):
            for _ in stream():
                break

    assert captured.tree() == [["request consumer", ["step stream", ["step cleanup"]]]]
