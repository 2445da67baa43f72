"""One trace across two processes: `inject` into an HTTP request's headers, `extract` on the other side."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import httpx
import pytest
from opentelemetry import propagate

import hotspan

SERVER = """
import contextlib, sys
import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from opentelemetry import context, propagate
import hotspan

@contextlib.asynccontextmanager
async def lifespan(app):
    yield
    hotspan.shutdown()  # uvicorn ends a process that was told to stop by the signal: nothing runs after this

app = FastAPI(lifespan=lifespan)

@app.middleware("http")
async def continue_trace(request, call_next):
    token = context.attach(propagate.extract(request.headers))
    try:
        return await call_next(request)
    finally:
        context.detach(token)

@app.get("/async")
@hotspan.retrieval("wiki", top_k=2)
async def endpoint(q: str):
    return q

@app.get("/thread")
@hotspan.retrieval("wiki", top_k=2)
def endpoint_in_a_thread(q: str):
    return q

@hotspan.retrieval("wiki", top_k=2)
async def passages(q):
    yield q

@app.get("/stream")
async def endpoint_with_a_stream(q: str):
    return StreamingResponse(passages(f'"{q}"'))

hotspan.configure(file=sys.argv[2], service_name="search")
uvicorn.run(app, fd=int(sys.argv[1]), log_level="warning")
"""
PATHS = pytest.mark.parametrize("path", ["async", "thread", "stream"])


@contextmanager
def server(file):
    """A FastAPI service in a process of its own; it has written everything when the block is left."""
    with socket.create_server(("127.0.0.1", 0)) as listening:  # connections wait in it until uvicorn is there
        fd = listening.fileno()
        process = subprocess.Popen([sys.executable, "-c", SERVER, str(fd), file], pass_fds=[fd])
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) in (0, -signal.SIGTERM)


def ask(url):
    """Make the call with the current stage's headers."""
    headers = {}
    propagate.inject(headers)
    with httpx.Client(trust_env=False, timeout=60) as client:
        assert client.get(url, params={"q": "why"}, headers=headers).json() == "why"


@PATHS
def test_the_server_continues_the_clients_trace(path, tmp_path):
    """The server's stage is a child of the stage that made the call, in one trace, each under its service."""
    hotspan.configure(file=tmp_path / "run.jsonl", service_name="bot")
    with server(tmp_path / "run.jsonl") as url:
        with hotspan.request("r"), hotspan.step("call") as call:
            ask(f"{url}/{path}")
    assert hotspan.shutdown().ok

    (trace,) = hotspan.load(tmp_path / "run.jsonl")
    by_name = {span.name: span for span in trace.spans}
    assert sorted(by_name) == ["request r", "retrieval wiki", "step call"]
    assert by_name["retrieval wiki"].parent_id == f"{call.span_id:016x}"
    services = {name: span.resource.attributes["service.name"] for name, span in by_name.items()}
    assert services == {"request r": "bot", "step call": "bot", "retrieval wiki": "search"}
    assert by_name["retrieval wiki"].resource.attributes["process.pid"] != os.getpid()


@PATHS
def test_the_server_respects_that_a_request_is_not_sampled(path, tmp_path):
    """A request that the client does not record is not recorded by a server that records everything."""
    hotspan.configure(file=tmp_path / "client.jsonl", sample_ratio=0.0)
    with server(tmp_path / "server.jsonl") as url:
        with hotspan.request("r") as span:
            assert span.traceparent().endswith("-00")
            ask(f"{url}/{path}")
        ask(f"{url}/{path}")  # outside of any request: a root of the server's own

    assert (tmp_path / "client.jsonl").read_text() == ""
    (trace,) = hotspan.load(tmp_path / "server.jsonl")
    assert [(span.name, span.parent_id) for span in trace.spans] == [("retrieval wiki", None)]
