"""A decorated function that hands out a generator or coroutine which somebody else holds too."""

import asyncio
import gc
import warnings
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenarios.seeing import saw, seen_by_loop

import hotspan
from hotspan.testing import capture

# --- Any interleaving, side by side with the bare program --------------------------------------------------

OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["hand out", "next", "drop", "close", "let go"]), st.integers(0, 3)),
    max_size=20,
)
WRAPPERS = st.sampled_from(
    [
        hotspan.step,
        hotspan.generation(model="m"),
        hotspan.propagate,
        lambda fn: hotspan.step(hotspan.propagate(hotspan.tool(fn))),
    ]
)


class Program:
    """One source that its owner may let go, and any number of references to what the function made of it."""

    def __init__(self, wrap, source):
        self.owned = [source]
        self.handed_out = []
        self.pass_on = wrap(lambda made: made)

    def change(self, operation, number):
        """Hand out, drop or let go; return what else is to be done, and to what."""
        if operation == "hand out" and self.owned:
            self.handed_out.append(self.pass_on(self.owned[0]))
        elif operation == "let go":
            self.owned.clear()
        elif number < len(self.handed_out):
            if operation != "drop":
                return operation, self.handed_out[number]
            del self.handed_out[number]
        return "", None


def run(wrap, operations):
    """Return all that the program and the source's own code saw, in order."""
    log = []

    def numbers():
        try:
            yield from range(5)
        finally:
            log.append("closed")

    program = Program(wrap, numbers())
    for operation, number in operations:
        action, made = program.change(operation, number)
        if action:
            log.append(next(made, "end"))
        if action == "close":  # of what was stepped: what was not runs no code of its own when it is closed
            log.append(made.close())
        del made
    program.handed_out.clear()
    return log, bool(program.owned) and list(program.owned.pop()), log[:]


def run_async(wrap, operations):
    """Do the same with an asynchronous source whose own code awaits at its end."""
    log = []

    async def numbers():
        try:
            for number in range(5):
                yield number
        finally:
            await asyncio.sleep(0)
            log.append("closed")

    async def main():
        program = Program(wrap, numbers())
        for operation, number in operations:
            action, made = program.change(operation, number)
            if action:
                log.append(await anext(made, "end"))
            if action == "close":
                log.append(await made.aclose())
            del made
            await settle()
        program.handed_out.clear()
        await settle()
        return bool(program.owned) and [item async for item in program.owned[0]]

    return seen_by_loop(main), log


async def settle():
    """Let the loop close what was dropped."""
    for _ in range(6):
        await asyncio.sleep(0)


@given(OPERATIONS, WRAPPERS)
def test_any_interleaving_is_as_bare(operations, wrap):
    """Whoever steps, drops or closes what, the items and the moment of the cleanup are the bare program's."""
    with capture():
        assert run(wrap, operations) == run(lambda fn: fn, operations)


@given(OPERATIONS, WRAPPERS)
def test_any_interleaving_of_asynchronous_ones_is_as_bare(operations, wrap):
    """The same of asynchronous generators, and the event loop has nothing to complain of."""
    with capture():
        assert run_async(wrap, operations) == run_async(lambda fn: fn, operations)


@given(OPERATIONS)
def test_every_stand_in_ends_its_span(operations):
    """There is one span for each that was handed out, however it went, and nothing stays behind."""
    with capture() as captured:
        run(hotspan.step, operations)
        handed_out = 0
        for operation, _ in operations:
            if operation == "let go":
                break
            handed_out += operation == "hand out"

        assert len(captured.spans) == handed_out


# --- One by one --------------------------------------------------------------------------------------------


def numbers(log=None):
    """Yield some numbers; note when it is closed, and below what."""
    try:
        yield from range(4)
    finally:
        if log is not None:
            log.append(hotspan.current().name)


@hotspan.step("given")
def given_back(made):
    """Return the argument."""
    return made


def test_a_dropped_stand_in_leaves_its_source_and_its_span_is_abandoned():
    """The rest of the items is there for whoever holds the source."""
    with capture() as captured:
        rows = numbers()
        assert (next(given_back(rows)), list(rows)) == (0, [1, 2, 3])

    (span,) = captured.spans
    assert span.attributes["hotspan.outcome"] == "abandoned"
    assert span.attributes["hotspan.stream.items"] == 1


def test_a_source_of_its_own_is_closed_below_its_stage():
    """Where only the stand-in has the source, the end of its body is a part of the stage, as ever."""
    log = []
    with capture() as captured:
        made = given_back(given_back(numbers(log)))
        next(made)
        del made

    assert log == ["step given"]
    assert [span.attributes["hotspan.outcome"] for span in captured.spans] == ["abandoned"] * 2


def test_a_source_that_is_left_dies_with_its_last_reference():
    """The stand-in that left it keeps nothing of it."""
    rows = numbers()
    gone = weakref.ref(rows)
    with capture():
        next(given_back(rows))
        assert gone() is rows
        del rows

    assert gone() is None


def test_a_dropped_cycle_leaves_its_source():
    """It is the same when the garbage collector drops the stand-in."""
    with capture():
        rows = numbers()
        cycle = [given_back(rows)]
        cycle.append(cycle)
        next(cycle[0])
        del cycle
        gc.collect()

        assert list(rows) == [1, 2, 3]


def test_a_stand_in_that_outlives_the_recording_leaves_its_source():
    """A stand-in whose span was ended from outside still does not close what is not its own."""
    rows = numbers()
    with capture():
        made = given_back(rows)
        next(made)
    hotspan.shutdown()
    del made

    assert list(rows) == [1, 2, 3]


def test_closing_goes_through():
    """`close` and `throw` are meant for the source, whoever else holds it."""
    with capture():
        rows = numbers()
        made = given_back(rows)
        next(made)
        made.close()
        other = numbers()
        with_other = given_back(other)
        next(with_other)

        assert list(rows) == []
        assert saw(lambda: with_other.throw(KeyError("k"))) == saw(lambda: numbers().throw(KeyError("k")))
        assert list(other) == []


def left_in_the_last_turn(trace):
    """Leave a shared asynchronous source to the end of the loop."""
    log = []

    async def letters():
        try:
            yield "a"
            yield "b"
        finally:
            await asyncio.sleep(0)
            log.append("closed")

    made = letters()

    async def main():
        async for letter in trace(lambda: made)():
            log.append(letter)
            break

    return seen_by_loop(main), log


def held_at_the_end(trace):
    """Hold the one stand-in of a shared asynchronous source until the loop has ended."""
    log, kept = [], []

    async def letters():
        try:
            yield "a"
        finally:
            await asyncio.sleep(0)
            log.append("closed")

    async def main():
        made = letters()
        kept.append(trace(lambda: made)())
        kept.append(made)
        log.append(await anext(kept[0]))

    return seen_by_loop(main), log


@pytest.mark.parametrize("scenario", [left_in_the_last_turn, held_at_the_end])
def test_the_loop_closes_what_is_left_at_its_end(scenario):
    """The event loop closes a shared source as it would close it without the decorator, once."""
    bare = scenario(lambda fn: fn)
    assert bare[1] == ["a", "closed"]
    for wrap in (hotspan.step, hotspan.propagate):
        with capture():
            assert scenario(wrap) == bare


# --- Coroutines --------------------------------------------------------------------------------------------


async def work():
    """Return a value."""
    await asyncio.sleep(0)
    return 3


def test_a_coroutine_that_somebody_else_holds_is_handed_out_itself():
    """It may be awaited wherever it is held, and nobody hears of one that was never awaited."""

    async def main():
        job = work()
        assert given_back(job) is job
        return await job

    with capture() as captured, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert seen_by_loop(main) == seen_by_loop(work)

    assert [span.status for span in captured.spans] == ["unset"]


def test_a_coroutine_of_its_own_is_timed():
    """Where nobody else has the coroutine, the span is around what is awaited."""

    @hotspan.step
    def start():
        return child()

    @hotspan.tool
    async def child():
        await asyncio.sleep(0)

    with capture() as captured:
        asyncio.run(start())

    inner, outer = captured.spans
    assert inner.parent_id == outer.span_id
    assert inner.end_ns <= outer.end_ns
