"""How fast traces become a report, and in how much memory: from a thousand spans to a million.

    python benchmarks/analysis_scale.py                              # 1,000 to 1,000,000 spans, printed
    python benchmarks/analysis_scale.py --sizes 1000,10000 --rounds 5
    python benchmarks/analysis_scale.py --crisp ~/src/CRISP --write  # the table of benchmarks/README.md

The traces are made by the script: requests of a RAG service, five spans each, as Hotspan writes them, with
answers that are streamed (about a kilobyte a span) and answers that come whole (three quarters of it).  Every
reading starts a process of its own; the rounds are interleaved over the contenders, so that a machine that
slows down slows all alike.
"""

from __future__ import annotations

import argparse
import datetime as dt
import math
import statistics
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from contenders.harness import machine
from contenders.harness.environments import BENCHMARKS, ROOT
from scale import traces
from scale.contenders import Reading, read

if TYPE_CHECKING:
    from collections.abc import Sequence

SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)
N_ROUNDS: Final = 3
START_IS_SMALL: Final = 10_000  # spans from which on the start of the program is no part of the cost
MAX_PLAIN: Final = 100_000  # it holds everything in memory: some 10 KB a span
MAX_CRISP: Final = 100_000  # a file for every trace
LEAST_WORK: Final = 0.1  # of a reading; where its start is more of it, the rest is lost in the noise
README: Final = BENCHMARKS / "README.md"
BEGIN: Final = "<!-- analysis: begin -->"
END: Final = "<!-- analysis: end -->"
COLUMNS: Final = (
    "spans",
    "answers",
    "file, MB",
    "Hotspan, spans/s",
    "CPU, µs/span",
    "peak, MB",
    "json and recursion, spans/s",
    "peak, MB",
    "CRISP, spans/s",
    "its start left out",
)
STREAMED, WHOLE = "streamed", "whole"
ANSWERS: Final = (STREAMED, WHOLE)
NOTHING: Final = "–"  # noqa: RUF001 - a dash


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the table, and write it where asked."""
    options = _options(arguments)
    rows = []
    for size in options.sizes:
        for answers in ANSWERS:
            with tempfile.TemporaryDirectory(prefix="hotspan-bench-") as folder:
                path = Path(folder) / "run.jsonl"
                traces.write(path, size, is_streamed=answers == STREAMED)
                rows.append((size, answers, path.stat().st_size, _readings(path, size, options)))
    text = "\n".join([*_table(rows), "", *_notes(rows, options)]) + "\n"
    print(text)
    if options.write:
        _write(text)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="spans, comma-separated")
    parser.add_argument("--rounds", type=int, default=N_ROUNDS, help="of readings (default: %(default)s)")
    parser.add_argument("--crisp", type=Path, help="a checkout of CRISP; without it there is no such column")
    parser.add_argument("--crisp-python", default=sys.executable, help="an interpreter with its packages")
    parser.add_argument("--crisp-version", default="", help="what the notes say of it, such as its commit")
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/README.md")
    options = parser.parse_args(arguments)
    options.sizes = [int(size) for size in options.sizes.split(",")]
    if options.crisp is not None and not options.crisp.is_dir():
        parser.error(f"--crisp: no folder {options.crisp}; clone CRISP's repository there")
    return options


def _readings(path: Path, size: int, options: argparse.Namespace) -> dict[str, list[Reading]]:
    """Return the readings of each contender, round by round."""
    found: dict[str, list[Reading]] = {}
    for number in range(options.rounds):
        print(f"{size:,} spans: round {number + 1}/{options.rounds}", file=sys.stderr, flush=True)
        found.setdefault("hotspan", []).append(read("hotspan", path))
        if size <= MAX_PLAIN:
            found.setdefault("plain", []).append(read("plain", path))
        if options.crisp is not None and size <= MAX_CRISP:
            found.setdefault("crisp", []).append(
                read("crisp", path, str(options.crisp.resolve()), options.crisp_python)
            )
    return found


Rows = list[tuple[int, str, int, dict[str, list[Reading]]]]


def _table(rows: Rows) -> list[str]:
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + " ---: |" * len(COLUMNS)]
    for size, answers, n_bytes, readings in rows:
        own, plain, crisp = (readings.get(name, []) for name in ("hotspan", "plain", "crisp"))
        cells = [
            f"{size:,}",
            answers,
            f"{n_bytes / 1e6:.3g}",
            f"{_rate(own):,.0f}",
            f"{_cpu_us(own):.1f}",
            f"{_peak_mb(own):.0f}",
            _compared(_rate(plain), own) if plain else NOTHING,
            f"{_peak_mb(plain):.0f}" if plain else NOTHING,
            _compared(_rate(crisp), own) if crisp else NOTHING,
            _once_started(crisp, own) if crisp else NOTHING,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _rate(readings: Sequence[Reading]) -> float:
    return statistics.median(reading.n_spans / reading.wall_s for reading in readings)


def _once_started(readings: Sequence[Reading], own: Sequence[Reading]) -> str:
    """Return the rate without what the start takes, unless there is little else."""
    wall_s = statistics.median(reading.wall_s for reading in readings)
    work_s = wall_s - statistics.median(reading.start_s for reading in readings)
    return _compared(readings[0].n_spans / work_s, own) if work_s > LEAST_WORK * wall_s else NOTHING


def _compared(rate: float, own: Sequence[Reading]) -> str:
    return f"{rate:,.0f} (1/{_rate(own) / rate:.1f})"


def _cpu_us(readings: Sequence[Reading]) -> float:
    return statistics.median(reading.cpu_s / reading.n_spans * 1e6 for reading in readings)


def _peak_mb(readings: Sequence[Reading]) -> float:
    return statistics.median(reading.peak_bytes / 1e6 for reading in readings)


def _notes(rows: Rows, options: argparse.Namespace) -> list[str]:
    costs = {size: _cpu_us(readings["hotspan"]) for size, answers, _, readings in rows if answers == STREAMED}
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("hotspan", "msgspec", "numpy"))
    machine_line = f"{dt.datetime.now(dt.UTC):%Y-%m-%d}, commit {_commit()}; {machine.describe()}."
    how = f"Medians of {options.rounds} rounds; {versions}."
    lines = [machine_line, how]
    from_size = min((size for size in costs if size >= START_IS_SMALL), default=None)
    if from_size is not None and max(costs) > from_size:
        ratio = costs[max(costs)] / costs[from_size]
        lines.append(f"Cost of a span at {max(costs):,} spans over that at {from_size:,}: {ratio:.2f}.")
    if options.crisp is None:
        lines.append(
            "CRISP was not measured: it is on no package index. Clone its public repository, install what it "
            "asks for, and name both: `--crisp PATH --crisp-python PATH/.venv/bin/python`."
        )
    else:
        timed = [one for _, _, _, readings in rows for one in readings.get("crisp", [])]
        lines.append(_crisp_note(timed, options.crisp_version))
    return lines


def _crisp_note(readings: Sequence[Reading], version: str) -> str:
    start_s = statistics.median([reading.start_s for reading in readings] or [math.nan])
    return (
        f"CRISP{version and f' ({version})'} is timed from the start of its program to its page, one worker, "
        f"a Jaeger JSON file a trace; its start is what one trace alone takes it, {start_s:.2f} s."
    )


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - a constant
    return done.stdout.strip() or "unknown"


def _write(text: str) -> None:
    page = README.read_text()
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        msg = f"{README} has no lines {BEGIN} and {END} to put the table between"
        raise ValueError(msg)
    README.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}")


if __name__ == "__main__":
    main()
