"""A million spans from 8 threads and 500 tasks at once: started = delivered + lost, to the span.

Every way out is among them: returns, exceptions, streams that are exhausted, left and closed.  The file is
read back by `hotspan.load`, which must find what was written, and the writer's own count of what was not.
"""

import array
import asyncio
import contextlib
import threading

import numpy as np
import pytest

import hotspan
from hotspan.tracer import channel, recorder
from hotspan.tracer.config import recording_to
from hotspan.tracer.settings import Settings

N_THREADS, N_TASKS = 8, 500
N_SPANS_A_ROUND = 5  # a step, a failing tool, a stream and a step in it, and a retrieval around them


class RefusedError(Exception):
    """What the tool raises."""


@hotspan.tool
def fail():
    """Leave by an exception."""
    raise RefusedError


@hotspan.generation(model="echo")
def stream():
    """Open a stage inside, and end after two items."""
    with hotspan.step("inside"):
        pass
    yield "one"
    yield "two"


@hotspan.generation(model="echo")
async def stream_async():
    """Open a stage inside, and end after two items; other tasks run meanwhile."""
    async with hotspan.step("inside"):
        await asyncio.sleep(0)
    yield "one"
    yield "two"


def in_thread(n_rounds):
    """Work in one thread; every other stream is left after its first item."""
    for n in range(n_rounds):
        with hotspan.retrieval("wiki"):
            with hotspan.step("outside") as span:
                span.set("n", n)
            with contextlib.suppress(RefusedError):
                fail()
            items = stream()
            assert next(items) == "one"
            if n % 2:
                items.close()
            else:
                assert list(items) == ["two"]


async def in_task(n_rounds):
    """Work in one task; every other stream is left after its first item."""
    for n in range(n_rounds):
        async with hotspan.retrieval("wiki"):
            with hotspan.step("outside") as span:
                span.set("n", n)
            with contextlib.suppress(RefusedError):
                fail()
            async with contextlib.aclosing(stream_async()) as items:
                async for _ in items:
                    if n % 2:
                        break


def work(n_spans):
    """Start that many spans, half of them in threads and half in tasks."""
    a_thread = n_spans // (2 * N_THREADS * N_SPANS_A_ROUND)
    a_task = n_spans // (2 * N_TASKS * N_SPANS_A_ROUND)
    threads = [threading.Thread(target=in_thread, args=(a_thread,)) for _ in range(N_THREADS)]
    for thread in threads:
        thread.start()

    async def tasks():
        await asyncio.gather(*(in_task(a_task) for _ in range(N_TASKS)))

    asyncio.run(tasks())
    for thread in threads:
        thread.join()
    assert (a_thread * N_THREADS + a_task * N_TASKS) * N_SPANS_A_ROUND == n_spans


class Counting:
    """An exporter that keeps the ids, and how many spans are no children of what they should be below."""

    def __init__(self):
        self.ids, self.n_roots, self.n_noted = array.array("Q"), 0, 0

    def export(self, batch):
        """Keep what is needed to count."""
        self.ids.extend(int(span.span_id, 16) for span in batch)
        self.n_roots += sum(span.parent_id is None for span in batch)

    def report_lost(self, n_spans):
        """Keep the count."""
        self.n_noted += n_spans

    def shutdown(self):
        """Do nothing."""


@pytest.mark.parametrize(
    "n_spans",
    [
        pytest.param(100_000, id="100-thousand"),
        pytest.param(1_000_000, id="a-million", marks=pytest.mark.integration),  # half a minute
    ],
)
def test_all_spans_are_accounted_for(n_spans):
    """Each is delivered once, or counted as lost once; the exporter is told of as many as `flush` says."""
    sink = Counting()
    with recording_to(sink, Settings()) as running:
        work(n_spans)
        result = running.flush(60)

    assert running.started.value() == n_spans
    assert result.exported + result.lost == n_spans
    assert result.ok == (result.lost == 0)
    assert len(np.unique(np.asarray(sink.ids))) == len(sink.ids) == result.exported
    assert sink.n_noted == result.lost
    assert running.n_open() == 0
    assert result.lost or sink.n_roots == n_spans // N_SPANS_A_ROUND


@pytest.mark.parametrize("max_buffered", [100_000, 2_000], ids=["all-is-well", "buffer-full"])
def test_the_file_has_what_was_started_less_what_it_says_is_lost(tmp_path, monkeypatch, max_buffered):
    """Spans read back + spans that the file notes as lost = spans started; what is whole has its tree."""
    n_spans, path = 50_000, tmp_path / "run.jsonl"
    monkeypatch.setattr(recorder, "MAX_BUFFERED", max_buffered)
    monkeypatch.setattr(channel, "MAX_WAITING", max_buffered)
    hotspan.configure(file=path)
    work(n_spans)
    result = hotspan.shutdown(60)
    read = hotspan.load(path)
    traces = list(read)

    assert result.exported + result.lost == n_spans
    assert sum(len(trace.spans) for trace in traces) == result.exported
    assert read.evidence.n_dropped_spans == result.lost
    assert result.lost == 0 or max_buffered < n_spans
    if result.lost == 0:
        assert len(traces) == n_spans // N_SPANS_A_ROUND
        assert {shape(trace) for trace in traces} == {SHAPE}


SHAPE = frozenset(
    {
        ("retrieval wiki", None),
        ("step outside", "retrieval wiki"),
        ("execute_tool fail", "retrieval wiki"),
        ("chat echo", "retrieval wiki"),
        ("step inside", "chat echo"),
    }
)


def shape(trace):
    """Return each span's name with its parent's."""
    names = {span.span_id: span.name for span in trace.spans} | {None: None}
    return frozenset((span.name, names[span.parent_id]) for span in trace.spans)
