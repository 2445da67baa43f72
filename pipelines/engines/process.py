"""A server process that cannot be left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_GRACE_S = 5.0  # for a server to end by itself, writing what it still holds


class ServerProcess:
    """A command under `supervisor.py`, its output in a log file.

    It ends with `stop()`, with this object, with this interpreter, and with this process however that dies.
    """

    def __init__(self, command: Sequence[str], *, log: Path, environment: Mapping[str, str]) -> None:
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            self._supervisor = subprocess.Popen(  # noqa: S603 - the command is what the caller wants to run
                [sys.executable, "-I", str(_SUPERVISOR), str(_GRACE_S), *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                cwd=log.parent,  # the folder of the caller may hold modules that the server would import
                start_new_session=True,  # Ctrl-C goes to the owner, which then stops this in order
            )
        self._finalizer = weakref.finalize(self, _stop, self._supervisor, os.getpid())

    @property
    def exit_status(self) -> int | None:
        """The command's exit status (128 + N for signal N); None while it runs."""
        return self._supervisor.poll()

    def stop(self) -> None:
        """End the command and all that it started, and wait for it.  May be called twice."""
        self._finalizer()

    def last_lines(self, n_lines: int = 15) -> str:
        """Return the end of the log."""
        text = self.log.read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-n_lines:])


def _stop(supervisor: subprocess.Popen[bytes], owner: int) -> None:
    if supervisor.stdin is not None:
        supervisor.stdin.close()
    if os.getpid() != owner:  # a fork of the owner closes its copy of the pipe and no more
        return
    try:
        supervisor.wait(_GRACE_S + 5)
    except subprocess.TimeoutExpired:
        # Its own death takes the command with it (PR_SET_PDEATHSIG).
        supervisor.kill()
        supervisor.wait()
