"""The trace file: one line a write, shared by many writers, never torn, honest about what it lost."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hotspan.exporters.files import FileExporter
from hotspan.tracer.errors import ConfigurationError
from hotspan.tracer.record import SpanRecord

TRACE = "5b8efff798038103d269b633813fc60c"


def spans(*names, **fields):
    """Return finished spans of these names."""
    return [SpanRecord(TRACE, f"{i + 1:016x}", None, name, 1, 2, **fields) for i, name in enumerate(names)]


def names(path):
    """Return the names of all spans in a file, every line of which must be whole."""
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [
        span["name"]
        for line in lines
        for group in line["resourceSpans"]
        for part in group["scopeSpans"]
        for span in part["spans"]
    ]


def test_batches_are_appended(tmp_path):
    """Each batch is a line after the ones before, of this run and of earlier ones."""
    path = tmp_path / "run.jsonl"
    FileExporter(path).export(spans("a", "b"))
    FileExporter(path).export(spans("c"))

    assert names(path) == ["a", "b", "c"]
    assert path.read_text("utf-8").count("\n") == 2


def test_truncate_begins_anew(tmp_path):
    """With `truncate` what an earlier run wrote is gone before the first span."""
    path = tmp_path / "run.jsonl"
    FileExporter(path).export(spans("old"))
    exporter = FileExporter(path, truncate=True)

    assert path.read_bytes() == b""
    exporter.export(spans("new"))
    assert names(path) == ["new"]


def test_an_empty_batch_writes_nothing(tmp_path):
    """No span, no line."""
    FileExporter(tmp_path / "run.jsonl").export([])

    assert (tmp_path / "run.jsonl").read_bytes() == b""


def test_a_half_written_last_line_is_closed(tmp_path):
    """After a crash in the middle of a line the next batch starts on a line of its own."""
    path = tmp_path / "run.jsonl"
    path.write_text('{"resourceSpans":[{"resou', "utf-8")
    FileExporter(path).export(spans("after"))

    torn, whole, rest = path.read_text("utf-8").split("\n")
    assert torn == '{"resourceSpans":[{"resou'
    assert json.loads(whole)
    assert rest == ""


def test_lost_spans_are_written_down(tmp_path):
    """A loss is a line of its own, without spans, that any OTLP reader takes."""
    path = tmp_path / "run.jsonl"
    exporter = FileExporter(path)
    exporter.report_lost(0)
    exporter.report_lost(7)

    (line,) = path.read_text("utf-8").splitlines()
    (group,) = json.loads(line)["resourceSpans"]
    assert group["scopeSpans"] == []
    assert {"key": "hotspan.lost_spans", "value": {"intValue": "7"}} in group["resource"]["attributes"]


def test_faults_of_the_tracing_are_written_down_at_the_end(tmp_path):
    """Those since the file was opened are a line of their own; where there were none, nothing is written."""
    path, n_faults = tmp_path / "run.jsonl", 2
    exporter = FileExporter(path, notes=lambda: {"hotspan.faults": n_faults, "hotspan.broken_calls": 0})
    exporter.shutdown()
    assert path.read_bytes() == b""
    n_faults = 5
    exporter.shutdown()

    (line,) = path.read_text("utf-8").splitlines()
    (group,) = json.loads(line)["resourceSpans"]
    noted = {pair["key"]: pair["value"] for pair in group["resource"]["attributes"]}
    assert noted.pop("process.pid") == {"intValue": str(os.getpid())}
    assert noted == {"hotspan.faults": {"intValue": "3"}}


def test_the_file_stays_where_it_was_named(tmp_path, monkeypatch):
    """A program that changes its folder does not move its trace."""
    monkeypatch.chdir(tmp_path)
    exporter = FileExporter("run.jsonl")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    exporter.export(spans("a"))

    assert names(tmp_path / "run.jsonl") == ["a"]


def test_a_rotated_file_is_left_alone(tmp_path):
    """After the file was moved away the next batch is in a new one, not in the moved one."""
    path = tmp_path / "run.jsonl"
    exporter = FileExporter(path)
    exporter.export(spans("before"))
    path.rename(tmp_path / "run.jsonl.1")
    exporter.export(spans("after"))

    assert names(tmp_path / "run.jsonl.1") == ["before"]
    assert names(path) == ["after"]


def test_a_pipe_is_written_too(tmp_path):
    """What is no regular file, such as a named pipe to a compressor, gets the same lines."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        FileExporter(path).export(spans("a"))
        assert json.loads(os.read(reader, 65_536))["resourceSpans"]
    finally:
        os.close(reader)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        pytest.param(lambda folder: folder / "no" / "run.jsonl", "does not exist", id="no-folder"),
        pytest.param(lambda folder: folder, "is a folder", id="is-a-folder"),
        pytest.param(lambda _folder: "", "is empty", id="empty-name"),
        pytest.param(lambda folder: folder / ("x" * 300), "cannot be opened", id="name-too-long"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_at_once(tmp_path, make, says):
    """The error comes when it is configured, and says what is wrong."""
    with pytest.raises(ConfigurationError, match=says):
        FileExporter(make(tmp_path))


def test_a_full_disk_raises_and_leaves_whole_lines(tmp_path):
    """When only a part of a batch fits, the part is taken back, and the batch counts as lost."""
    path = tmp_path / "run.jsonl"
    program = f"""
import resource, signal
from hotspan.exporters.files import FileExporter
from hotspan.tracer.record import SpanRecord
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
exporter = FileExporter({str(path)!r})
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
span = lambda size: SpanRecord("{TRACE}", "1" * 16, None, "s", 1, 2, {{"text": "x" * size}})
exporter.export([span(100)])
try:
    exporter.export([span(20_000)])
except OSError as error:
    print(error.strerror)
exporter.export([span(100)])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "File too large"
    assert names(path) == ["s", "s"]


def n_open():
    """Return how many descriptors this process holds."""
    return len(list(Path("/proc/self/fd").iterdir()))


def test_nothing_is_left_open(tmp_path):
    """Between two batches the exporter holds no descriptor."""
    before = n_open()
    exporters = [FileExporter(tmp_path / "run.jsonl") for _ in range(20)]
    for exporter in exporters:
        exporter.export(spans("a"))

    assert n_open() == before
