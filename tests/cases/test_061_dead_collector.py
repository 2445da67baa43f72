"""A collector that is down or silent neither holds the program's exit nor costs the file anything."""

import socket
import subprocess
import sys
import time

import pytest

BOUND_S = 5.0  # documented: 2 s; the rest is for a slow machine.  The exporter's own time-out is 10 s
PROGRAM = """
import sys, time
import hotspan
hotspan.configure(file=sys.argv[1], otlp=sys.argv[2], protocol=sys.argv[3])
with hotspan.request():
    pass
print(time.monotonic(), flush=True)
sys.exit(7)
"""


@pytest.fixture(params=["closed", "silent"])
def collector(request):
    """The address of a port that refuses, or of one that accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        if request.param == "silent":
            yield f"http://127.0.0.1:{port}"
    if request.param == "closed":
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_the_exit_is_bounded(tmp_path, collector, protocol):
    """The exit takes no longer than documented, keeps its status, and says what is missing in one line."""
    path = tmp_path / "run.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, path, collector, protocol],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    took_s = time.monotonic() - float(done.stdout)

    assert done.returncode == 7
    assert took_s < BOUND_S
    assert path.read_text("utf-8").count('"spanId"') == 1
    (line,) = done.stderr.splitlines()
    assert "otlp" in line
