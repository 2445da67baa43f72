"""A file that several processes read gives the report that one gives."""

from __future__ import annotations

import gc
import logging
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import hotspan
from hotspan.analysis.parallel import pool, processes, worker
from hotspan.exporters import otlp_lines
from hotspan.tracer import semconv
from hotspan.tracer.record import Resource, Scope, SpanRecord

START_NS = 1_790_000_000_000_000_000
OWN, OTHER = Scope(semconv.SCOPE_NAME), Scope("opentelemetry.instrumentation.asgi")
RESOURCE = Resource({semconv.SERVICE_NAME: "bot", semconv.OVERHEAD_NS: 900})
N_TRACES = 400


def _rng(seed):
    return random.Random(seed)  # noqa: S311 - no secret


def _trace(number, rng, scope=OWN):
    start = START_NS + number * 10_000_000

    def span(i, parent, name, begin, end, **said):
        return SpanRecord(
            f"{number:032x}", f"{i:016x}", parent and f"{parent:016x}", name, start + begin, start + end,
            said, resource=RESOURCE, scope=scope,
        )  # fmt: skip

    def stage(name):
        return {semconv.STAGE: name} if scope is OWN else {}

    middle, end = rng.randrange(100, 5_000_000), rng.randrange(6_000_000, 9_000_000)
    overlap = rng.choice((0, 0, 50))
    call = {semconv.OUTPUT_TOKENS: rng.randrange(2, 90), semconv.TTFT_NS: 1000, semconv.LAST_TOKEN_NS: 9000}
    return [
        span(2, 1, "retrieval", 10, middle, **stage("retrieval")),
        span(3, 1, "chat", middle - overlap, end, **(stage("generation") | call if scope is OWN else {})),
        span(1, None, "answer", 0, end + 5, **stage("request")),
    ]


def _write(path, spans, *, per_line=7, more=()):
    lines = [
        line for at in range(0, len(spans), per_line) for line in otlp_lines.lines(spans[at : at + per_line])
    ]
    for at, text in more:
        lines.insert(at, text)
    path.write_text("".join(lines))
    return path


def _mixed(rng, traces):
    """Return the spans of some traces, those of eight at a time in any order that has children first."""
    found = []
    for at in range(0, len(traces), 8):
        group = [span for trace in traces[at : at + 8] for span in trace]
        rng.shuffle(group)
        found += sorted(group, key=lambda span: span.parent_id is None)
    return found


def _one_after_the_other(first, last, rng):
    return [span for number in range(first, last) for span in _trace(number, rng)]


@pytest.fixture(
    params=[
        pytest.param(
            True,
            id="copies",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux only"),
        ),
        pytest.param(False, id="interpreters"),
    ]
)
def several(request, monkeypatch, caplog):
    """Let two processes read files of any size; traces may be spread over 20 kB."""
    monkeypatch.setattr(pool, "can_be_copied", lambda: request.param)
    monkeypatch.setattr(pool, "MIN_COPY_BYTES", 0)
    monkeypatch.setattr(pool, "MIN_BYTES", 0)
    monkeypatch.setattr(pool, "NEAR_BYTES", 20_000)
    monkeypatch.setattr(pool, "_n_cores", lambda: 2)
    caplog.set_level(logging.DEBUG, logger=pool.__name__)
    return caplog


def _one_by_one(path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(pool, "_n_cores", lambda: 1)
        return hotspan.analyse(hotspan.load(path)).to_dict()


def _rounded(value):
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def _same(path, monkeypatch):
    together = hotspan.analyse(hotspan.load(path)).to_dict()
    return _rounded(together) == _rounded(_one_by_one(path, monkeypatch))


def test_two_processes_give_the_report_of_one(tmp_path, several, monkeypatch):
    """Plain traces, those of another library, lines of another layout and a cut one: the same report."""
    rng = _rng(1)
    traces = [_trace(number, rng, rng.choice((OWN, OWN, OWN, OTHER))) for number in range(1, N_TRACES + 1)]
    note = otlp_lines.resource_line(Resource({semconv.LOST_SPANS: 3}))
    spaced = next(otlp_lines.lines(_trace(N_TRACES + 1, rng))).replace('"spanId":', '"spanId": ')
    wrong = '{"resourceSpans": nonsense\n'
    path = _write(tmp_path / "run.jsonl", _mixed(rng, traces), more=((3, note), (50, spaced), (60, wrong)))
    with path.open("a") as file:
        file.write('{"resourceSpans":[{"resource":{"attr')

    assert _same(path, monkeypatch)
    assert not several.records
    traces = hotspan.load(path)
    report = hotspan.analyse(traces)
    assert not list(traces)
    assert report.evidence.n_dropped_spans == 3
    assert any("run.jsonl:61: " in warning for warning in report.evidence.warnings)
    assert any("half-written" in warning for warning in report.evidence.warnings)


def test_a_trace_on_both_sides_of_the_cut_is_one(tmp_path, several, monkeypatch):
    """Its spans that the one process has and those of the other come together."""
    rng = _rng(2)
    spans = sorted(_one_after_the_other(1, 41, rng), key=lambda span: span.name)
    path = _write(tmp_path / "run.jsonl", spans, per_line=2)
    monkeypatch.setattr(pool, "NEAR_BYTES", 1 << 20)

    assert _same(path, monkeypatch)
    assert not several.records


@pytest.mark.parametrize(
    "late",
    [pytest.param(1, id="in-the-part-of-another"), pytest.param(350, id="in-the-same-part")],
)
def test_a_span_that_comes_late_costs_time_and_nothing_else(tmp_path, several, monkeypatch, late):
    """Where a trace was taken to be complete and is not, one process reads everything."""
    rng = _rng(3)
    traces = [_trace(number, rng) for number in range(1, N_TRACES + 1)]
    straggler = traces[late].pop(0)
    path = _write(tmp_path / "run.jsonl", [*_mixed(rng, traces), straggler])

    assert _same(path, monkeypatch)
    assert several.records


def test_calls_of_another_writer_are_read_by_one_process(tmp_path, several, monkeypatch):
    """They may have twins anywhere."""
    rng = _rng(4)
    traces = [_trace(number, rng) for number in range(1, N_TRACES + 1)]
    twin = traces[100][1]._replace(
        trace_id=f"{N_TRACES + 1:032x}", parent_id=None, scope=Scope("openinference.instrumentation.openai")
    )
    path = _write(tmp_path / "run.jsonl", [*_mixed(rng, traces), twin])

    assert _same(path, monkeypatch)
    assert several.records


def test_a_worker_that_ends_is_no_loss(tmp_path, several, monkeypatch):
    """Whatever becomes of it, the report is there."""
    rng = _rng(5)
    path = _write(tmp_path / "run.jsonl", _one_after_the_other(1, 30, rng))
    monkeypatch.setattr(processes, "_START", "import os; os._exit(3)")
    monkeypatch.setattr(worker, "main", lambda *_pipes: os._exit(3))

    assert _same(path, monkeypatch)
    assert several.records


def _open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not list them")
@pytest.mark.usefixtures("several")
def test_files_are_let_go_of(tmp_path):
    """No descriptor is left, also before the garbage collector comes."""
    path = _write(tmp_path / "run.jsonl", _one_after_the_other(1, 30, _rng(7)))
    hotspan.analyse(hotspan.load(path))
    gc.collect()
    gc.disable()
    try:
        before = _open_files()
        for _ in range(3):
            hotspan.analyse(hotspan.load(path))
        after = _open_files()
    finally:
        gc.enable()
    assert after == before


@pytest.mark.parametrize(
    "at", [pytest.param("1790000000000000", id="microseconds"), pytest.param("9" * 20, id="too-large")]
)
def test_one_odd_time_is_no_other_unit(tmp_path, several, monkeypatch, at):
    """Whoever reads the line."""
    traces = _one_after_the_other(1, 60, _rng(8))
    path = _write(tmp_path / "run.jsonl", traces, per_line=3)
    lines = path.read_text().splitlines(keepends=True)
    start = f'"startTimeUnixNano":"{traces[3 * 50].start_ns}"'
    lines[50] = lines[50].replace(start, f'"startTimeUnixNano":"{at}"', 1)
    path.write_text("".join(lines))

    assert _same(path, monkeypatch)
    assert not several.records
    report = hotspan.analyse(hotspan.load(path))
    assert not any("every time of this file" in warning for warning in report.evidence.warnings)


@pytest.mark.skipif(
    sys.platform != "linux", reason="other systems have no /dev/stdin that can be opened anew"
)
def test_a_name_that_is_another_file_in_each_process_is_no_trap(tmp_path):
    """Standard input by its name, where workers get their orders from theirs."""
    path = _write(tmp_path / "run.jsonl", _one_after_the_other(1, 30, _rng(9)))
    program = (
        "import hotspan; from hotspan.analysis.parallel import pool; "
        "pool.MIN_BYTES = 0; pool.can_be_copied = lambda: False; pool._n_cores = lambda: 2; "
        "print(hotspan.analyse(hotspan.load('/dev/stdin')).evidence.n_traces)"
    )
    with path.open() as file:
        done = subprocess.run(
            [sys.executable, "-c", program],
            stdin=file,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    assert done.stdout == "29\n"


@pytest.mark.usefixtures("several")
def test_a_reader_that_was_begun_goes_on_as_it_began(tmp_path):
    """Traces that somebody took out of it are not in the report."""
    rng = _rng(6)
    path = _write(tmp_path / "run.jsonl", _one_after_the_other(1, 30, rng))
    traces = hotspan.load(path)
    next(traces)

    assert hotspan.analyse(traces).evidence.n_traces == 28
