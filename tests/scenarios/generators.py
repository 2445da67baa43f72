"""Ways out of generators."""

# ruff: noqa: D103, EM101, TRY003, PLR1708 - scenarios do what users' programs do, odd things too

import gc
import itertools
import weakref

import pytest
from scenarios.seeing import ERROR, OK, Boom, outcome, saw


def generator(trace):
    """A generator that answers to everything that can be done to one."""

    @trace
    def fn(n=3):
        log = []
        for i in range(n):
            try:
                log.append((yield i))
            except KeyError:
                log.append((yield "caught"))
        return log

    return fn


def exhausted(trace):
    return list(generator(trace)())


def taken_two(trace):
    return list(itertools.islice(generator(trace)(), 2))


def value_of_yield_from(trace):
    def outer():
        yield ("value", (yield from generator(trace)()))

    return list(outer())


def sent(trace):
    made = generator(trace)()
    return saw(lambda: made.send(5)), next(made), made.send("a"), made.send("b"), saw(lambda: made.send("c"))


def thrown_caught(trace):
    made = generator(trace)()
    return next(made), made.throw(KeyError()), made.send(1), list(made)


def thrown_uncaught(trace):
    made, exc = generator(trace)(), Boom("x")
    next(made)
    return saw(lambda: made.throw(exc)), saw(lambda: next(made)), exc.__context__


def thrown_before_start(trace):
    made = generator(trace)()
    return saw(lambda: made.throw(Boom("x"))), saw(lambda: next(made))


def thrown_stop_iteration(trace):
    made = generator(trace)()
    next(made)
    return saw(lambda: made.throw(StopIteration(3)))


def closed(trace):
    made = generator(trace)()
    next(made)
    return saw(made.close), saw(made.close), saw(lambda: next(made))


def close_gives_value(trace):
    @trace
    def fn():
        try:
            yield 1
        except GeneratorExit:
            return 9

    made = fn()
    next(made)
    return saw(made.close)  # a value since Python 3.13


def close_ignored(trace):
    @trace
    def fn():
        while True:
            try:
                yield 1
            except GeneratorExit:
                if stop:
                    return

    stop = []
    made = fn()
    next(made)
    return saw(made.close), stop.append(1), saw(made.close)


def thrown_exit_answered(trace):
    @trace
    def fn():
        try:
            yield 1
        except GeneratorExit:
            yield 2

    made = fn()
    return next(made), made.throw(GeneratorExit()), saw(lambda: next(made))


def raises_in_cleanup(trace):
    @trace
    def fn():
        try:
            yield 1
        finally:
            raise Boom("in cleanup")

    made = fn()
    next(made)
    return saw(made.close)


def raises_midway(trace):
    @trace
    def fn():
        yield 1
        raise Boom("midway")

    made = fn()
    return next(made), saw(lambda: next(made)), saw(lambda: next(made))


def raises_stop_iteration(trace):
    @trace
    def fn():
        yield 1
        raise StopIteration(2)

    made = fn()
    return next(made), saw(lambda: next(made))


def never_iterated(trace):
    made = generator(trace)()
    return made.gi_running, saw(made.close) and None


def dropped(trace):
    log = []

    @trace
    def fn():
        try:
            yield 1
            yield 2
        finally:
            log.append("cleaned")

    made = fn()
    next(made)
    del made
    gc.collect()
    return log


def wrong_arguments(trace):
    return saw(lambda: generator(trace)(1, 2, 3))


def consumer_raises(trace):
    def consume():
        for item in generator(trace)():
            raise Boom(item)

    return saw(consume)


def two_at_once(trace):
    fn = generator(trace)
    return list(zip(fn(), fn(), strict=True))


def items_are_not_held(trace):
    class Item:
        pass

    @trace
    def fn():
        for _ in range(2):
            yield Item()

    made = fn()
    item = weakref.ref(next(made))
    return item() is None, len(list(made))


def returns_generator(trace):
    @trace
    def fn():
        return (i * i for i in range(3))

    return list(fn()), type(made := fn()), made.__name__, made.close()


def re_entered(trace):
    def body():
        yield saw(lambda: next(made))

    made = trace(body)()
    return list(made)


# name of the callable's scenario, and the status and outcome of each span that it gives
SCENARIOS = [
    pytest.param(exhausted, [OK], id="generator-exhausted"),
    pytest.param(taken_two, [outcome("abandoned")], id="generator-islice"),
    pytest.param(value_of_yield_from, [OK], id="generator-value"),
    pytest.param(sent, [OK], id="generator-send"),
    pytest.param(thrown_caught, [OK], id="generator-throw-caught"),
    pytest.param(thrown_uncaught, [ERROR], id="generator-throw-uncaught"),
    pytest.param(thrown_before_start, [outcome("abandoned")], id="generator-throw-before-start"),
    pytest.param(thrown_stop_iteration, [ERROR], id="generator-throw-stop-iteration"),
    pytest.param(closed, [outcome("abandoned")], id="generator-close"),
    pytest.param(close_gives_value, [outcome("abandoned")], id="generator-close-value"),
    pytest.param(close_ignored, [outcome("abandoned")], id="generator-close-ignored"),
    pytest.param(thrown_exit_answered, [OK], id="generator-exit-answered"),
    pytest.param(raises_in_cleanup, [ERROR], id="generator-cleanup-raises"),
    pytest.param(raises_midway, [ERROR], id="generator-raises"),
    pytest.param(raises_stop_iteration, [ERROR], id="generator-raises-stop-iteration"),
    pytest.param(never_iterated, [outcome("abandoned")], id="generator-never-iterated"),
    pytest.param(dropped, [outcome("abandoned")], id="generator-dropped"),
    pytest.param(wrong_arguments, [ERROR], id="generator-wrong-arguments"),
    pytest.param(consumer_raises, [outcome("abandoned")], id="generator-consumer-raises"),
    pytest.param(two_at_once, [OK, OK], id="generator-twice-at-once"),
    pytest.param(items_are_not_held, [OK], id="generator-items-not-held"),
    pytest.param(returns_generator, [OK, outcome("abandoned")], id="function-returns-generator"),
    pytest.param(re_entered, [OK], id="generator-re-entered"),
]
