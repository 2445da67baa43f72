"""`propagate`: the stage goes along into whatever thread or task calls, awaits or iterates."""

import asyncio
import functools
import gc
import inspect
import itertools
import threading

import pytest
from opentelemetry import baggage
from opentelemetry import context as otel_context

import hotspan
from hotspan.testing import capture


def in_thread(action):
    """Run `action` in a thread of its own, and return what it returns."""
    found = []
    thread = threading.Thread(target=lambda: found.append(action()))
    thread.start()
    thread.join()
    return found[0]


def items(n=3):
    """Open a stage for each item."""
    for i in range(n):
        with hotspan.tool("inner"):
            pass
        yield i
    return "done"


async def items_async(n=3):
    """Open a stage for each item, between two of which other tasks run."""
    for i in range(n):
        with hotspan.tool("inner"):
            await asyncio.sleep(0)
        yield i


def pull(made):
    """Iterate with a stage of the consumer's own for each item."""
    found = []
    for item in made:
        with hotspan.step("consumer"):
            found.append(item)
    return found


async def pull_async(made):
    """Iterate with a stage of the consumer's own for each item."""
    found = []
    async for item in made:
        with hotspan.step("consumer"):
            found.append(item)
    return found


class Holder:
    """Has a generator as a method."""

    def items(self):
        """Yield what `items` yields."""
        yield from items()


@pytest.mark.parametrize(
    ("fn", "run"),
    [
        pytest.param(items, lambda f: in_thread(lambda: pull(f())), id="generator"),
        pytest.param(Holder().items, lambda f: in_thread(lambda: pull(f())), id="method"),
        pytest.param(functools.partial(items, 3), lambda f: in_thread(lambda: pull(f())), id="partial"),
        pytest.param(lambda: items(), lambda f: in_thread(lambda: pull(f())), id="returns-one"),  # noqa: PLW0108 - such
        pytest.param(items_async, lambda f: in_thread(lambda: asyncio.run(pull_async(f()))), id="async"),
    ],
)
def test_the_body_of_a_stream_is_below_the_stage_and_its_consumer_is_not(fn, run):
    """A generator that another thread iterates opens its stages below the stage that wrapped it."""
    with capture() as captured:
        with hotspan.request("r"):
            wrapped = hotspan.propagate(fn)
        assert run(wrapped) == [0, 1, 2]

    inner = ["execute_tool inner"]
    assert captured.tree() == [["request r", inner, inner, inner], *[["step consumer"]] * 3]


def test_made_in_one_thread_and_pulled_in_another():
    """What counts is where the callable was wrapped, not which thread made or pulled the generator."""
    with capture() as captured:
        with hotspan.request("r"):
            wrapped = hotspan.propagate(items)
        made = in_thread(wrapped)
        assert [next(made), in_thread(lambda: next(made)), next(made)] == [0, 1, 2]
        assert list(made) == []

    assert captured.tree() == [["request r", *[["execute_tool inner"]] * 3]]


def test_a_stage_that_stays_open_across_items_keeps_its_children():
    """The body finds at each step the context that it left at its last yield."""

    def body():
        with hotspan.step("open"):
            for _ in range(2):
                with hotspan.tool("inner"):
                    pass
                yield

    with capture() as captured:
        with hotspan.request("r"):
            wrapped = hotspan.propagate(body)
        in_thread(lambda: pull(wrapped()))

    inner = ["execute_tool inner"]
    assert captured.tree()[0] == ["request r", ["step open", inner, inner]]


def test_a_traced_generator_keeps_its_parent():
    """A traced generator function that is propagated is one span below the stage that wrapped it."""
    with capture() as captured:
        with hotspan.request("r"):
            wrapped = hotspan.propagate(hotspan.retrieval("wiki")(items))
        in_thread(lambda: pull(wrapped()))

    assert captured.tree()[0] == ["request r", ["retrieval wiki", *[["execute_tool inner"]] * 3]]


def conversation():
    """Answer what is sent, survive what is thrown in, and say how it was left."""
    said = []
    try:
        while True:
            try:
                said.append((yield len(said)))
            except KeyError as error:
                said.append(error.args[0])
            if said[-1] == "end":
                return said
    finally:
        said.append("left")


async def conversation_async():
    """Answer what is sent, and survive what is thrown in."""
    said = []
    while True:
        try:
            said.append((yield len(said)))
        except KeyError as error:
            said.append(error.args[0])
        if said[-1] == "end":
            return


def talk(made):
    """Use every way in, and return what came out."""
    out = [next(made), made.send("a"), made.throw(KeyError("b"))]
    with pytest.raises(StopIteration) as stopped:
        made.send("end")
    return out, stopped.value.value


def test_send_throw_and_return_are_as_without():
    """All ways into a generator and its result are those of the bare one."""
    assert talk(hotspan.propagate(conversation)()) == talk(conversation())


def test_send_and_throw_of_an_async_generator_are_as_without():
    """All ways into an async generator are those of the bare one, `aclose` too."""

    async def talk_async(made):
        out = [await anext(made), await made.asend("a"), await made.athrow(KeyError("b"))]
        with pytest.raises(StopAsyncIteration):
            await made.asend("end")
        await made.aclose()
        return out

    wrapped = hotspan.propagate(conversation_async)
    assert asyncio.run(talk_async(wrapped())) == asyncio.run(talk_async(conversation_async())) == [0, 1, 2]


@pytest.mark.parametrize("leave", ["close", "drop", "throw"])
def test_a_stream_that_is_left_leaves_no_context(leave):
    """However it is left, its `finally` runs, once, and the consumer's context is as it was."""
    seen = []

    def body():
        try:
            yield 1
            yield 2
        finally:
            seen.append(baggage.get_baggage("k"))

    token = otel_context.attach(baggage.set_baggage("k", "v"))
    wrapped = hotspan.propagate(body)
    otel_context.detach(token)
    before = otel_context.get_current()
    made = wrapped()
    next(made)
    if leave == "close":
        made.close()
    elif leave == "throw":
        with pytest.raises(LookupError):
            made.throw(LookupError())
    del made
    gc.collect()

    assert seen == ["v"]
    assert otel_context.get_current() is before


def test_an_event_loop_that_ends_closes_the_stream_quietly(caplog):
    """A stream that nobody finished is closed with its loop, and nothing is logged."""

    async def main():
        made = hotspan.propagate(items_async)()
        await anext(made)
        main.kept = made

    asyncio.run(main())
    assert caplog.records == []


@pytest.mark.parametrize(
    "fn", [items, items_async, pull, pull_async, Holder().items], ids=lambda f: f.__name__
)
def test_what_kind_of_function_it_is_can_still_be_asked(fn):
    """`inspect` answers as for the function itself."""
    wrapped = hotspan.propagate(fn)

    for asks in (inspect.isgeneratorfunction, inspect.isasyncgenfunction, inspect.iscoroutinefunction):
        assert asks(wrapped) == asks(fn)
    assert inspect.signature(wrapped) == inspect.signature(fn)
    assert wrapped.__name__ == fn.__name__


def test_a_call_that_does_not_fit_fails_at_the_call():
    """Wrong arguments are refused where the call is made, as without, not at the first item."""
    with pytest.raises(TypeError):
        hotspan.propagate(items)(1, 2)


def test_other_iterators_are_handed_through():
    """What is no generator is the very object that the function returned."""
    made = itertools.count()

    assert hotspan.propagate(lambda: made)() is made
