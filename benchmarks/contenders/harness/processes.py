"""The processes of a run: the collector, and one worker per contender that answers until it is closed."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Self

from contenders.harness.environments import BENCHMARKS
from contenders.harness.target import Target

if TYPE_CHECKING:
    from contenders.harness.environments import Contender
    from contenders.harness.target import Kind

ANSWER_TIMEOUT_S: Final = 180
# What a worker is given of this process's environment: no telemetry setting and no key of the user's.
_KEPT: Final = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SSL_CERT_FILE")
# For whatever does not use Python's sockets.
_NO_WAY_OUT: Final = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
_OFFLINE: Final = {"NO_PROXY": "127.0.0.1,localhost", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1"}


class WorkerError(RuntimeError):
    """A worker did not start, or does not answer; the message says why."""


class Collector:
    """The collector that all contenders send to, in a process of its own."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "contenders.harness.sink"],
            cwd=BENCHMARKS,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None  # noqa: S101 - a pipe, as asked for
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"

    def n_spans(self) -> int:
        """Return how many spans have come so far."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{self.url}/count") as answer:
            return int(json.load(answer)["spans"])

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class WorkerProcess:
    """One contender, started, in its own environment, home and working directory.

    Args:
        contender: What runs in it.
        python: The interpreter of its environment.
        scratch: A folder that is thrown away afterwards.
        target: Where its spans go.
        module: What runs there: it answers as `contenders.harness.worker` does.

    Raises:
        WorkerError: It does not start.
    """

    def __init__(
        self,
        contender: Contender,
        python: Path,
        scratch: Path,
        target: Target,
        module: str = "contenders.harness.worker",
    ) -> None:
        home = Path(tempfile.mkdtemp(prefix=contender.key, dir=scratch))
        own = {key: value.format(url=target.url) for key, value in contender.environment.items()}
        base = {key: os.environ[key] for key in _KEPT if key in os.environ}
        self._log = (home / "log.txt").open("w+")
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [str(python), "-m", module, contender.key, target.to_json()],
            cwd=home,
            env={**base, **_OFFLINE, **_NO_WAY_OUT, **own, "HOME": str(home), "PYTHONPATH": str(BENCHMARKS)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            bufsize=1,
        )
        try:
            self._answer()
        except WorkerError:
            self.close()
            raise

    def ask(self, row: str, **asked: Any) -> dict[str, Any]:
        """Have a row measured, with what else is asked for it, and return the answer.

        Raises:
            WorkerError: There is none.
        """
        with contextlib.suppress(OSError):  # it has died: `_answer` says of what
            _pipe(self._process.stdin).write(json.dumps({"row": row, **asked}) + "\n")
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        out = _pipe(self._process.stdout)
        with selectors.DefaultSelector() as selector:
            selector.register(out, selectors.EVENT_READ)
            if not selector.select(ANSWER_TIMEOUT_S):
                msg = f"no answer within {ANSWER_TIMEOUT_S} s"
                raise WorkerError(msg)
        line = out.readline()
        if not line:
            raise WorkerError(self._last_words())
        return json.loads(line)  # type: ignore[no-any-return]  # the worker's own

    def _last_words(self) -> str:
        self._process.wait()
        self._log.seek(0)
        said = self._log.read().strip().splitlines()
        return said[-1][:300] if said else f"ended with {self._process.returncode}"

    def log(self) -> str:
        """Return what the contender has printed."""
        self._log.flush()
        return Path(self._log.name).read_text()

    def close(self) -> None:
        """End the process; nothing that it still holds is waited for."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            if stream is not None:
                stream.close()


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None  # noqa: S101 - a pipe, as asked for
    return stream


def target(kind: Kind | str, collector: Collector, scratch: Path, n_spans: int = 0) -> Target:
    """Return the target of this kind, with a file name of its own."""
    path = tempfile.mktemp(suffix=".jsonl", dir=scratch)  # noqa: S306 - in a folder of ours
    url = f"{collector.url}/hang" if kind == "hang" else collector.url
    return Target(kind, url, path, n_spans)  # type: ignore[arg-type]  # a row's own kind
