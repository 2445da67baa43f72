"""A signal handler of the program's that raises, as a time limit does, wherever it strikes."""

import os
import signal
import subprocess
import sys

import pytest

from hotspan.tracer import faults

# Without pytest's own word, under which a fault is raised anyway.
PROGRAM = """
import signal, sys
import hotspan

class Limit(Exception):
    pass

def over(*_):
    raise Limit

@hotspan.tool
def stage():
    pass

@hotspan.generation
def stream():
    for _ in range(20):
        yield "t"

hotspan.configure(file=sys.argv[1])
signal.signal(signal.SIGALRM, over)
n_lost = 0
for _ in range(150):
    signal.setitimer(signal.ITIMER_REAL, 0.002)
    try:
        for _ in range(1_000_000):
            stage()
            with hotspan.step("s") as span:
                span.set("list", [1, 2])
            for _ in stream():
                pass
        n_lost += 1
    except Limit:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
print(n_lost, hotspan.flush().faults)
"""


def test_a_time_limit_reaches_the_program_wherever_it_strikes(tmp_path):
    """Tracing that keeps its own faults from the program keeps nothing else from it."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTEST_CURRENT_TEST"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path / "run.jsonl"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stdout.split() == ["0", "0"]
    assert "fault of the tracing" not in done.stderr


def test_an_exception_of_anything_else_is_not_taken_for_a_signal_handlers():
    """It is told by the handlers that are installed, not by where it was raised."""
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - any will do
        raise ValueError
    assert not faults.is_the_programs(raised.value)


INTERRUPTED = """
import signal, sys
import hotspan

class Interrupt(BaseException):
    pass

def interrupt(*_):
    raise Interrupt

hotspan.configure(file=sys.argv[1])
signal.signal(signal.SIGALRM, interrupt)
for n in range(200):
    for _ in range(300):
        with hotspan.step("s"):
            pass
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.00001 * (n % 50 + 1))
        hotspan.flush(10)
    except Interrupt:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
result = hotspan.shutdown(30)
print(result.exported, result.lost)
"""


def test_a_flush_that_is_interrupted_loses_nothing(tmp_path):
    """A Ctrl-C ends the wait, and not the work: what was being handed over arrives, once."""
    path = tmp_path / "run.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, path], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.split() == ["60000", "0"]
    assert path.read_text().count('"spanId"') == 60_000


IMPATIENT = """
import sys, threading
import hotspan
from opentelemetry.sdk.trace import SpanProcessor

class Slow(SpanProcessor):
    def shutdown(self):
        print("stopping", flush=True)
        threading.Event().wait()

hotspan.configure(span_processors=[Slow()])
with hotspan.request("r"):
    pass
sys.exit(7)
"""


def test_a_ctrl_c_while_the_last_spans_are_delivered_is_said_in_one_line():
    """Who does not want to wait at the end is told what that costs, without a traceback."""
    with subprocess.Popen(
        [sys.executable, "-c", IMPATIENT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "stopping\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)

    assert process.returncode == 7
    assert said.splitlines() == [
        "hotspan: interrupted while it delivered the last spans; what had not arrived is lost"
    ]
