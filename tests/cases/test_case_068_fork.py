"""Forked processes write to the parent's file: every span once, whole lines, nothing hangs."""

import json
import subprocess
import sys

import pytest

N_CHILDREN, N_SPANS = 4, 10

COMMON = """
import os, sys, threading, warnings
import hotspan
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of any fork beside a thread
hotspan.configure(file=sys.argv[1])
kept = hotspan.step("parent's open stage").start()
def stream():
    yield 1
    yield 2
opened = hotspan.step("parent's stream")(stream)()
next(opened)
with hotspan.request("parent's buffered"):
    pass
def child(n):
    for _ in range(10):
        with hotspan.step(f"child {n}"):
            pass
"""

FORK = (
    COMMON
    + """
pids = []
for n in range(4):
    pid = os.fork()
    if pid == 0:
        child(n)
        kept.end()
        list(opened)
        result = hotspan.shutdown(5)
        os._exit(0 if result.ok and result.exported == 10 else 1)
    pids.append(pid)
assert all(os.waitpid(pid, 0)[1] == 0 for pid in pids)
kept.end()
list(opened)
"""
)

MULTIPROCESSING = (
    COMMON
    + """
import multiprocessing
context = multiprocessing.get_context("fork")
processes = [context.Process(target=child, args=(n,)) for n in range(4)]
for process in processes: process.start()
for process in processes: process.join()
assert [process.exitcode for process in processes] == [0] * 4
kept.end()
list(opened)
"""
)

POOL = (
    COMMON
    + """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("fork")) as pool:
    list(pool.map(child, range(4)))
kept.end()
list(opened)
"""
)

PRELOAD = (
    COMMON
    + """
# As a pre-forking server does: children leave by sys.exit, while other threads of the parent are at work.
stop = threading.Event()
def busy():
    while not stop.is_set():
        with hotspan.stage("busy") as span:
            span.set("k", 1)
threads = [threading.Thread(target=busy) for _ in range(2)]
for thread in threads: thread.start()
pids = []
for n in range(4):
    pid = os.fork()
    if pid == 0:
        child(n)
        sys.exit(0)
    pids.append(pid)
assert all(os.waitpid(pid, 0)[1] == 0 for pid in pids)
stop.set()
for thread in threads: thread.join()
kept.end()
list(opened)
"""
)


@pytest.mark.parametrize(
    "program", [FORK, MULTIPROCESSING, POOL, PRELOAD], ids=["fork", "process", "pool", "preload"]
)
def test_every_span_once(tmp_path, program):
    """Forty spans of four children and the parent's three, with ids of their own and the right process."""
    path = tmp_path / "run.jsonl"
    subprocess.run([sys.executable, "-c", program, path], check=True, timeout=60)

    names, ids, pids = [], [], {}
    for line in path.read_text("utf-8").splitlines():
        for group in json.loads(line)["resourceSpans"]:
            attributes = {pair["key"]: pair["value"] for pair in group["resource"]["attributes"]}
            assert "hotspan.lost_spans" not in attributes
            for span in group["scopeSpans"][0]["spans"]:
                names.append(span["name"])
                ids.append(span["spanId"])
                pids.setdefault(span["name"], set()).add(attributes["process.pid"]["intValue"])
    own = [name for name in names if name != "busy"]
    assert sorted(own) == sorted(
        [
            *(f"step child {n}" for n in range(N_CHILDREN) for _ in range(N_SPANS)),
            "step parent's open stage",
            "step parent's stream",
            "request parent's buffered",
        ]
    )
    assert len(set(ids)) == len(ids)
    (parent,) = pids["request parent's buffered"]
    assert all(parent not in pids[name] for name in pids if "child" in name)
