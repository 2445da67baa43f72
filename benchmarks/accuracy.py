"""How true recorded times are: Hotspan's clients, and others, against a server whose every delay is known.

    python benchmarks/accuracy.py                                  # everything, printed; minutes
    python benchmarks/accuracy.py --contenders floor,hotspan --streams 64 --rounds 3
    python benchmarks/accuracy.py --write                          # the table of benchmarks/README.md

The server keeps to one core, the client to another.  The rounds are interleaved over the contenders, so that
a machine that slows down slows all alike.  How a figure comes about is in benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import random
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from contenders.harness import environments, machine, table
from contenders.harness.environments import BENCHMARKS, InstallError
from contenders.harness.processes import WorkerError, WorkerProcess
from contenders.harness.target import Target
from known_delays.errors import FIGURES, errors, missing_ratio, spread
from known_delays.schedule import Schedule
from known_delays.table import BEGIN, END, Reading, Row, render
from overhead import commit, say

if TYPE_CHECKING:
    from collections.abc import Sequence

README = BENCHMARKS / "README.md"
N_ROUNDS = 7
STREAMS = (1, 16, 64)
CALLS: Final = {1: 8, 16: 3}  # of one stream in one round, beside one to warm up; else 2
# Contender -> the kinds of client that are called there; see known_delays/drive.py.
KINDS: Final = {
    "floor": ("httpx", "httpx-async", "bare-openai", "bare-openai-async"),
    "hotspan": ("llm", "llm-async", "openai", "openai-async"),
    "openinference": ("openai", "openai-async"),
    "otel_genai": ("openai", "openai-async"),
    "traceloop": ("openai", "openai-async"),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the table, and write it where asked."""
    options = _options(arguments)
    schedule = Schedule()
    with tempfile.TemporaryDirectory(prefix="hotspan-bench-") as scratch, ServerProcess(schedule) as server:
        run = Run(options.contenders, Path(scratch), server, schedule)
        try:
            for number in range(options.rounds):
                run.round(number, options.streams)
                say(f"round {number + 1}/{options.rounds}")
        finally:
            run.close()
    text = render(run.readings, run.titles, options.streams, _header(options, schedule, run))
    print(text)
    if options.write:
        table.write(README, text, (BEGIN, END))
        say(f"written to {README}")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--contenders", default="all", help=f"comma-separated, of: {', '.join(KINDS)}")
    parser.add_argument(
        "--streams",
        default=",".join(map(str, STREAMS)),
        help="at once, comma-separated (default: %(default)s)",
    )
    parser.add_argument("--rounds", type=int, default=N_ROUNDS, help="of readings (default: %(default)s)")
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/README.md")
    options = parser.parse_args(arguments)
    chosen = list(KINDS) if options.contenders == "all" else options.contenders.split(",")
    if unknown := [name for name in chosen if name not in KINDS]:
        parser.error(f"no contender {unknown[0]!r}; there are: {', '.join(KINDS)}")
    options.contenders = [name for name in KINDS if name in chosen]
    try:
        options.streams = [int(part) for part in options.streams.split(",")]
    except ValueError:
        parser.error(f"--streams {options.streams!r}: expected numbers, like 1,16,64")
    if min(options.streams) < 1 or options.rounds < 1:
        parser.error("--streams and --rounds: expected 1 or more")
    return options


class ServerProcess:
    """The server with the known delays, in a process of its own."""

    def __init__(self, schedule: Schedule) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", "known_delays.server", schedule.to_json()],
            cwd=BENCHMARKS,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None  # noqa: S101 - a pipe, as asked for
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"

    def account(self) -> dict[str, list[int]]:
        """Return the server's stamps of the answers since the last time."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{self.url}/account") as answer:
            return json.load(answer)  # type: ignore[no-any-return]  # the server's own

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


class Run:
    """One run of the benchmark.

    Attributes:
        readings: Row -> what each round found.
        titles: Contender -> what the table calls it; a contender that could not run says why.
        versions: Package -> version.
        late_ns: How late the server sent what was due.
    """

    def __init__(
        self, contenders: Sequence[str], scratch: Path, server: ServerProcess, schedule: Schedule
    ) -> None:
        self._server, self._schedule = server, schedule
        self._workers: dict[str, WorkerProcess] = {}
        self.readings: dict[Row, list[Reading]] = {}
        self.titles: dict[str, str] = {}
        self.versions: dict[str, str] = {}
        self.late_ns: list[float] = []
        self._problems: dict[str, str] = {}
        every = environments.contenders()
        for key in contenders:
            self._start(every[key], scratch)

    @property
    def problems(self) -> list[str]:
        """Why there are no figures of a contender, one line each."""
        return [f"- {self.titles[key]}: not measured: {why}" for key, why in self._problems.items()]

    def _start(self, contender: environments.Contender, scratch: Path) -> None:
        key = contender.key
        self.titles[key] = contender.title
        target = Target("keep", self._server.url, str(scratch / f"{key}.jsonl"))
        try:
            if not environments.is_ready(contender):
                say(f"installing {contender.title}")
            python = environments.provide(contender)
            versions = environments.versions(contender, python)
            self._workers[key] = WorkerProcess(contender, python, scratch, target, "known_delays.worker")
        except (InstallError, WorkerError) as exc:
            self._give_up(key, str(exc))
        else:
            self.versions |= versions
            self.titles[key] += f" {next(iter(versions.values()))}" if key != "floor" else ""

    def round(self, number: int, streams: Sequence[int]) -> None:
        """Take one reading of every row, in random order."""
        rows = [Row(key, kind, n) for key in self._workers for kind in KINDS[key] for n in streams]
        for row in random.sample(rows, len(rows)):
            if row.contender in self._workers:
                say(f"round {number + 1}: {row.contender}, {row.kind}, {row.n_streams} streams", passing=True)
                self._read(row, f"r{number}")

    def _read(self, row: Row, tag: str) -> None:
        asked = {
            "url": self._server.url,
            "tag": f"{tag}-{row.contender}-{row.kind}-{row.n_streams}",
            "streams": row.n_streams,
            "calls": CALLS.get(row.n_streams, 2),
            "tokens": self._schedule.n_tokens,
            "spread_s": self._schedule.duration_ns / 1e9,
        }
        try:
            answer = self._workers[row.contender].ask(row.kind, **asked)
        except WorkerError as exc:
            self._give_up(row.contender, f"{row.kind}: {exc}")
            return
        truth = self._server.account()
        if "error" in answer:
            self._give_up(row.contender, f"{row.kind}: {answer['error']}")
            return
        self.late_ns += [late for stamps in truth.values() for late in self._lateness(stamps)]
        found = errors(answer["accounts"], truth)
        missing = {figure: missing_ratio(answer["accounts"], truth, figure) for figure in FIGURES}
        spreads = {figure: each for figure in FIGURES if (each := spread(found[figure])) is not None}
        self.readings.setdefault(row, []).append(Reading(spreads, missing, answer["cpu_us"]))

    def _lateness(self, stamps: Sequence[int]) -> list[float]:
        arrived, *sent = stamps
        return [at - arrived - self._schedule.due_ns(number) for number, at in enumerate(sent)]

    def _give_up(self, key: str, why: str) -> None:
        self._problems[key] = why
        say(f"{key}: not measured: {why}")
        worker = self._workers.pop(key, None)
        if worker is not None:
            worker.close()

    def close(self) -> None:
        """End the contenders' processes."""
        for worker in self._workers.values():
            worker.close()


def _header(options: argparse.Namespace, schedule: Schedule, run: Run) -> list[str]:
    late = spread(run.late_ns)
    lateness = "" if late is None else f", sent late by {late.p50 / 1e6:.2f} / {late.p99 / 1e6:.2f}"
    due = f"role {schedule.role_ns / 1e6:.0f}, first token {schedule.first_ns / 1e6:.0f}"
    delays = f"{due}, gaps {schedule.gap_ns / 1e6:.0f}{lateness}"
    versions = ", ".join(f"{name} {version}" for name, version in sorted(run.versions.items()))
    calls = ", ".join(f"{n} × {CALLS.get(n, 2)}" for n in options.streams)  # noqa: RUF001 - the sign for "times"
    return [
        *run.problems,
        "",
        f"{dt.datetime.now(dt.UTC):%Y-%m-%d}, commit {commit()}; {machine.describe()}.",
        f"{options.rounds} rounds of {calls} calls. Answers of {schedule.n_tokens} tokens; in ms: {delays}.",
        "",
        f"Versions: {versions}.",
    ]


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    main()
