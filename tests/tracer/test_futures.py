"""A callable that returns a task or a future: the very object, and a span that ends when it is done."""

import asyncio
import gc
import logging
import threading
from concurrent import futures

import pytest

import hotspan
from hotspan.testing import FakeClock, capture


class Refused(Exception):  # noqa: N818 - what a future may fail with
    """What a future fails with."""


async def work(error=None):
    """Open a stage inside, let others run, and return or raise."""
    with hotspan.tool("inside"):
        await asyncio.sleep(0)
    if error is not None:
        raise error
    return "done"


@hotspan.step("started")
def start(error=None):
    """Return a task."""
    return asyncio.create_task(work(error))


@hotspan.step("started")
async def start_async(error=None):
    """Return a task, when awaited."""
    return asyncio.create_task(work(error))


@hotspan.step("started")
def start_later(error=None):
    """Return a coroutine that returns a task."""
    return start_async.__wrapped__(error)


async def begin(fn, *args):
    """Call either, and return the task."""
    made = fn(*args)
    return made if isinstance(made, asyncio.Future) else await made


STARTS = pytest.mark.parametrize("fn", [start, start_async, start_later], ids=["sync", "async", "deferred"])


@STARTS
def test_the_span_ends_with_the_task(fn):
    """What the task opens is below the span, which has not ended while the task runs, and is not current."""

    async def main():
        task = await begin(fn)
        assert type(task) is asyncio.Task
        with hotspan.step("beside"):
            assert "step started" not in [span.name for span in captured.spans]
        return await task

    with capture() as captured:
        assert asyncio.run(main()) == "done"

    assert captured.tree() == [["step started", ["execute_tool inside"]], ["step beside"]]
    assert captured.one("step started").status == "unset"


@STARTS
def test_a_task_that_fails_is_an_error_and_raises_to_who_awaits_it(fn):
    """The error is recorded once, and the object that is raised is the task's own."""

    async def main():
        task = await begin(fn, error)
        with pytest.raises(Refused) as raised:
            await task
        assert raised.value is error
        await asyncio.sleep(0)

    error = Refused()
    with capture(capture_content=True) as captured:
        asyncio.run(main())
    span = captured.one("step started")

    assert (span.status, span.attributes["error.type"]) == ("error", "Refused")
    assert [event.name for event in span.events] == ["exception"]


@STARTS
def test_a_task_that_is_cancelled(fn):
    """The outcome says so, and it is no error."""

    async def main():
        task = await begin(fn)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(0)

    with capture() as captured:
        asyncio.run(main())
    span = captured.one("step started")

    assert (span.status, span.attributes["hotspan.outcome"]) == ("unset", "cancelled")


def test_an_error_that_nobody_reads_is_still_logged(caplog):
    """Asyncio logs a failed task that nobody awaited; that we looked does not count as reading it."""

    async def main():
        await asyncio.wait([start(Refused())])
        await asyncio.sleep(0)

    with capture():
        asyncio.run(main())
    gc.collect()

    assert [r.message.splitlines()[0] for r in caplog.records] == ["Task exception was never retrieved"]


def test_a_future_that_is_done_already():
    """A future that was done before it is returned ends the span at the return, in whatever loop."""
    loop = asyncio.new_event_loop()
    future = loop.create_future()
    future.set_result(3)
    with capture() as captured:
        assert hotspan.step("s")(lambda: future)() is future
        assert len(captured.spans) == 1
    loop.close()


def test_a_future_that_is_dropped_is_abandoned():
    """Nobody will complete a future that nobody holds: its span ends with it."""

    async def main():
        hotspan.step("s")(asyncio.get_running_loop().create_future)()
        gc.collect()

    with capture() as captured:
        asyncio.run(main())

    assert captured.one("step s").attributes["hotspan.outcome"] == "abandoned"


@pytest.mark.parametrize(
    ("finish", "status", "outcome"),
    [
        pytest.param(lambda f: f.set_result(1), "unset", None, id="result"),
        pytest.param(lambda f: f.set_exception(Refused()), "error", None, id="error"),
        pytest.param(futures.Future.cancel, "unset", "cancelled", id="cancelled"),
    ],
)
def test_a_future_of_a_thread(finish, status, outcome):
    """A `concurrent.futures.Future` ends the span in whatever thread completes it."""
    future = futures.Future()
    with FakeClock() as clock, capture() as captured:
        assert hotspan.tool("t")(lambda: future)() is future
        assert captured.spans == []
        clock.advance(ms=5)
        thread = threading.Thread(target=finish, args=(future,))
        thread.start()
        thread.join()
        span = captured.one("execute_tool t")

    assert span.duration_ns == 5_000_000
    assert (span.status, span.attributes.get("hotspan.outcome")) == (status, outcome)


def test_what_an_executor_returns():
    """A traced `submit` is as long as the call that it submitted, and its children are there."""
    with capture() as captured:
        with hotspan.ThreadPoolExecutor(1) as pool:
            submit = hotspan.step("submitted")(pool.submit)
            assert submit(asyncio.run, work()).result() == "done"

    assert captured.tree() == [["step submitted", ["execute_tool inside"]]]


def test_what_is_open_at_the_end_is_abandoned(tmp_path):
    """A future that is never done ends with the program, and is in the file."""
    hotspan.configure(file=tmp_path / "run.jsonl")
    future = hotspan.step("s")(lambda: futures.Future())()  # noqa: PLW0108 - the class would be traced as such
    assert hotspan.shutdown().exported == 1
    future.set_result(1)

    assert "abandoned" in (tmp_path / "run.jsonl").read_text()


def test_a_future_of_somebodys_own_that_refuses(monkeypatch, caplog):
    """One that takes no callback is handed on all the same; that we failed is a fault, logged once."""

    class Own(futures.Future):
        def add_done_callback(self, fn):
            raise NotImplementedError

    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    monkeypatch.setattr("hotspan.tracer.faults.n_faults", 0)
    caplog.set_level(logging.WARNING)
    with capture() as captured:
        assert isinstance(hotspan.step("s")(lambda: Own())(), Own)  # noqa: PLW0108 - as above

    assert len(captured.spans) == 1
    assert len(caplog.records) == 1


def test_types_that_a_program_makes_do_not_gather(monkeypatch):
    """Results of ever new types are returned as they are, and what is remembered of types has a bound."""
    monkeypatch.setattr("hotspan.tracer.deferred._MAX_KNOWN", 50)
    make = hotspan.step("s")(lambda i: type(f"T{i}", (), {})())
    with capture() as captured:
        for i in range(200):
            assert type(make(i)).__name__ == f"T{i}"

    from hotspan.tracer import deferred  # noqa: PLC0415 - beside what is said of it

    assert len(captured.spans) == 200
    assert len(deferred.COMPLETE) <= 50
