"""Who reads the traces: each in a process of its own, so that time and memory are its own.

python -m scale.contenders hotspan|plain FILE
python -m scale.contenders crisp FILE CHECKOUT PYTHON
"""

from __future__ import annotations

import json
import math
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

BENCHMARKS: Final = Path(__file__).resolve().parents[1]
_KIB: Final = 1024
_SAMPLES_S: Final = 0.1  # between two looks at the memory
_SPANS_SAID: Final = re.compile(r"totalNodes=(\d+)")  # of CRISP's log
_Span = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reading:
    """One file read to its report.

    Attributes:
        n_spans: Spans that the contender says it read.
        wall_s: From before the file is opened until the report is there, imports left out.  Of CRISP: from
            the start of its program to its end.
        cpu_s: CPU time of all its processes meanwhile; not taken of CRISP.
        peak_bytes: Largest resident memory of all its processes together, imports included; files that they
            share count once; not taken of CRISP.
        start_s: Of `wall_s`, what does not grow with the traces: the program's start.
    """

    n_spans: int
    wall_s: float
    cpu_s: float = math.nan
    peak_bytes: float = math.nan
    start_s: float = 0.0


def read(contender: str, path: Path, *more: str) -> Reading:
    """Let `hotspan`, `plain` or, with its checkout and interpreter, `crisp` read a file.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    command = [sys.executable, "-m", "scale.contenders", contender, str(path), *more]
    peak_bytes = 0
    with subprocess.Popen(command, cwd=BENCHMARKS, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - ours
        while process.poll() is None:
            peak_bytes = max(peak_bytes, _memory_of(process.pid))
            time.sleep(_SAMPLES_S)
        said = process.communicate()[0]
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    reading = Reading(**json.loads(said))
    # The process's own peak is exact; with its workers it is as often as it was looked at.
    return replace(reading, peak_bytes=max(reading.peak_bytes, peak_bytes))


def _memory_of(pid: int) -> int:
    """Return the resident memory of a process and its children; 0 where the system does not tell.

    Files that are mapped, such as libraries, count once.  To ask for less than this would be exact, and would
    cost the processes a tenth of their time.
    """
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        pages = [Path(f"/proc/{one}/statm").read_text().split() for one in (pid, *children)]
    except OSError:  # one has ended
        return 0
    resident, mapped = ([int(of_one[column]) for of_one in pages] for column in (1, 2))
    return (sum(resident) - sum(mapped) + max(mapped)) * os.sysconf("SC_PAGESIZE")


def _read_by_crisp(path: str, checkout: str, python: str) -> Reading:
    """Let CRISP's own program read the same traces, one Jaeger JSON file each, as it wants them.

    Writing these files is not timed.  How long its program takes to start (the interpreter, pandas, the page
    it writes) is what it takes for one trace alone, which is timed just before.

    Raises:
        RuntimeError: It failed, or read other spans than these; its last words are in the message.
    """
    groups = _by_trace(_otlp_spans(Path(path)))
    first = dict(list(groups.items())[:1])
    start_s = _timed_crisp(Path(checkout), python, first)
    wall_s = _timed_crisp(Path(checkout), python, groups)
    return Reading(sum(map(len, groups.values())), wall_s, start_s=start_s)


def _timed_crisp(checkout: Path, python: str, groups: Mapping[str, list[_Span]]) -> float:
    with tempfile.TemporaryDirectory(prefix="hotspan-crisp-") as folder:
        for trace_id, spans in groups.items():
            (Path(folder) / f"{trace_id}.json").write_text(json.dumps(_jaeger(trace_id, spans)))
        start = time.perf_counter()
        done = subprocess.run(  # noqa: S603 - what the user named
            [python, *_crisp_program(checkout, folder)],
            cwd=checkout,
            env={**os.environ, "PYTHONPATH": str(checkout), "MPLBACKEND": "Agg"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        wall_s = time.perf_counter() - start
    n_spans = sum(map(len, groups.values()))
    said = _SPANS_SAID.search(done.stderr)
    if done.returncode or said is None or int(said[1]) != n_spans:
        msg = f"CRISP did not read the {n_spans} spans: {done.stderr[-1000:]}"
        raise RuntimeError(msg)
    return wall_s


def _crisp_program(checkout: Path, folder: str) -> list[str]:
    """Return its program and arguments, of the early versions (`process.py`) and of those since."""
    asked = ["-a", "answer", "-s", "support-bot", "--rootTrace", "--parallelism", "1"]
    if (checkout / "process.py").is_file():
        return ["process.py", *asked, "-t", folder, "-o", folder]
    return ["-m", "crisp.process_trace", *asked, "-i", folder]


def _by_trace(spans: Iterable[_Span]) -> dict[str, list[_Span]]:
    groups: dict[str, list[_Span]] = {}
    for span in spans:
        groups.setdefault(span["traceId"], []).append(span)
    return groups


def _otlp_spans(path: Path) -> Iterator[_Span]:
    with path.open() as file:
        for line in file:
            for group in json.loads(line)["resourceSpans"]:
                for scoped in group["scopeSpans"]:
                    yield from scoped["spans"]


def _jaeger(trace_id: str, spans: list[_Span]) -> _Span:
    """Return the trace as Jaeger's JSON; early versions want the root's id to be that of the trace."""
    ids = {span["spanId"]: trace_id for span in spans if not span.get("parentSpanId")}
    processes = {"p1": {"serviceName": "support-bot", "tags": []}}
    return {
        "data": [
            {
                "traceID": trace_id,
                "spans": [_jaeger_span(span, ids) for span in spans],
                "processes": processes,
            }
        ]
    }


def _jaeger_span(span: _Span, ids: Mapping[str, str]) -> _Span:
    start, end = int(span["startTimeUnixNano"]) // 1000, int(span["endTimeUnixNano"]) // 1000
    parent = span.get("parentSpanId", "")
    reference = {"refType": "CHILD_OF", "traceID": span["traceId"], "spanID": ids.get(parent, parent)}
    tags = [
        {"key": pair["key"], "type": "string", "value": str(next(iter(pair["value"].values())))}
        for pair in span["attributes"]
    ]
    return {
        "traceID": span["traceId"],
        "spanID": ids.get(span["spanId"], span["spanId"]),
        "operationName": span["name"],
        "references": [reference] if parent else [],
        "startTime": start,
        "duration": end - start,
        "tags": tags,
        "logs": [],
        "processID": "p1",
    }


def _measure(contender: str, path: str, *more: str) -> Reading:
    if contender == "crisp":
        return _read_by_crisp(path, *more)
    # What the two need is imported before the clock runs.
    if contender == "hotspan":
        from hotspan import analyse, load  # noqa: PLC0415 - the other one must not pay for it

        def n_spans() -> int:
            return analyse(load(path)).evidence.n_spans
    else:
        from scale import plain  # noqa: PLC0415 - as above

        def n_spans() -> int:
            return int(plain.report(path)["n_spans"])

    start, cpu = time.perf_counter(), _cpu_s()
    found = n_spans()
    wall_s, cpu_s = time.perf_counter() - start, _cpu_s() - cpu
    return Reading(found, wall_s, cpu_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB)


def _cpu_s() -> float:
    used = (resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(of_some.ru_utime + of_some.ru_stime for of_some in used)


if __name__ == "__main__":
    print(json.dumps(asdict(_measure(*sys.argv[1:]))))
