"""A server that is loading: it refuses connections, then says 503, then is ready."""

import os
import socket
import sys
import textwrap

import pytest

import hotspan
from hotspan.pipelines.engines.process import ServerProcess
from hotspan.pipelines.engines.readiness import wait_until_ready

SERVER = textwrap.dedent("""
    import http.server, itertools, sys
    n_refusals, asked = int(sys.argv[2]), itertools.count()
    class Loading(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(503 if next(asked) < n_refusals else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()
        def log_message(self, *_):
            pass
    print("listening", flush=True)
    http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Loading).serve_forever()
""")


@pytest.fixture
def start(tmp_path):
    """Return what starts such a server, with how often it says 503 or what it runs instead."""
    started = []

    def begin(n_refusals=0, program=SERVER):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [sys.executable, "-u", "-c", program, str(port), str(n_refusals)]
        server = ServerProcess(command, log=tmp_path / "log", environment=os.environ)
        started.append(server)
        return server, f"http://127.0.0.1:{port}"

    yield begin
    for server in started:
        server.stop()


def test_case_113_a_server_that_says_503_is_waited_for(start, capfd):
    """Neither a refused connection nor a 503 ends the wait; the first 200 does."""
    server, address = start(n_refusals=4)
    wait_until_ready("The server", server, address, 60)
    assert "The server is ready" in capfd.readouterr().err


def test_case_113_one_that_never_is_ready_is_given_up_in_time(start):
    """The message says how long it was waited for, and shows the log."""
    server, address = start(n_refusals=1_000_000)
    with pytest.raises(hotspan.EngineError, match=r"not ready after 0 s(?s:.*)log"):
        wait_until_ready("The server", server, address, 0.4)


def test_case_113_one_that_dies_is_not_waited_for(start):
    """Its exit status and its last words come at once, long before the time is up."""
    server, address = start(program="print('no such model'); raise SystemExit(3)")
    with pytest.raises(hotspan.EngineError, match=r"status 3 before it was ready(?s:.*)no such model"):
        wait_until_ready("The server", server, address, 600)
