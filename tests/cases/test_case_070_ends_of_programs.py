"""However a program ends, its last spans are written and nothing but its own words are said."""

import os
import signal
import subprocess
import sys

import pytest

from hotspan.analysis import analyse, load

HEAD = """
import os, sys, threading, signal, time, asyncio
import hotspan
hotspan.configure(file=sys.argv[1])
"""

ENDS = [
    pytest.param("with hotspan.request():\n    sys.exit(3)", 3, 1, id="exit-inside"),
    pytest.param(
        "def work():\n    with hotspan.request():\n        sys.exit(3)\n"
        "t = threading.Thread(target=work); t.start(); t.join()",
        0, 1, id="exit-in-thread",
    ),
    pytest.param("with hotspan.request():\n    pass\nhotspan.flush()\nos._exit(4)", 4, 1, id="hard-exit"),
    pytest.param(
        "import atexit\n@atexit.register\ndef last():\n    with hotspan.request():\n        pass",
        0, 1, id="in-exit-handler",
    ),
    pytest.param(
        "@hotspan.step\ndef g():\n    with hotspan.tool('t'):\n        yield 1\nkept = g()\nnext(kept)",
        0, 1, id="generator-alive",
    ),
    pytest.param(
        "def work():\n    while True:\n        with hotspan.request():\n            time.sleep(0.001)\n"
        "threading.Thread(target=work, daemon=True).start()\ntime.sleep(0.05)",
        0, None, id="daemon-thread",
    ),
    pytest.param(
        "async def main():\n    with hotspan.request():\n        await asyncio.sleep(0)\n"
        "        sys.exit(5)\nasyncio.run(main())",
        5, 1, id="exit-in-loop",
    ),
    pytest.param(
        "with hotspan.request():\n    pass\nhotspan.shutdown()\nhotspan.shutdown()",
        0, 1, id="shut-down-twice",
    ),
    pytest.param(
        "with hotspan.request():\n    pass\nclass Late:\n    def __del__(self):\n"
        "        with hotspan.step():\n            pass\nlate = Late()",
        0, 1, id="stage-in-finalizer",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("body", "code", "n_spans"), ENDS)
def test_quiet_and_complete(tmp_path, body, code, n_spans):
    """The exit status is the program's, the spans are in the file, and there is no traceback."""
    path = tmp_path / "run.jsonl"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", HEAD + body, path],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert "Error" not in done.stderr
    n_found = path.read_text().count('"spanId"')
    assert n_found == n_spans if n_spans is not None else n_found > 0


OPEN = (
    HEAD
    + """
begun = threading.Event()
def work():
    with hotspan.request():
        begun.set()
        threading.Event().wait()
threading.Thread(target=work, daemon=True).start()
begun.wait()
with hotspan.request():
    pass
"""
)


def test_what_had_not_ended_is_told_from_what_was_lost(tmp_path):
    """A daemon thread is at work when the program ends: neither load nor a collector is the cause."""
    path = tmp_path / "run.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", OPEN, path], capture_output=True, text=True, timeout=60, check=True
    )
    report = analyse(load(path))

    assert "1 span had not ended" in done.stderr
    assert (report.evidence.n_dropped_spans, report.evidence.n_unended_spans) == (1, 1)
    assert "spans-unended" in {finding.id for finding in report.findings}
    assert "spans-lost" not in {finding.id for finding in report.findings}


INTERRUPTED = (
    HEAD
    + """
class Stuck:
    def on_end(self, span): time.sleep(60)
    def shutdown(self): pass
hotspan.configure(file=sys.argv[1], span_processors=[Stuck()])
with hotspan.request():
    pass
try:
    print("ready", flush=True)
    hotspan.flush(60)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    hotspan.flush(60)
"""
)


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
def test_ctrl_c_ends_a_flush_and_a_second_one_the_program(tmp_path):
    """A flush that waits for a stuck exporter is interrupted by Ctrl-C, each time."""
    path = tmp_path / "run.jsonl"
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout.readline() == "ready\n"
        program.send_signal(signal.SIGINT)
        assert program.stdout.readline() == "interrupted\n"
        program.send_signal(signal.SIGINT)
        _, said = program.communicate(timeout=30)

    assert program.returncode == -signal.SIGINT
    assert "\nKeyboardInterrupt\n" in said  # the program's own, of the second Ctrl-C
    assert "Exception ignored" not in said
    assert path.read_text().count('"spanId"') == 1
