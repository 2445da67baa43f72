"""A stage above `contextmanager` and `asynccontextmanager` lasts as long as the `with` block."""

import asyncio
import contextlib
import functools
import gc
import inspect

import pytest

import hotspan
from hotspan.testing import FakeClock, capture


@contextlib.contextmanager
def session(name="s", *, swallow=()):
    """Yield the name, and say how it was left."""
    with hotspan.tool("open"):
        pass
    try:
        yield name
    except swallow:
        pass
    finally:
        with hotspan.tool("close"):
            pass


@contextlib.asynccontextmanager
async def session_async(name="s", *, swallow=()):
    """Yield the name, and say how it was left."""
    async with hotspan.tool("open"):
        await asyncio.sleep(0)
    try:
        yield name
    except swallow:
        pass
    finally:
        async with hotspan.tool("close"):
            await asyncio.sleep(0)


def use(make, body=lambda _item: None, **options):
    """Run `body` in the `with` block of a manager."""
    with make(**options) as item:
        return body(item)


def use_async(make, body=lambda _item: None, **options):
    """Run `body` in the `async with` block of a manager."""

    async def main():
        async with make(**options) as item:
            await asyncio.sleep(0)
            return body(item)

    return asyncio.run(main())


BOTH = pytest.mark.parametrize(
    ("make", "run"),
    [pytest.param(session, use, id="sync"), pytest.param(session_async, use_async, id="async")],
)
CHILDREN = [["execute_tool open"], ["step inside"], ["execute_tool close"]]


def inside(item):
    """Open a stage in the block, and return what the manager gave."""
    with hotspan.step("inside"):
        return item


@BOTH
def test_the_block_is_the_stage(make, run):
    """What the manager opens, what the block opens and what it closes are below one span."""
    with capture() as captured:
        assert run(hotspan.step("session")(make), inside, name="given") == "given"
        with hotspan.step("after"):
            pass

    assert captured.tree() == [["step session", *CHILDREN], ["step after"]]


def test_the_stage_is_as_long_as_the_block():
    """The duration is that of the `with` statement, not of the call that made the manager."""
    with FakeClock() as clock, capture() as captured:
        use(hotspan.step("session")(session), lambda _: clock.advance(ms=50))

    assert captured.one("step session").duration_ns == 50_000_000


@BOTH
@pytest.mark.parametrize(
    ("error", "swallow", "expected"),
    [
        pytest.param(KeyError("k"), (), ("error", None), id="error"),
        pytest.param(KeyError("k"), KeyError, ("unset", None), id="swallowed"),
        pytest.param(StopIteration("s"), (), ("error", None), id="stop-iteration"),
        pytest.param(StopAsyncIteration("s"), (), ("error", None), id="stop-async-iteration"),
        pytest.param(asyncio.CancelledError(), (), ("unset", "cancelled"), id="cancelled"),
        pytest.param(GeneratorExit(), (), ("unset", "abandoned"), id="generator-exit"),
    ],
)
def test_a_block_that_is_left_by_an_exception(make, run, error, swallow, expected):
    """The very exception comes out, or is swallowed, as without; and the span says so."""

    def leave(_item):
        raise error

    def attempt(fn):
        try:
            return run(fn, leave, swallow=swallow)
        except BaseException as raised:  # noqa: BLE001 - whatever it is, both must raise it
            return raised

    with capture() as captured:
        found, bare = attempt(hotspan.step("session")(make)), attempt(make)
    span = captured.one("step session")

    assert (found is error, repr(found)) == (bare is error, repr(bare))
    assert (span.status, span.attributes.get("hotspan.outcome")) == expected


@BOTH
def test_it_can_be_used_as_a_decorator(make, run):
    """A manager that decorates a function makes one span a call."""
    del run
    traced = hotspan.step("session")(make)
    with capture() as captured:
        if make is session:
            fn = traced()(lambda: inside("x"))
            found = [fn(), fn()]
        else:

            @traced()
            async def fn():
                return inside("x")

            found = [asyncio.run(fn()), asyncio.run(fn())]

    assert found == ["x", "x"]
    assert captured.tree() == [["step session", *CHILDREN]] * 2


@BOTH
def test_types_and_metadata_stay(make, run):
    """The manager is of the type that it was, and the function answers `inspect` as it did."""
    del run
    traced = hotspan.step("session")(make)

    assert type(traced()) is type(make())
    assert (traced.__name__, traced.__doc__, traced.__module__) == (
        make.__name__,
        make.__doc__,
        make.__module__,
    )
    assert inspect.signature(traced) == inspect.signature(make)
    assert not inspect.isgeneratorfunction(traced)
    assert not inspect.isasyncgenfunction(traced)
    with pytest.raises(TypeError):
        traced(unknown=1)


@BOTH
def test_a_manager_that_is_never_entered_is_no_span(make, run):
    """Nothing ran, so nothing is recorded; one that is entered and dropped is abandoned."""
    del run
    traced = hotspan.step("session")(make)
    with capture() as captured:
        made = traced()
        del made
        gc.collect()
        assert captured.spans == []
        if make is session:
            made = traced()
            made.__enter__()
            del made
            gc.collect()
            assert captured.one("step session").attributes["hotspan.outcome"] == "abandoned"


def test_as_a_method_of_a_class_and_nested():
    """Methods, static and class methods, and managers inside each other."""

    @hotspan.step
    class Store:
        @contextlib.contextmanager
        def locked(self):
            yield self

        @staticmethod
        @contextlib.contextmanager
        def shared():
            yield 1

        @classmethod
        @contextlib.contextmanager
        def whole(cls):
            with cls.shared():
                yield cls

    store = Store()
    with capture() as captured:
        with store.locked() as found, Store.whole() as cls, contextlib.ExitStack() as stack:
            assert stack.enter_context(store.shared()) == 1
            assert (found, cls) == (store, Store)

    assert captured.tree() == [["step", ["step", ["step", ["step"]]]]]


def test_a_manager_that_yields_twice_fails_as_without():
    """The error of `contextlib` is the same, and the span has ended."""

    @contextlib.contextmanager
    def twice():
        yield 1
        yield 2

    @contextlib.contextmanager
    def never():
        if False:
            yield

    with capture() as captured:
        for fn in (twice, never):
            with pytest.raises(RuntimeError) as bare, fn():
                pass
            with pytest.raises(RuntimeError) as traced, hotspan.step("session")(fn)():
                pass
            assert str(traced.value) == str(bare.value)
        del bare, traced
        gc.collect()

    assert len(captured.spans) == 2


def test_a_function_above_it_is_a_function():
    """A plain function that returns a manager is traced as far as it runs itself."""

    @functools.wraps(session)
    def make(**options):
        return session(**options)

    with capture() as captured:
        use(hotspan.step("made")(make), inside)

    assert [name for name, *_ in captured.tree()] == ["step made", *[name for (name,) in CHILDREN]]
