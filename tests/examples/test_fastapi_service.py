"""The FastAPI service, as a real server with real clients."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

import hotspan

EXAMPLE = Path(__file__).parents[2] / "examples" / "fastapi_service.py"
N_CLIENTS = 6


@pytest.fixture
def service(tmp_path, environment):
    """The running service: its process and its address."""
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    with subprocess.Popen(
        [sys.executable, str(EXAMPLE), "0"], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process, address_in(process.stderr)
        finally:
            process.kill()


def address_in(log) -> str:
    """Return the address that uvicorn says it listens on."""
    seen = []
    for line in log:
        seen.append(line)
        if found := re.search(r"running on (http://\S+)", line):
            return found[1]
    raise AssertionError("".join(seen))


def ask_service(address: str, question: str) -> str:
    """Return the whole answer; a proxy of the environment cannot reach this machine's own loopback."""
    with httpx.Client(trust_env=False) as client:
        return client.get(f"{address}/answer", params={"q": question}).raise_for_status().text


def stop(process) -> None:
    """Stop the service as Ctrl-C does, and wait until it has written its file."""
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)


def test_concurrent_streams_are_requests_of_their_own(service, tmp_path):
    """Requests that run at once in one event loop and its threads never mix, and each is whole."""
    process, address = service

    def ask(n: int) -> str:
        return ask_service(address, f"What does the nonlocal statement do? {n}")

    with ThreadPoolExecutor(N_CLIENTS) as pool:
        answers = list(pool.map(ask, range(N_CLIENTS)))
    stop(process)

    traces = list(hotspan.load(tmp_path / "service.jsonl"))
    assert all("nonlocal" in answer for answer in answers)
    assert len(traces) == N_CLIENTS
    for trace in traces:
        (root,) = trace.roots
        assert {span.name for span in trace.children_of(root)} == {
            "embeddings tf-idf",
            "retrieval numpy",
            "rerank bm25",
            "context_assembly",
            "chat word-triples",
        }
        assert len(trace) == 6


def test_the_breakdown_of_the_service_counts_its_requests_as_successful(service, tmp_path):
    """A stream that was read to its end is a success, measured to its last piece."""
    process, address = service
    ask_service(address, "What is a default parameter value?")
    stop(process)

    report = hotspan.analyse(hotspan.load(tmp_path / "service.jsonl"))

    assert (report.request.n, report.request.n_errors, report.request.n_cancelled) == (1, 0, 0)
    assert report.generation.status["ok"] == 1
    assert report.evidence.n_dropped_spans == 0
