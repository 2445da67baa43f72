"""Workers that are copies of a process do nothing but their work, and only where that is safe."""

from __future__ import annotations

import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import pytest

from hotspan.analysis.parallel import processes, worker
from hotspan.analysis.parallel.messages import receive, send

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux only")

_PROGRAM = """
import atexit, os, signal, sys, time
from contextlib import ExitStack
from hotspan.analysis.parallel import processes

def told(*_):
    print("told", flush=True)
    sys.exit(0)

atexit.register(print, "at exit")
signal.signal(signal.SIGTERM, told)
try:
    with ExitStack() as stack:
        found = processes.copies(2, stack)
        {middle}
finally:
    print("finally")
"""


def _run(middle):
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(middle=middle)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


@pytest.fixture
def other_thread():
    """Run a thread beside the test; returns a function that begins it, given its name."""
    done, threads = threading.Event(), []

    def begin(name):
        threads.append(threading.Thread(target=done.wait, name=name))
        threads[-1].start()

    yield begin
    done.set()
    for thread in threads:
        thread.join()


def _is_alone():
    return threading.active_count() == 1


@linux_only
def test_a_process_with_other_threads_is_not_copied(other_thread):
    """One of them may hold a lock; the one that shows progress holds none that matters."""
    if _is_alone():
        assert processes.can_be_copied()
    other_thread("somebody")
    assert not processes.can_be_copied()


@linux_only
def test_a_terminal_that_watches_does_not_matter(other_thread):
    """The command shows progress in a thread of its own."""
    before = processes.can_be_copied()
    other_thread(processes.WATCHER)
    assert processes.can_be_copied() is before


@linux_only
def test_nothing_of_the_program_runs_twice():
    """Neither what it does at its end, nor its handlers of signals; and nothing is said."""
    done = _run("time.sleep(0.2)")

    assert done.stdout.split("\n") == ["finally", "at exit", ""]
    assert done.stderr == ""
    assert done.returncode == 0


@linux_only
def test_a_copy_has_nothing_of_the_program(monkeypatch, tmp_path):
    """No handler of a signal, no profiler, no file and no socket: a listener is not kept open by it."""

    def told(_orders, answers):
        handlers = [one for one in signal.valid_signals() if callable(signal.getsignal(one))]
        files = sorted(int(entry.name) for entry in pathlib.Path("/proc/self/fd").iterdir())
        send(answers, (handlers, sys.getprofile(), [number for number in files if number > 2]))

    monkeypatch.setattr(worker, "main", told)
    before = signal.signal(signal.SIGHUP, lambda *_signal: None)
    sys.setprofile(lambda *_event: None)
    try:
        with (tmp_path / "file").open("w"), socket.create_server(("127.0.0.1", 0)), ExitStack() as stack:
            handlers, profile, files = receive(processes.copies(2, stack)[1].answers)
    finally:
        sys.setprofile(None)
        signal.signal(signal.SIGHUP, before)

    assert (handlers, profile) == ([], None)
    assert len(files) == 3  # its two pipes, and the folder that was just listed


@linux_only
def test_copies_are_gone_with_the_program():
    """However it ends: they hold no end of a pipe that tells the others."""
    done = _run("os.kill(os.getpid(), signal.SIGKILL)")

    assert done.returncode == -signal.SIGKILL  # the pipe of its output is closed: nobody has it any more


@linux_only
def test_copies_talk_each_for_itself(monkeypatch):
    """What is ordered of one is answered by that one, and they end with the stack."""
    monkeypatch.setattr(worker, "main", lambda orders, answers: send(answers, (os.getpid(), receive(orders))))

    with ExitStack() as stack:
        found = processes.copies(3, stack)
        for number, process in enumerate(found):
            send(process.orders, number)
        answers = [receive(process.answers) for process in found]

    assert [number for _, number in answers] == [0, 1, 2]
    for pid, _ in answers:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@linux_only
def test_a_copy_that_is_told_to_end_ends(monkeypatch):
    """The handler of the program is not meant for it."""
    monkeypatch.setattr(worker, "main", lambda _orders, answers: (send(answers, os.getpid()), time.sleep(60)))
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_signal: heard.append(os.getpid()))
    try:
        with ExitStack() as stack:
            (process,) = processes.copies(1, stack)
            os.kill(receive(process.answers), signal.SIGTERM)
            with pytest.raises(EOFError):
                receive(process.answers)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == []
