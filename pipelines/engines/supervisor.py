"""Run as a program: starts a command and sees to it that nothing of it outlives the process that asked.

    python -I supervisor.py GRACE_S COMMAND…

Its stdin is a pipe that the owner holds open.  It ends everything when the pipe closes (the owner closed it,
returned, raised, was killed), when its own parent is another than at the start (a fork of the owner may keep
the pipe open), on SIGTERM, or when the command ends by itself.  "Everything" is the command's process group
and every descendant that left it: this process adopts orphans, so it sees them all.  It exits with the
command's status.  Standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_TICK_S = 0.2


def main() -> int:
    """Supervise the command in `sys.argv`; return its exit status."""
    grace_s, command = float(sys.argv[1]), sys.argv[2:]
    owner = os.getppid()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    child = subprocess.Popen(  # noqa: S603 - the command is what the caller wants to run
        command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=_die_with_parent,  # noqa: PLW1509 - this program has one thread
    )
    try:
        while child.poll() is None and os.getppid() == owner and not _owner_closed():
            pass
    finally:
        _end(child, grace_s)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def _prctl(option: int, value: int) -> None:
    # Linux only; elsewhere the process group alone has to do.
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _die_with_parent() -> None:
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _owner_closed() -> bool:
    readable, _, _ = select.select([sys.stdin], [], [], _TICK_S)
    return bool(readable)  # the owner never writes: readable is the end of the pipe


def _end(child: subprocess.Popen[bytes], grace_s: float) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second request must not break off the first
    _signal_group(child.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(grace_s)
    _signal_group(child.pid, signal.SIGKILL)
    child.wait()
    while orphans := _children():
        for pid in orphans:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _reap()
        time.sleep(0.01)  # a killed process leaves /proc some moments after its death


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _children() -> list[int]:
    """Return the processes whose parent is this one: after the command's death, all that is left of it."""
    me, found = os.getpid(), []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # PID (NAME) STATE PARENT …: the name may hold blanks and brackets.
            if int(stat.read_text().rpartition(")")[2].split()[1]) == me:
                found.append(int(stat.parent.name))
    return found


if __name__ == "__main__":
    sys.exit(main())
