"""Spans started = spans delivered + spans counted as lost: exactly, under every load and every fault."""

import asyncio
import gc
import itertools
import logging
import subprocess
import sys
import threading
import time

import pytest

import hotspan
from hotspan.tracer import channel, recorder
from hotspan.tracer import span as spans
from hotspan.tracer.config import recording_to
from hotspan.tracer.record import SpanRecord
from hotspan.tracer.settings import Settings

QUIET = Settings()


class Sink:
    """An exporter that keeps the ids it was given, and does what it is told before."""

    def __init__(self, before=lambda _batch: None):
        self.ids, self.lost, self.before = [], 0, before

    def export(self, batch):
        """Do what comes before, and keep the ids."""
        self.before(batch)
        self.ids.extend(span.span_id for span in batch)

    def report_lost(self, n_spans):
        """Keep the count."""
        self.lost += n_spans

    def shutdown(self):
        """Do nothing."""


def burst(n_threads, n_tasks, n_spans):
    """Run stages from threads and tasks at once; return how many."""

    def in_thread():
        for _ in range(n_spans):
            with hotspan.step("thread"):
                pass

    async def in_task():
        for _ in range(n_spans // 10):
            with hotspan.step("task"):
                await asyncio.sleep(0)

    async def tasks():
        await asyncio.gather(*(in_task() for _ in range(n_tasks)))

    threads = [threading.Thread(target=in_thread) for _ in range(n_threads)]
    for thread in threads:
        thread.start()
    asyncio.run(tasks())
    for thread in threads:
        thread.join()
    return n_threads * n_spans + n_tasks * (n_spans // 10)


def fail(_batch):
    """Refuse a batch."""
    msg = "the collector is down"
    raise ConnectionError(msg)


def fail_every_other():
    """Return what refuses every other batch."""
    calls = itertools.count()
    return lambda batch: fail(batch) if next(calls) % 2 else None


@pytest.mark.parametrize(
    ("sink", "max_buffered"),
    [
        pytest.param(Sink(), 100_000, id="all-is-well"),
        pytest.param(Sink(), 700, id="buffer-full"),
        pytest.param(Sink(lambda _: time.sleep(0.02)), 300, id="slow-and-full"),
        pytest.param(Sink(fail), 100_000, id="failing"),
        pytest.param(Sink(fail_every_other()), 1_000, id="failing-sometimes-and-full"),
    ],
)
def test_started_is_delivered_plus_lost(sink, max_buffered, monkeypatch):
    """With 8 threads and 500 tasks, whatever the exporter does, every span is accounted for once."""
    monkeypatch.setattr(recorder, "MAX_BUFFERED", max_buffered)
    monkeypatch.setattr(channel, "MAX_WAITING", max_buffered)
    with recording_to(sink, QUIET) as running:
        n_started = burst(8, 500, 300)
        result = running.flush(30)

    assert running.started.value() == n_started
    assert result.exported + result.lost == n_started
    assert len(sink.ids) == len(set(sink.ids)) == result.exported
    assert sink.lost == result.lost
    assert result.ok == (result.lost == 0)


def test_the_buffer_stays_within_its_bound(monkeypatch):
    """While nothing is drained, no more spans are kept than the bound and what starts between two looks."""
    monkeypatch.setattr(recorder, "MAX_BUFFERED", 100)
    with recording_to(Sink(), QUIET) as running:
        with running._draining:  # noqa: SLF001 - nothing public keeps the thread from draining
            for _ in range(3_000):
                with hotspan.step():
                    pass
            n_kept = len(running._buffer)  # noqa: SLF001 - the bound is of this
        result = running.flush(30)

    assert n_kept <= 100 + spans.CHECK_EVERY
    assert (result.exported, result.lost) == (n_kept, 3_000 - n_kept)


def test_exporters_do_not_wait_for_each_other():
    """A sink that is stuck keeps nothing from the one beside it, and the loss is counted for it alone."""
    stuck, release = Sink(lambda _: release.wait(30)), threading.Event()
    swift = Sink()
    with recording_to(stuck, QUIET) as running:
        running.channels.append(channel.Channel(swift, "swift"))
        with hotspan.request():
            pass
        result = running.flush(0.2)
        assert (result.ok, len(swift.ids), len(stuck.ids)) == (False, 1, 0)
        release.set()
        assert running.flush(30).ok


def test_flush_does_not_lie(caplog):
    """A flush that could not deliver in time says so, and one after the loss still says so."""
    caplog.set_level(logging.WARNING)
    release = threading.Event()
    with recording_to(Sink(lambda _: release.wait(30)), QUIET) as running:
        with hotspan.request():
            pass
        assert running.flush(0.05) == recorder.FlushResult(ok=False, exported=0, lost=0)
        release.set()
        assert running.flush(30) == recorder.FlushResult(ok=True, exported=1, lost=0)
    with recording_to(Sink(fail), QUIET) as running:
        with hotspan.request():
            pass
        assert running.flush(30) == recorder.FlushResult(ok=False, exported=0, lost=1)
        assert running.flush(30) == recorder.FlushResult(ok=False, exported=0, lost=1)
    assert len(caplog.records) == 1


def test_what_is_unfinished_at_the_end_is_lost():
    """A span that never ended is counted: it was started, and is in no file."""
    sink = Sink()
    with recording_to(sink, QUIET) as running:
        span = hotspan.step("open").start()
        with hotspan.step("done"):
            pass
        result = running.shutdown(5)
        assert running.shutdown(5) == result
    span.end()

    assert (result.exported, result.lost, sink.lost) == (1, 1, 1)


def test_a_partial_failure_counts_what_was_lost():
    """An exporter that says how much of a batch was lost is believed."""

    class Partly(Exception):  # noqa: N818 - what an exporter raises
        n_lost = 1

    def refuse_one(_batch):
        raise Partly

    sending = channel.Channel(Sink(refuse_one), "partly")
    sending.put([SpanRecord("1" * 32, f"{i:016x}", None, "s", 1, 2) for i in range(3)])
    sending.stop(time.monotonic() + 30)

    assert (sending.n_exported, sending.n_lost) == (2, 1)


def test_ended_by_two_threads_at_once_is_one_span():
    """However many threads end a span at the same moment, it is delivered once."""
    sink = Sink()
    with recording_to(sink, QUIET) as running:
        for _ in range(200):
            span, together = hotspan.step().start(), threading.Barrier(4)
            threads = [
                threading.Thread(target=lambda s=span, b=together: (b.wait(), s.end())) for _ in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        result = running.flush(30)

    assert (result.exported, len(set(sink.ids)), result.lost) == (200, 200, 0)


def test_a_span_that_comes_twice_is_delivered_once():
    """What two threads hand over that end one span in the same instant is one span."""
    sink = Sink()
    with recording_to(sink, QUIET) as running:
        with hotspan.step() as span:
            pass
        running.take(span)
        result = running.flush(30)

    assert (result.exported, result.lost, len(sink.ids)) == (1, 0, 1)


def test_set_by_many_threads_loses_nothing():
    """Attributes that many threads set first at the same moment are all there."""
    with recording_to(Sink(), QUIET):
        for _ in range(100):
            span, together = hotspan.step().start(), threading.Barrier(4)
            threads = [
                threading.Thread(target=lambda i=i, s=span, b=together: (b.wait(), s.set(f"k{i}", i)))
                for i in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert {f"k{i}" for i in range(4)} <= set(span.attributes)
            span.end()


def test_reconfiguring_loses_no_span(tmp_path):
    """A span and a stream that are open while `configure` is called again end in the new file, once."""

    @hotspan.step("stream")
    def items():
        yield 1
        yield 2

    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    hotspan.configure(file=first)
    made = items()
    next(made)
    with hotspan.request("across"):
        hotspan.configure(file=second)
        list(made)
    result = hotspan.shutdown()

    assert (result.ok, result.exported, result.lost) == (True, 2, 0)
    assert first.read_text() == ""
    assert "abandoned" not in second.read_text()


def test_spans_of_other_processes_take_the_same_way():
    """What `submit` is given reaches the exporters, and is no span of ours."""
    sink = Sink()
    with recording_to(sink, QUIET) as running:
        recorder.submit([SpanRecord("1" * 32, "2" * 16, None, "engine", 1, 2)])
        result = running.flush(30)

    assert sink.ids == ["2" * 16]
    assert (result.exported, running.n_open()) == (1, 0)


def foreign(n_spans):
    """Return spans as another process wrote them."""
    return [SpanRecord("1" * 32, f"{i:016x}", None, "engine", 1, 2) for i in range(n_spans)]


def test_spans_of_other_processes_have_a_bound_of_their_own(monkeypatch):
    """While nothing is drained, what goes beyond the bound is lost, and counted to the span."""
    monkeypatch.setattr(recorder, "MAX_FOREIGN", 100)
    sink = Sink()
    with recording_to(sink, QUIET) as running:
        with running._draining:  # noqa: SLF001 - nothing public keeps the thread from draining
            for _ in range(8):
                recorder.submit(foreign(30))
            assert len(running._foreign) == 100  # noqa: SLF001 - the bound is of this
        result = running.flush(30)

    assert (result.ok, result.exported, result.lost, sink.lost) == (False, 100, 140, 140)


def test_many_senders_at_once_are_accounted_for(monkeypatch):
    """However many receivers submit at the same moment, each span is delivered or counted as lost."""
    monkeypatch.setattr(recorder, "MAX_FOREIGN", 200)
    sink, together = Sink(), threading.Barrier(8)

    def send():
        together.wait(10)
        for _ in range(50):
            recorder.submit(foreign(20))

    with recording_to(sink, QUIET) as running:
        threads = [threading.Thread(target=send) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        result = running.flush(30)

    assert result.exported + result.lost == 8 * 50 * 20
    assert (len(sink.ids), sink.lost) == (result.exported, result.lost)


def test_the_garbage_collector_may_end_spans_anywhere():
    """Streams that are dropped in a cycle end in whatever thread collects them, and nothing hangs."""

    @hotspan.step
    def items():
        yield 1
        yield 2

    class Cycle:
        def __init__(self):
            self.me, self.stream = self, items()
            next(self.stream)

    sink = Sink()
    with recording_to(sink, QUIET) as running:
        for _ in range(3_000):
            Cycle()
        gc.collect()
        result = running.flush(30)

    assert (result.exported, result.lost) == (3_000, 0)


def test_flush_inside_a_signal_handler_does_not_hang(tmp_path):
    """A handler that interrupts a flush may itself flush and shut down."""
    program = """
import os, signal, sys, threading, time, hotspan
hotspan.configure(file=sys.argv[1])
signal.signal(signal.SIGTERM, lambda *_: (hotspan.flush(1), hotspan.shutdown(1), os._exit(5)))
threading.Thread(target=lambda: (time.sleep(0.3), os.kill(os.getpid(), signal.SIGTERM)), daemon=True).start()
while True:
    with hotspan.step():
        pass
    hotspan.flush(1)
"""
    done = subprocess.run([sys.executable, "-c", program, tmp_path / "run.jsonl"], timeout=60, check=False)

    assert done.returncode == 5


def test_nothing_runs_before_the_first_span():
    """A recorder that took nothing has started no thread of its own."""
    before = threading.active_count()
    with recording_to(Sink(), QUIET):
        assert threading.active_count() == before + 1  # the channel's


def test_what_another_drain_is_at_when_time_is_up_is_counted_once():
    """A drain that is stuck in an exporter's hands keeps its batch; what waits behind it is lost, once."""
    at_work, go_on = threading.Event(), threading.Event()

    class Slow(Sink):
        def pack(self, batch):
            """Wait in the drain itself."""
            at_work.set()
            go_on.wait(10)
            return list(batch)

    with recording_to(Slow(), QUIET) as own:
        drained = threading.Thread(target=own.drain)
        with hotspan.step("first"):
            pass
        drained.start()
        assert at_work.wait(10)
        for _ in range(5):
            with hotspan.step("behind"):
                pass
        stopped = own.shutdown(0.05)
        go_on.set()
        drained.join()
    (only,) = own.channels
    assert stopped.lost == 5
    assert only.n_exported + only.n_lost == own.started.value() == 6
