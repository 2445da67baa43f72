"""`send`, `throw`, `close` (and `asend`, …) and `return value` pass a decorated generator unchanged."""

import asyncio

import hotspan
from hotspan.testing import capture


def averager():
    """Average what is sent; forget it on `ValueError`; return the count."""
    total, n, average = 0.0, 0, None
    while True:
        try:
            item = yield average
        except ValueError:
            total, n, average = 0.0, 0, "reset"
            continue
        if item is None:
            return n
        total, n = total + item, n + 1
        average = total / n


async def echo():
    """Yield back what is sent, or what is thrown."""
    got = "ready"
    while True:
        try:
            got = yield got
        except ValueError as exc:
            got = str(exc)


def converse(fn):
    """Use every method of the generator, below a `yield from`."""

    def outer():
        result = yield from fn()
        yield ("returned", result)

    made = outer()
    log = [next(made), made.send(1), made.send(3), made.throw(ValueError("x")), made.send(5), made.send(None)]
    made.close()
    return log


async def converse_async(fn):
    """Use every method of the asynchronous generator."""
    made = fn()
    log = [await anext(made), await made.asend(1), await made.athrow(ValueError("x")), await made.asend(2)]
    await made.aclose()
    return log


def test_same_conversation():
    """The same calls give the same answers, with and without the decorator."""
    with capture() as captured:
        assert converse(hotspan.step(averager)) == converse(averager)
        assert asyncio.run(converse_async(hotspan.step(echo))) == asyncio.run(converse_async(echo))

    assert [span.attributes.get("hotspan.outcome") for span in captured.spans] == [None, "abandoned"]
