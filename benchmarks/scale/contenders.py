"""Who reads the traces: each in a process of its own, so that time and memory are its own.

python -m scale.contenders hotspan|plain FILE
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

BENCHMARKS: Final = Path(__file__).resolve().parents[1]
_KIB: Final = 1024


@dataclass(frozen=True, slots=True)
class Reading:
    """One file read to its report.

    Attributes:
        n_spans: Spans that the contender says it read.
        wall_s: From before the file is opened until the report is there, imports left out.
        cpu_s: CPU time of all its processes meanwhile.
        peak_bytes: Largest resident memory of the process, imports included.
    """

    n_spans: int
    wall_s: float
    cpu_s: float
    peak_bytes: int


def read(contender: str, path: Path) -> Reading:
    """Let `hotspan` or `plain` read a file.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    command = [sys.executable, "-m", "scale.contenders", contender, str(path)]
    done = subprocess.run(command, cwd=BENCHMARKS, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603 - ours
    return Reading(**json.loads(done.stdout))


def read_by_crisp(checkout: Path, python: str, path: Path) -> Reading:
    """Let CRISP's own program read the same traces, one Jaeger JSON file each, as it wants them.

    Writing these files is not timed; the start of its interpreter is, and is small beside the rest.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    with tempfile.TemporaryDirectory(prefix="hotspan-crisp-") as folder:
        n_spans = _write_jaeger(path, Path(folder))
        alone = checkout / "process_trace.py"
        program = [str(alone)] if alone.is_file() else ["-m", "crisp.process_trace"]
        asked = ["-a", "answer", "-s", "support-bot", "-i", folder, "--rootTrace", "--parallelism", "1"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        subprocess.run(  # noqa: S603 - what the user named
            [python, *program, *asked],
            cwd=checkout,
            env={**os.environ, "PYTHONPATH": str(checkout), "MPLBACKEND": "Agg"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=True,
        )
        wall = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Reading(n_spans, wall, cpu, after.ru_maxrss * _KIB)


def _write_jaeger(path: Path, folder: Path) -> int:
    traces: dict[str, list[dict[str, Any]]] = {}
    for span in _otlp_spans(path):
        traces.setdefault(span["traceId"], []).append(_jaeger(span))
    for trace_id, spans in traces.items():
        processes = {"p1": {"serviceName": "support-bot", "tags": []}}
        data = [{"traceID": trace_id, "spans": spans, "processes": processes}]
        (folder / f"{trace_id}.json").write_text(json.dumps({"data": data}))
    return sum(map(len, traces.values()))


def _otlp_spans(path: Path) -> Iterator[dict[str, Any]]:
    with path.open() as file:
        for line in file:
            for group in json.loads(line)["resourceSpans"]:
                for scoped in group["scopeSpans"]:
                    yield from scoped["spans"]


def _jaeger(span: dict[str, Any]) -> dict[str, Any]:
    start, end = int(span["startTimeUnixNano"]) // 1000, int(span["endTimeUnixNano"]) // 1000
    parent = span.get("parentSpanId")
    reference = {"refType": "CHILD_OF", "traceID": span["traceId"], "spanID": parent}
    tags = [
        {"key": pair["key"], "type": "string", "value": str(next(iter(pair["value"].values())))}
        for pair in span["attributes"]
    ]
    return {
        "traceID": span["traceId"],
        "spanID": span["spanId"],
        "operationName": span["name"],
        "references": [reference] if parent else [],
        "startTime": start,
        "duration": end - start,
        "tags": tags,
        "logs": [],
        "processID": "p1",
    }


def _measure(contender: str, path: str) -> dict[str, float]:
    # What the two need is imported before the clock runs.
    if contender == "hotspan":
        from hotspan import analyse, load  # noqa: PLC0415 - the other one must not pay for it

        def n_spans() -> int:
            return analyse(load(path)).evidence.n_spans
    else:
        from scale import plain  # noqa: PLC0415 - as above

        def n_spans() -> int:
            return int(plain.report(path)["n_spans"])

    start, cpu = time.perf_counter(), time.process_time()
    found = n_spans()
    return {
        "n_spans": found,
        "wall_s": time.perf_counter() - start,
        "cpu_s": time.process_time() - cpu,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB,
    }


if __name__ == "__main__":
    print(json.dumps(_measure(*sys.argv[1:])))
