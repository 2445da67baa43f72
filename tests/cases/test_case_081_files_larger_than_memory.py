"""Case 081: a file is read as a stream, whatever its size, plain or compressed."""

from __future__ import annotations

import gzip
import io
import json
import sys
import tracemalloc

import pytest

from hotspan.analysis.readers.formats import items
from hotspan.analysis.readers.source import Source

N_LINES = 6_000
MAX_BYTES = 12 << 20


def _export(number):
    pair = {"key": "prompt", "value": {"stringValue": f"{number} " * 1000}}
    span = {
        "traceId": f"{number:032x}",
        "spanId": f"{number:016x}",
        "name": "chat",
        "startTimeUnixNano": "1790000000000000000",
        "endTimeUnixNano": "1790000000000001000",
        "attributes": [pair],
    }
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


def _lines():
    return (json.dumps(_export(n)).encode() + b"\n" for n in range(1, N_LINES + 1))


def _pretty():
    yield b'{\n "resourceSpans": [\n'
    for n in range(1, N_LINES + 1):
        yield (b",\n" if n > 1 else b"") + json.dumps(_export(n)["resourceSpans"][0], indent=1).encode()
    yield b"\n ]\n}\n"


def _one_frame_each(parts):
    zstd = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    return map(zstd.compress, parts)


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(_lines, id="lines"),
        pytest.param(_pretty, id="one-pretty-printed-object"),
        pytest.param(lambda: map(gzip.compress, _lines()), id="gzip-members"),
        pytest.param(lambda: _one_frame_each(_lines()), id="zstd-frames"),
    ],
)
def test_tens_of_megabytes_take_a_few(tmp_path, parts):
    """Every span arrives, to the last frame, and at no time more than a few of them are in memory."""
    path = tmp_path / "traces"
    with path.open("wb") as file:
        file.writelines(parts())
    n_spans = 0
    tracemalloc.start()
    try:
        for _ in items(Source(path), pytest.fail):
            n_spans += 1
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert n_spans == N_LINES
    assert peak_bytes < MAX_BYTES


def test_a_pipe_is_read_as_it_comes(monkeypatch):
    """Standard input is never read to its end before the first span."""

    class Pipe(io.RawIOBase):
        n_read = 0

        def readable(self):
            return True

        def readinto(self, buffer):
            line = json.dumps(_export(self.n_read + 1)).encode() + b"\n"
            self.n_read += 1
            buffer[: len(line)] = line
            return len(line)

    pipe = Pipe()
    monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": pipe}))

    found = items(Source("-"), pytest.fail)

    assert [next(found).span_id for _ in range(3)] == [f"{n:016x}" for n in (1, 2, 3)]
    assert pipe.n_read < N_LINES
