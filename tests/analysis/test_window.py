"""Traces come out whole, wherever their spans lie, and however few may wait in memory."""

from __future__ import annotations

import gzip
import io
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hotspan
from hotspan.analysis.readers import census
from hotspan.analysis.readers import window as waiting
from hotspan.analysis.readers.census import count_spans
from hotspan.analysis.readers.source import Source
from hotspan.analysis.readers.window import Window
from hotspan.exporters.files import FileExporter
from hotspan.tracer import semconv
from hotspan.tracer.errors import TraceFileError
from hotspan.tracer.record import Event, Link, Resource, Scope, SpanRecord

RESOURCE = Resource({semconv.SERVICE_NAME: "bot"})
SCOPE = Scope(semconv.SCOPE_NAME)


def _span(trace, number, **changes):
    attributes = {semconv.STAGE: "tool", "numbers": (1, 2, 3), "text": "é\ud800", "big": 1 << 70, "x": 1.5}
    events = (Event("e", 5, {"a": True}),)
    links = (Link(f"{7:032x}", f"{7:016x}", {"b": b"bytes"}),)
    span = SpanRecord(
        f"{trace:032x}", f"{number:016x}", None, "work", 10 + number, 20 + number, attributes,
        events=events, links=links, resource=RESOURCE, scope=SCOPE,
    )  # fmt: skip
    return span._replace(**changes)


@given(st.lists(st.integers(1, 6), max_size=40), st.integers(1, 10), st.booleans())
def test_every_trace_comes_out_once_and_whole(owners, max_open, is_counted):
    """Whatever order the spans come in, and however few may wait: the same traces, the same spans."""
    spans = [_span(owner, number) for number, owner in enumerate(owners, start=1)]
    expected = {f"{owner:032x}": owners.count(owner) for owner in set(owners)} if is_counted else {}
    window = Window(expected, max_open)

    found = {trace.trace_id: trace.spans for trace in window.complete([spans])}

    assert found == {
        trace_id: tuple(span for span in spans if span.trace_id == trace_id)
        for trace_id in {span.trace_id for span in spans}
    }
    assert all(span.resource is RESOURCE for trace in found.values() for span in trace)
    assert not window._open  # noqa: SLF001 - nothing may be left
    assert not window._spilled  # noqa: SLF001 - as above


def test_a_trace_is_let_go_when_its_last_span_came():
    """With a census the first trace is handed on before the last span is read."""
    read = []

    def spans():
        for trace, number in ((1, 1), (2, 2), (1, 3), (2, 4)):
            read.append(number)
            yield _span(trace, number)

    traces = Window({f"{1:032x}": 2, f"{2:032x}": 2}).complete([span] for span in spans())

    assert next(traces).trace_id == f"{1:032x}"
    assert read == [1, 2, 3]


def test_what_waits_in_the_file_is_counted_and_the_file_goes(monkeypatch, tmp_path):
    """Spans that did not fit are counted; the temporary file has no name, so that nothing is left behind."""
    monkeypatch.setattr(waiting.tempfile, "tempdir", str(tmp_path))
    window = Window({}, max_open=3)
    traces = window.complete([_span(number % 4, number)] for number in range(1, 21))

    assert len(next(traces)) == 5
    assert window.n_spilled > 10
    assert list(tmp_path.iterdir()) == []


class _Full(io.FileIO):
    """A file in a folder that is full, as the kernel has one of its own."""

    def __init__(self, *_args, **_options):
        super().__init__("/dev/full", "r+")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("buffering", [0, 1 << 20], ids=["met-at-once", "met-at-the-next-step"])
def test_a_full_temporary_folder_is_blamed_and_not_the_file(monkeypatch, tmp_path, buffering):
    """The sentence names the folder and the variable that moves it, wherever the system says no."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(
        tempfile, "TemporaryFile", lambda **_: io.BufferedRandom(_Full(), buffering) if buffering else _Full()
    )
    window = Window({}, max_open=3)

    with pytest.raises(TraceFileError, match=f"^{tmp_path}: the temporary folder .*No space left.*TMPDIR"):
        list(window.complete([_span(number % 4, number)] for number in range(1, 21)))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_copy_that_does_not_fit_blames_the_folder_too(monkeypatch, tmp_path):
    """What can only be read from a file that is not compressed is copied to the same place."""
    path = tmp_path / "spans.parquet.gz"
    path.write_bytes(gzip.compress(b"PAR1" + bytes(5_000_000)))
    with Source(path).file() as file:
        assert file.read() == b"PAR1" + bytes(5_000_000)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(tempfile, "TemporaryFile", _Full)

    with pytest.raises(TraceFileError, match=f"^{tmp_path}: the temporary folder"), Source(path).file():
        pass


def test_a_temporary_folder_that_is_not_there_is_named(monkeypatch, tmp_path):
    """A wrong TMPDIR."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))

    with pytest.raises(TraceFileError, match="/none: the temporary folder cannot be used"):
        list(Window({}, max_open=3).complete([_span(number % 4, number)] for number in range(1, 21)))


@pytest.fixture
def scattered(tmp_path):
    """Write a file in which every trace goes from the first line to the last."""
    path = tmp_path / "run.jsonl"
    exporter = FileExporter(path)
    for number in range(1, 6):
        exporter.export([
            _span(trace, number, parent_id=None if number == 1 else f"{1:016x}", start_ns=10**18 + number,
                  end_ns=10**18 + 100 - number, attributes={semconv.STAGE: "tool"}, links=(), events=())
            for trace in range(1, 301)
        ])  # fmt: skip
    return path


def test_a_census_counts_the_spans_of_each_trace(scattered, monkeypatch):
    """Every trace and every span is counted, without reading anything but ids."""
    monkeypatch.setattr(census, "MIN_BYTES", 0)

    assert count_spans([Source(scattered)]) == {f"{trace:032x}": 5 for trace in range(1, 301)}


def test_a_census_leaves_out_what_is_not_sure(scattered, monkeypatch):
    """A half-written line may hold more spans of a trace: that trace waits until the end."""
    monkeypatch.setattr(census, "MIN_BYTES", 0)
    with scattered.open("a") as file:
        file.write('{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"%032x","spanId":"00' % 3)  # noqa: UP031 - braces

    found = count_spans([Source(scattered)])

    assert f"{3:032x}" not in found
    assert len(found) == 299


@pytest.mark.parametrize("max_open", [1, 100, 10_000])
def test_scattered_traces_give_the_same_report_in_any_window(scattered, monkeypatch, max_open):
    """A bound on what waits changes where spans wait, and nothing of the report."""
    whole = hotspan.analyse(hotspan.load(scattered)).to_dict()
    monkeypatch.setattr(census, "MIN_BYTES", 0)
    monkeypatch.setattr(waiting.Window.__init__, "__defaults__", (max_open,))

    assert hotspan.analyse(hotspan.load(scattered)).to_dict() == whole


MEMORY = """
import resource, sys
import hotspan
report = hotspan.analyse(hotspan.load(sys.argv[1]))
print(report.evidence.n_spans, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_memory_does_not_grow_with_the_spans_that_were_read(tmp_path):
    """Ten times the spans, in traces that end, take less than twice the memory."""
    peaks = []
    for n_traces in (4_000, 40_000):
        path = tmp_path / f"{n_traces}.jsonl"
        rng = random.Random(n_traces)  # noqa: S311 - no secret
        text = {semconv.STAGE: "request", "padding": "x" * 700}
        exporter = FileExporter(path)
        for first in range(1, n_traces, 1_000):
            exporter.export([
                _span(trace, trace, start_ns=10**18, end_ns=10**18 + rng.randrange(1000), attributes=text,
                      links=(), events=())
                for trace in range(first, first + 1_000)
            ])  # fmt: skip
        command = [sys.executable, "-c", MEMORY, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        n_spans, peak = map(int, done.stdout.split())
        assert n_spans == n_traces
        peaks.append(peak)

    assert peaks[1] < 2 * peaks[0]
