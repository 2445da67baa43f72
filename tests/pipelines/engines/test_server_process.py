"""A server process is never left behind, whatever becomes of the process that started it."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import uuid
from pathlib import Path

import pytest

from hotspan.pipelines.engines.process import ServerProcess

# A server with a child in its own group, and one that left the group and ignores SIGTERM.
SERVER = textwrap.dedent("""
    import signal, subprocess, sys, time
    sleep = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    for is_leader in (False, True):
        subprocess.Popen([sys.executable, "-c", sleep], start_new_session=is_leader)
    print("ready", flush=True)
    time.sleep(600)
""")
# The process that starts it, and then does what a test wants.
OWNER = textwrap.dedent("""
    import os, signal, sys, time
    from pathlib import Path
    from hotspan.pipelines.engines.process import ServerProcess
    log = Path(sys.argv[1])
    server = ServerProcess([sys.executable, "-u", "-c", sys.argv[2]], log=log, environment=os.environ)
    while "ready" not in log.read_text():
        time.sleep(0.01)
    print("up", flush=True)
    sys.stdin.readline()
""")
PATIENCE_S = 30

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks into /proc")


def marked(mark):
    """Return the processes that carry a mark in their environment, and are more than a corpse."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


def assert_all_end(mark):
    """Wait, within a bound, until no process carries the mark."""
    tick = threading.Event()
    for _ in range(PATIENCE_S * 20):
        if not marked(mark):
            return
        tick.wait(0.05)
    pytest.fail(f"left behind: {marked(mark)}")


@pytest.fixture
def mark():
    """A word that all processes of one test carry."""
    return f"HOTSPAN_TEST_MARK_{uuid.uuid4().hex}"


def start_owner(tmp_path, mark, then, **options):
    """Start an owner, wait until its server is up with all its children, and let it go on."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER + then, str(tmp_path / "log"), SERVER],
        env={**os.environ, mark: "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )
    assert owner.stdout.readline() == "up\n"
    assert len(marked(mark)) == 5  # owner, supervisor, server and its two children
    owner.stdin.write("go\n")
    owner.stdin.flush()
    return owner


@pytest.mark.parametrize(
    "then",
    [
        pytest.param("", id="end-of-program"),
        pytest.param("raise RuntimeError", id="exception"),
        pytest.param("sys.exit(3)", id="exit"),
        pytest.param("os._exit(3)", id="hard-exit"),
        pytest.param("os.kill(os.getpid(), signal.SIGTERM)", id="sigterm"),
        pytest.param("os.kill(os.getpid(), signal.SIGINT); time.sleep(600)", id="ctrl-c"),
        pytest.param("os.kill(os.getpid(), signal.SIGKILL)", id="sigkill"),
        # The fork keeps the owner's end of the pipe open.
        pytest.param(
            "os.fork() or os.execvp('sleep', ['sleep', '1']); os.kill(os.getpid(), signal.SIGKILL)",
            id="fork-exec",
        ),
        pytest.param(
            "os.fork() or time.sleep(2) or os._exit(0); os.kill(os.getpid(), signal.SIGKILL)", id="fork"
        ),
    ],
)
def test_nothing_is_left_when_the_owner_ends(tmp_path, mark, then):
    """Neither the server nor a child that left its group and ignores SIGTERM."""
    with start_owner(tmp_path, mark, then, stderr=subprocess.DEVNULL) as owner:
        owner.wait(PATIENCE_S)

    assert_all_end(mark)


@pytest.mark.parametrize("then", ["server.stop()", "del server"])
def test_nothing_is_left_when_the_server_is_no_longer_wanted(tmp_path, mark, then):
    """All of it has ended by the time that `stop` returns, or the last reference is gone."""
    then += "; print('stopped', flush=True); sys.stdin.read()"
    with start_owner(tmp_path, mark, then) as owner:
        assert owner.stdout.readline() == "stopped\n"
        assert marked(mark) == [owner.pid]
        owner.stdin.close()


def test_a_fork_that_ends_leaves_the_server_alone(tmp_path, mark):
    """Only the process that started the server stops it."""
    then = "os.fork() or sys.exit(); os.wait(); print(server.exit_status, flush=True); sys.stdin.read()"
    with start_owner(tmp_path, mark, then) as owner:
        assert owner.stdout.readline() == "None\n"
        owner.stdin.close()

    assert_all_end(mark)


def test_a_supervisor_that_is_killed_takes_the_server_with_it(tmp_path, mark):
    """The kernel ends the command when the one process that watches it is gone."""
    server = ServerProcess(
        [sys.executable, "-u", "-c", "print('ready'); import time; time.sleep(600)"],
        log=tmp_path / "log",
        environment={**os.environ, mark: "1"},
    )
    tick = threading.Event()
    while "ready" not in server.last_lines():
        assert server.exit_status is None
        tick.wait(0.01)
    for pid in marked(mark):
        if "supervisor.py" in Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8"):
            os.kill(pid, signal.SIGKILL)

    assert_all_end(mark)
    server.stop()


@pytest.mark.parametrize(
    ("code", "status"),
    [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", 128 + 9), ("pass", 0)],
)
def test_the_commands_own_end_is_seen_and_its_output_kept(tmp_path, code, status):
    """Exit status and the log's last lines are there for the message."""
    log = tmp_path / "logs" / "server.log"
    code = f"for i in range(30): print('line', i, flush=True)\n{code}"
    server = ServerProcess([sys.executable, "-c", code], log=log, environment=os.environ)
    tick = threading.Event()
    while server.exit_status is None:
        tick.wait(0.01)

    assert server.exit_status == status
    assert server.last_lines(2) == "line 28\nline 29"
    server.stop()
    server.stop()
