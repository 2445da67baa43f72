"""A decorated function that hands out a generator or coroutine which was stepped before."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hotspan
from hotspan.testing import capture

WRAPPERS = [hotspan.step, hotspan.generation(model="m"), hotspan.propagate]
ACTIONS = st.lists(st.sampled_from(["next", "send", "throw", "close"]), max_size=5)


def averager(log, steps):
    """A running average, primed by so many steps, that begins anew where a ValueError is thrown in."""

    def average():
        total, n, mean = 0.0, 0, None
        try:
            while True:
                try:
                    item = yield mean
                except ValueError:
                    total, n = 0.0, 0
                else:
                    total, n = total + (item or 1), n + 1
                mean = total / max(n, 1)
        finally:
            log.append("closed")

    made = average()
    for _ in range(steps):
        next(made)
    return made


async def asynchronous(source):
    """The same, of asynchronous steps."""
    found = None
    try:
        while True:
            try:
                found = source.send((yield found))
            except ValueError as exc:
                found = source.throw(exc)
    finally:
        source.close()


def done(made, actions):
    """Return what each action on a generator gave."""
    found = []
    for action in actions:
        try:
            found.append(
                {
                    "next": lambda: next(made),
                    "send": lambda: made.send(10),
                    "throw": lambda: made.throw(ValueError("anew")),
                    "close": made.close,
                }[action]()
            )
        except Exception as exc:  # noqa: BLE001 - what a program sees
            found.append(repr(exc))
    return found


async def done_async(made, actions):
    """Do the same of an asynchronous one."""
    found = []
    for action in actions:
        try:
            step = {
                "next": lambda: anext(made),
                "send": lambda: made.asend(10),
                "throw": lambda: made.athrow(ValueError("anew")),
                "close": made.aclose,
            }[action]
            found.append(await step())
        except (Exception, StopAsyncIteration) as exc:  # noqa: BLE001 - what a program sees
            found.append(repr(exc))
    return found


@given(ACTIONS, st.integers(0, 2), st.sampled_from(WRAPPERS))
def test_a_generator_goes_on_from_where_it_stands(actions, steps, wrap):
    """What is sent, thrown in and closed reaches it as in the bare program, and at that moment."""

    def run(wrap):
        log = []
        made = wrap(averager)(log, steps)
        return done(made, actions), log[:]

    with capture():
        assert run(wrap) == run(lambda fn: fn)


@given(ACTIONS, st.integers(0, 2), st.sampled_from(WRAPPERS))
def test_an_asynchronous_generator_goes_on_from_where_it_stands(actions, steps, wrap):
    """The same, of `asend`, `athrow` and `aclose`; one that binds names of its own was made no further on."""

    async def run(wrap):
        log = []
        made = [asynchronous(averager(log, 1))]
        for _ in range(steps):
            await anext(made[0])
        return await done_async(wrap(made.pop)(), actions), log[:]

    with capture():
        assert asyncio.run(run(wrap)) == asyncio.run(run(lambda fn: fn))


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_a_coroutine_goes_on_from_where_it_stands(wrap):
    """It is the very object; its span ends when it is handed out."""

    async def answer():
        await asyncio.sleep(0)
        return 3

    def begun():
        made = answer()
        made.send(None)
        return made

    with capture():
        with pytest.raises(StopIteration) as caught:
            wrap(begun)().send(None)

    assert caught.value.value == 3


@pytest.mark.parametrize("steps", [0, 1])
def test_one_span_in_either_case(steps):
    """A fresh one's span is as long as it is; one that was begun has its span until the return."""
    with capture() as captured:
        made = hotspan.step(averager)([], steps)
        n_at_the_return = len(captured.spans)
        next(made)
        made.close()

    assert (n_at_the_return, len(captured.spans)) == (steps, 1)
