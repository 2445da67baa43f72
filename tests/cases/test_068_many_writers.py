"""Many processes and threads write one file at once, as under `fork` or a pre-forking server."""

import json
import multiprocessing
import threading

import pytest

from hotspan.exporters.files import FileExporter
from hotspan.tracer.record import SpanRecord

N_WRITERS, N_BATCHES = 8, 25


def write(exporter, start, writer):
    """Wait for the others, then write batches of very different sizes."""
    start.wait(20)
    for batch in range(N_BATCHES):
        text = "é" * (1 + 40_000 * (batch % 5 == writer % 5))
        exporter.export(
            [
                SpanRecord(f"{writer + 1:032x}", f"{2 * batch + i + 1:016x}", None, "s", 1, 2, {"t": text})
                for i in (0, 1)
            ]
        )


def with_processes(exporter):
    """Write from forked children that inherit one exporter."""
    context = multiprocessing.get_context("fork")
    start = context.Barrier(N_WRITERS)
    return [context.Process(target=write, args=(exporter, start, i)) for i in range(N_WRITERS)]


def with_threads(exporter):
    """Write from threads that share one exporter."""
    start = threading.Barrier(N_WRITERS)
    return [threading.Thread(target=write, args=(exporter, start, i)) for i in range(N_WRITERS)]


@pytest.mark.parametrize("workers", [with_processes, with_threads])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_no_line_is_torn(tmp_path, workers):
    """Every line is whole, and every span of every writer is there once."""
    path = tmp_path / "run.jsonl"
    running = workers(FileExporter(path))
    for worker in running:
        worker.start()
    for worker in running:
        worker.join(60)

    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    ids = [
        (span["traceId"], span["spanId"])
        for line in lines
        for group in line["resourceSpans"]
        for part in group["scopeSpans"]
        for span in part["spans"]
    ]
    assert len(lines) == N_WRITERS * N_BATCHES
    assert len(ids) == len(set(ids)) == 2 * N_WRITERS * N_BATCHES
