"""What tracing costs: Hotspan, the OpenTelemetry SDK and the other tracing libraries, beside each other.

    python benchmarks/overhead.py                                    # every contender, printed
    python benchmarks/overhead.py --contenders floor,hotspan,opentelemetry_sdk --rows sync,request --rounds 5
    python benchmarks/overhead.py --rows all --write                 # the table of benchmarks/README.md

Each contender runs in a process and a virtual environment of its own, made with `uv` and kept in the user's
cache.  The rounds are interleaved over the contenders, so that a machine that slows down slows all alike.
How a figure comes about is in benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contenders.harness import environments, machine, table
from contenders.harness.environments import BENCHMARKS, ROOT, InstallError
from contenders.harness.processes import Collector, WorkerError, WorkerProcess, target
from contenders.harness.rows import BY_KEY, FLOOR, ROWS
from contenders.harness.table import Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contenders.harness.environments import Contender
    from contenders.harness.rows import Row

N_ROUNDS = 15
N_SPANS = 100_000
MAX_PROCESS_ROUNDS = 5  # of the rows that take a new process each time
README = BENCHMARKS / "README.md"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the table, and write it where asked."""
    every = environments.contenders()
    options = _options(arguments, every)
    chosen = {key: every[key] for key in options.contenders}
    with tempfile.TemporaryDirectory(prefix="hotspan-bench-") as scratch, Collector() as collector:
        run = Run(chosen, options.rows, Path(scratch), collector, n_spans=options.spans)
        run.install()
        run.thread_rows(options.rounds)
        run.process_rows(min(options.rounds, MAX_PROCESS_ROUNDS))
    text = table.render(run.results, chosen, options.rows, _header(options, run.results))
    print(text)
    if options.write:
        table.write(README, text)
        say(f"written to {README}")


def _options(arguments: Sequence[str] | None, every: dict[str, Contender]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    default_rows = ",".join(row.key for row in ROWS if row.is_default)
    parser.add_argument("--contenders", default="all", help=f"comma-separated, of: {', '.join(every)}")
    parser.add_argument(
        "--rows",
        default=default_rows,
        help=f"comma-separated, or all, of: {', '.join(BY_KEY)} (default: {default_rows})",
    )
    parser.add_argument("--rounds", type=int, default=N_ROUNDS, help="of readings (default: %(default)s)")
    parser.add_argument(
        "--spans", type=int, default=N_SPANS, help="in a sustained run (default: %(default)s)"
    )
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/README.md")
    options = parser.parse_args(arguments)
    options.contenders = _chosen(parser, "contender", options.contenders, list(every))
    options.rows = [BY_KEY[key] for key in _chosen(parser, "row", options.rows, list(BY_KEY))]
    if BY_KEY["openai"] in options.rows and FLOOR not in options.contenders:
        options.contenders.insert(0, FLOOR)  # it measures the bare client
    return options


def _chosen(parser: argparse.ArgumentParser, what: str, text: str, known: list[str]) -> list[str]:
    names = known if text == "all" else [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in known:
            parser.error(f"no {what} {name!r}; there are: {', '.join(known)}")
    return [name for name in known if name in names]


def say(message: str, *, passing: bool = False) -> None:
    """Write progress to standard error; a passing message is overwritten by the next on a terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[2K{message}", end="" if passing else "\n", file=sys.stderr, flush=True)
    elif not passing:
        print(message, file=sys.stderr, flush=True)


class Run:
    """One run of the benchmark.

    Attributes:
        results: Contender -> what was measured, filled as it goes.
    """

    def __init__(
        self,
        contenders: dict[str, Contender],
        rows: Sequence[Row],
        scratch: Path,
        collector: Collector,
        *,
        n_spans: int,
    ) -> None:
        self._contenders, self._rows, self._scratch = contenders, rows, scratch
        self._collector, self._n_spans = collector, n_spans
        self._pythons: dict[str, Path] = {}
        self.results = {key: Result() for key in contenders}

    def install(self) -> None:
        """Make the environments that are not there yet."""
        for key, contender in self._contenders.items():
            if not environments.is_ready(contender):
                say(f"installing {contender.title}")
            try:
                python = environments.provide(contender)
                self.results[key].versions = environments.versions(contender, python)
                self._pythons[key] = python
            except InstallError as exc:
                self._give_up(key, "", exc)

    def thread_rows(self, n_rounds: int) -> None:
        """Measure the rows of the calling thread, in processes that stay, round by round."""
        rows = [row for row in self._rows if not row.is_process]
        workers = self._start_all() if rows else {}
        try:
            for number in range(n_rounds):
                for row in rows:
                    for key in _shuffled(workers):
                        say(f"round {number + 1}/{n_rounds}: {row.key}, {key}", passing=True)
                        self._ask(workers, key, row)
                say(f"round {number + 1}/{n_rounds}: {self._short(rows)}")
        finally:
            for worker in workers.values():
                worker.close()

    def _start_all(self) -> dict[str, WorkerProcess]:
        workers = {}
        for key, python in list(self._pythons.items()):
            say(f"starting {key}", passing=True)
            where = target("drop", self._collector, self._scratch)
            try:
                workers[key] = WorkerProcess(self._contenders[key], python, self._scratch, where)
            except WorkerError as exc:
                self._give_up(key, "", exc)
                del self._pythons[key]  # it will not start for the other rows either
        return workers

    def _ask(self, workers: dict[str, WorkerProcess], key: str, row: Row) -> dict[str, Any] | None:
        """Ask a worker for a row, and keep the answer; a row that failed is not asked for again."""
        result = self.results[key]
        if row.key in result.problems:
            return None
        try:
            answer = workers[key].ask(row.key)
        except WorkerError as exc:
            self._give_up(key, row.key, exc)
            workers.pop(key).close()
            return None
        result.refused.update(answer.get("refused", ()))
        if "error" in answer:
            self._give_up(key, row.key, answer["error"])
        elif "value" in answer:
            result.rounds.setdefault(row.key, []).append(answer["value"])
            return answer
        return None

    def process_rows(self, n_rounds: int) -> None:
        """Measure the rows of a whole process, each reading in a new one."""
        rows = [row for row in self._rows if row.is_process]
        for number in range(n_rounds if rows else 0):
            for row in rows:
                for key in _shuffled(self._pythons):
                    say(f"process round {number + 1}/{n_rounds}: {row.key}, {key}", passing=True)
                    self._process_row(key, row)
            say(f"process round {number + 1}/{n_rounds}: {self._short(rows)}")

    def _process_row(self, key: str, row: Row) -> None:
        if row.target not in self._contenders[key].targets:
            return
        where = target(row.target, self._collector, self._scratch, self._n_spans)
        n_before = self._collector.n_spans()
        try:
            worker = WorkerProcess(self._contenders[key], self._pythons[key], self._scratch, where)
        except WorkerError as exc:
            self._give_up(key, row.key, exc)
            return
        answer = self._ask({key: worker}, key, row) or {}
        if "n_started" in answer:
            in_file = row.target == "file"
            n_arrived = _spans_in(Path(where.path)) if in_file else self._collector.n_spans() - n_before
            lost = self.results[key].lost_ratio.setdefault(row.key, [])
            lost.append(1 - n_arrived / answer["n_started"])
        worker.close()

    def _give_up(self, key: str, row: str, why: object) -> None:
        self.results[key].problems[row] = str(why)
        say(f"{key}{f', {row}' if row else ''}: not measured: {why}")

    def _short(self, rows: Sequence[Row]) -> str:
        """Return the first two contenders' last figures, to see that it lives."""
        told = []
        for key, result in list(self.results.items()):
            last = [table.figure(result.rounds[row.key][-1]) for row in rows if result.rounds.get(row.key)]
            told.append(f"{key} {'/'.join(last)}")
        return "  ".join(told)


def _shuffled(keys: dict[str, Any]) -> list[str]:
    return random.sample(list(keys), len(keys))


def _spans_in(path: Path) -> int:
    with path.open("rb") as file:
        return sum(line.count(b'"spanId"') for line in file)


def _header(options: argparse.Namespace, results: dict[str, Result]) -> list[str]:
    versions = {name: version for result in results.values() for name, version in result.versions.items()}
    others = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    return [
        f"{dt.datetime.now(dt.UTC):%Y-%m-%d}, commit {commit()}; {machine.describe()}.",
        f"{options.rounds} rounds; sustained runs of {options.spans:,} spans.",
        "",
        f"Versions: {others}.",
    ]


def commit() -> str:
    """Return the commit of the working tree, marked where something was changed."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - a constant
    return done.stdout.strip() or "unknown"


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    main()
