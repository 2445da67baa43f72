"""The benchmark of the analysis: its one command, and that both contenders read the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"


def test_prints_a_table_of_each_size():
    """Two lines a size, with rates, memory and the machine; without CRISP it says how to have it."""
    command = [sys.executable, str(BENCHMARKS / "analysis_scale.py"), "--sizes", "100,500", "--rounds", "1"]

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    lines = done.stdout.splitlines()
    assert [[cell.strip() for cell in line.split("|")[1:3]] for line in lines[2:6]] == [
        ["100", "streamed"], ["100", "whole"], ["500", "streamed"], ["500", "whole"],
    ]  # fmt: skip
    assert "cores" in done.stdout
    assert "--crisp PATH" in done.stdout


def test_a_missing_checkout_is_refused():
    """A wrong path to CRISP is said at once, not after minutes."""
    command = [sys.executable, str(BENCHMARKS / "analysis_scale.py"), "--crisp", "/nowhere"]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "no folder /nowhere" in done.stderr


CRISP_STAND_IN = """
import glob, json, sys
n = 0
for path in glob.glob(sys.argv[sys.argv.index("-t") + 1] + "/*.json"):
    (trace,) = json.load(open(path))["data"]
    (root,) = (span["spanID"] for span in trace["spans"] if not span["references"])
    under = [ref for span in trace["spans"] for ref in span["references"] if ref["spanID"] == root]
    n += (1 + len(under)) * (root == trace["traceID"])
print(f"totalNodes={n - MISSED}", file=sys.stderr)
"""


def test_crisp_is_timed_only_if_it_read_all_spans(tmp_path, monkeypatch, capfd):
    """It gets whole traces, each below a root of the trace's id; one span fewer in its log is an error."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from scale import contenders, traces  # noqa: PLC0415 - found from here on

    path = tmp_path / "run.jsonl"
    traces.write(path, 50)
    program = tmp_path / "process.py"

    program.write_text(CRISP_STAND_IN.replace("MISSED", "0"))
    reading = contenders.read("crisp", path, str(tmp_path), sys.executable)
    assert reading.n_spans == 50
    assert 0 < reading.start_s < 60

    program.write_text(CRISP_STAND_IN.replace("MISSED", "1"))
    with pytest.raises(subprocess.CalledProcessError):
        contenders.read("crisp", path, str(tmp_path), sys.executable)
    assert "CRISP did not read the 5 spans: totalNodes=4" in capfd.readouterr().err


def test_the_plain_script_finds_what_the_report_finds(tmp_path, monkeypatch):
    """Two ways to the same figures: calls, durations, self time and critical path of every stage."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from scale import plain, traces  # noqa: PLC0415 - found from here on

    import hotspan  # noqa: PLC0415 - after the path

    path = tmp_path / "run.jsonl"
    traces.write(path, 2_000)
    found = plain.report(str(path))
    report = hotspan.analyse(hotspan.load(path))

    assert found["n_spans"] == report.evidence.n_spans == 2_000
    for row in report.stages:
        n_calls, p50, _, self_ns, critical_ns = found["stages"][row.stage]
        assert n_calls == row.n_calls
        assert self_ns == row.self_ns
        expected = report.unattributed.critical_path_ns if row.stage == "request" else row.critical_path_ns
        assert critical_ns == expected
        if not row.n_errors:
            assert p50 == pytest.approx(row.duration_ns.p50)
