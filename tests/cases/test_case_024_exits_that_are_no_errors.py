"""One rule for every exception, the same for decorator and context manager."""

import asyncio

import pytest

import hotspan
from hotspan.testing import capture


class Own(BaseException):
    """A program's own way out."""


WAYS = [
    pytest.param(ValueError(), "error", None, id="exception"),
    pytest.param(StopIteration(1), "error", None, id="stop-iteration"),
    pytest.param(TimeoutError(), "error", None, id="time-out"),
    pytest.param(ExceptionGroup("g", [ValueError()]), "error", None, id="group"),
    pytest.param(GeneratorExit(), "unset", "abandoned", id="generator-exit"),
    pytest.param(asyncio.CancelledError(), "unset", "cancelled", id="cancelled"),
    pytest.param(SystemExit(0), "unset", None, id="exit-0"),
    pytest.param(SystemExit(), "unset", None, id="exit"),
    pytest.param(SystemExit(1), "unset", "interrupted", id="exit-1"),
    pytest.param(SystemExit("message"), "unset", "interrupted", id="exit-message"),
    pytest.param(KeyboardInterrupt(), "unset", "interrupted", id="ctrl-c"),
    pytest.param(Own(), "unset", "interrupted", id="base-exception"),
]


def by_decorator(exc):
    """Leave a decorated function."""

    @hotspan.step
    def fn():
        raise exc

    fn()


def by_block(exc):
    """Leave a `with` statement."""
    with hotspan.step():
        raise exc


def by_coroutine(exc):
    """Leave a decorated coroutine, without a loop that would treat some exceptions in its own way."""

    @hotspan.step
    async def fn():
        raise exc

    fn().send(None)


@pytest.mark.parametrize("leave", [by_decorator, by_block, by_coroutine])
@pytest.mark.parametrize(("exc", "status", "outcome"), WAYS)
def test_one_rule(leave, exc, status, outcome):
    """Status and outcome depend on the exception alone; only an error has an exception event."""
    with capture() as captured:
        # A StopIteration that leaves a coroutine becomes a RuntimeError, by Python's own rule.
        with pytest.raises((type(exc), RuntimeError)):
            leave(exc)

    (span,) = captured.spans
    assert (span.status, span.attributes.get("hotspan.outcome")) == (status, outcome)
    assert len(span.events) == (1 if status == "error" else 0)


def test_the_end_of_a_generator_is_no_error():
    """The `StopIteration` that ends a generator is not seen as one."""

    @hotspan.step
    def fn():
        yield 1

    with capture() as captured:
        assert list(fn()) == [1]

    assert captured.spans[0].status == "unset"
