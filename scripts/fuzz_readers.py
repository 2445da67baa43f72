"""Fuzz the readers by coverage, until it is stopped or finds an exception that is no `HotspanError`.

    pip install atheris
    python scripts/fuzz_readers.py [-max_total_time=60] [any other option of libFuzzer]

It starts from a valid file of every format, those of tests/dialect_files.py, and prints the bytes that broke
a reader.  The tests do the same with hypothesis, for a second or two, and need nothing installed.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path

try:
    import atheris
except ImportError:
    sys.exit("The fuzzer is not installed: pip install atheris")

with atheris.instrument_imports(include=["hotspan.analysis.readers"]):
    from hotspan.analysis import load
from hotspan.tracer.errors import HotspanError

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import dialect_files


def main() -> None:
    """Write the seeds, and hand over to the fuzzer."""
    with tempfile.TemporaryDirectory(prefix="hotspan-fuzz-") as folder:
        seeds, file = Path(folder, "seeds"), Path(folder, "traces")
        seeds.mkdir()
        for name, (make, _) in dialect_files.FILES.items():
            (seeds / name).write_text(make(), encoding="utf-8")

        def read(data: bytes) -> None:
            file.write_bytes(data)
            with contextlib.suppress(HotspanError):
                for trace in load(file):
                    repr(trace.spans).encode()

        atheris.Setup([*sys.argv, str(seeds)], read)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
