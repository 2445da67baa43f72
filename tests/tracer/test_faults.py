"""Faults of the tracing itself: kept from the program, logged once, counted, and told to whoever asks."""

import os
import subprocess
import sys

import pytest

import hotspan
from hotspan.testing import capture
from hotspan.tracer import faults


def fail(_span):
    """Refuse a span."""
    msg = "the collector is down"
    raise ConnectionError(msg)


def test_a_fault_of_our_own_does_not_reach_the_program(monkeypatch, caplog):
    """Outside of pytest a fault is logged once, counted, and the program goes on."""
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    monkeypatch.setattr(faults, "n_faults", 0)
    with capture():
        monkeypatch.setattr("hotspan.tracer.span.on_end", fail)
        for _ in range(3):
            with hotspan.step():
                pass
        monkeypatch.undo()
    assert len([record for record in caplog.records if "fault" in record.message]) == 1


BROKEN = """
import sys, hotspan
from hotspan.tracer import span
def refuse(_span):
    raise RuntimeError("a fault")
hotspan.configure(file=sys.argv[1])
with hotspan.request("whole"):
    pass
hotspan.flush()
take, span.on_end = span.on_end, refuse
for _ in range(3):
    with hotspan.request("broken"):
        pass
span.on_end = take
result = hotspan.flush()
print(result.faults, result.exported, hotspan.shutdown().lost)
"""


def test_faults_are_told_to_the_program_and_to_the_reader_of_the_file(tmp_path):
    """`flush` says how many there were, the file notes them, and the report's evidence warns."""
    path = tmp_path / "run.jsonl"
    environment = {key: value for key, value in os.environ.items() if key != "PYTEST_CURRENT_TEST"}
    done = subprocess.run(
        [sys.executable, "-c", BROKEN, path],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    evidence = hotspan.analyse(hotspan.load(path)).evidence

    assert done.stdout == "3 1 3\n"
    assert done.stderr.count("a fault of the tracing itself") == 1
    assert evidence.n_dropped_spans == 3
    assert any(warning.startswith("3 faults of Hotspan itself") for warning in evidence.warnings)


def test_a_fault_of_our_own_is_seen_under_pytest(monkeypatch):
    """Under pytest the same fault is raised, so that no test passes over it."""
    with capture():
        monkeypatch.setattr("hotspan.tracer.span.on_end", fail)
        with pytest.raises(ConnectionError), hotspan.step():
            pass
        monkeypatch.undo()
