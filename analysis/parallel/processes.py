"""How a worker comes to be: as a copy of this process where that is safe, else as a new interpreter.

A copy has everything imported, and begins to read within milliseconds.  A new interpreter needs some tenths
of a second of CPU for that, in which it could read tens of thousands of spans.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import warnings
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

if sys.platform == "linux":
    import fcntl

WATCHER: Final = "hotspan-progress"  # a thread that only shows that work goes on: nothing waits for it
_BUFFER_BYTES: Final = 1 << 20
_STDERR: Final = 2
_START: Final = (
    "import sys; sys.path[:] = {!r}; from hotspan.analysis.parallel.worker import main; "
    "main(sys.stdin.buffer, sys.stdout.buffer)"
)


class Process(NamedTuple):
    """A worker's process, as far as the pool has to do with it."""

    orders: IO[bytes]  # to write
    answers: IO[bytes]  # to read


def can_be_copied() -> bool:
    """Return whether a copy of this process works: there is no other thread that may hold a lock just now."""
    others = [thread for thread in threading.enumerate() if thread is not threading.current_thread()]
    return sys.platform == "linux" and all(thread.name == WATCHER for thread in others)


def can_be_started() -> bool:
    """Return whether a new interpreter can be started."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


def copies(n: int, stack: ExitStack) -> list[Process]:
    """Return some workers that are copies of this process; they end with the stack.

    Raises:
        OSError: The system has no more processes, memory or files.
    """
    return [_copy(stack) for _ in range(n)]


def interpreters(n: int, stack: ExitStack) -> list[Process]:
    """Return some workers that are interpreters of their own; they end with the stack.

    Raises:
        OSError: As above.
    """
    return [_interpreter(stack) for _ in range(n)]


def _copy(stack: ExitStack) -> Process:
    # What the copy needs must be there: an import would wait for locks of threads that it does not have.
    from hotspan.analysis.parallel import worker  # noqa: PLC0415 - not where new interpreters do it

    caller, collects = os.getpid(), gc.isenabled()
    gc.disable()  # what the program left as garbage is the program's to finalise
    unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # nothing is half done
    try:
        orders, to_worker = _pipe(stack)
        from_worker, answers = _pipe(stack)
        with warnings.catch_warnings():  # of threads that libraries have, such as those of numpy
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            _let_go({orders.fileno(), answers.fileno()})
            signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
            worker.main(orders, answers)
        stack.callback(_end, pid)
    finally:
        if os.getpid() != caller:  # not a line of the program that called runs a second time
            os._exit(1)
        if collects:
            gc.enable()
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
    orders.close()
    answers.close()
    return Process(to_worker, from_worker)


def _let_go(kept: Collection[int]) -> None:
    """Let go of what a copy has of the program: its handlers, and all files and sockets but some."""
    for one in signal.valid_signals():
        if callable(signal.getsignal(one)):
            signal.signal(one, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    sys.settrace(None)
    sys.setprofile(None)
    for number in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
        if number > _STDERR and number not in kept:
            with suppress(OSError):  # that of the list itself
                os.close(number)


def _pipe(stack: ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    reading, writing = os.pipe()
    if sys.platform == "linux":
        with suppress(OSError):  # who has many pipes gets none so large
            fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _BUFFER_BYTES)  # else each message waits for the reader
    ends = os.fdopen(reading, "rb", _BUFFER_BYTES), os.fdopen(writing, "wb", _BUFFER_BYTES)
    for end in ends:
        stack.callback(_close, end)
    return ends


def _close(pipe: IO[bytes]) -> None:
    with suppress(OSError):  # what was not yet written has no reader any more
        pipe.close()


def _end(pid: int) -> None:
    with suppress(ChildProcessError):  # the program itself waited for it, or lets nobody wait
        if os.waitpid(pid, os.WNOHANG) == (0, 0):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _interpreter(stack: ExitStack) -> Process:
    process = subprocess.Popen(  # noqa: S603 - this very interpreter
        [sys.executable, "-c", _START.format(sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOTSPAN_DISABLED": "true"},
        bufsize=_BUFFER_BYTES,
    )
    stack.callback(_stop, process)
    if process.stdin is None or process.stdout is None:
        raise OSError
    return Process(process.stdin, process.stdout)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()
