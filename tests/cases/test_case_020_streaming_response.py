"""The span of a streamed HTTP answer ends with the stream, and is in the request's trace."""

import asyncio
import contextlib
import socket
import threading
import time

import httpx
import pytest

import hotspan
from hotspan.testing import capture

fastapi = pytest.importorskip("fastapi")
uvicorn = pytest.importorskip("uvicorn")
responses = pytest.importorskip("fastapi.responses")

PIECES, PAUSE_S = 3, 0.05


@hotspan.generation
async def async_pieces():
    """Yield slowly, asynchronously."""
    for i in range(PIECES):
        await asyncio.sleep(PAUSE_S)
        yield str(i)


@hotspan.generation
def pieces():
    """Yield slowly; the server runs each step in some thread."""
    for i in range(PIECES):
        time.sleep(PAUSE_S)
        yield str(i)


def application():
    """Return an application with a route for each kind of stream."""
    app = fastapi.FastAPI()

    @app.get("/async")
    @hotspan.request
    async def answer_async(question: str):
        return responses.StreamingResponse(async_pieces(), media_type="text/plain", headers={"q": question})

    @app.get("/sync")
    @hotspan.request
    def answer_sync(question: str):
        return responses.StreamingResponse(pieces(), media_type="text/plain", headers={"q": question})

    return app


@contextlib.contextmanager
def serving(app):
    """Run a real server in a thread; yield its address."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()  # who comes before the thread runs has to wait, and is not refused
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)


@pytest.mark.parametrize("route", ["async", "sync"])
def test_the_span_is_as_long_as_the_stream(route):
    """The generation covers all items and is the child of the route's request; the parameters arrive."""
    with capture() as captured, serving(application()) as address:
        with httpx.Client(trust_env=False) as client:
            answer = client.get(f"{address}/{route}", params={"question": "why"})
        spans = captured.spans
    by_name = {span.name.split()[0]: span for span in spans}

    assert (answer.text, answer.headers["q"]) == ("012", "why")
    assert by_name["chat"].duration_ns >= PIECES * PAUSE_S * 1e9 * 0.99  # a sleep may end a little early
    assert by_name["chat"].parent_id == by_name["request"].span_id
    assert by_name["chat"].attributes["hotspan.stream.items"] == PIECES


def test_a_client_that_goes_away_abandons_the_stream():
    """When the client closes the connection after the first piece, the span ends and says so."""
    with capture() as captured, serving(application()) as address:
        with httpx.Client(trust_env=False) as client:
            with client.stream("GET", f"{address}/async", params={"question": "why"}) as answer:
                next(answer.iter_text())
        deadline = time.monotonic() + 10
        while len(captured.spans) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
    stream = next(span for span in captured.spans if span.name == "chat")

    assert stream.attributes["hotspan.outcome"] in {"abandoned", "cancelled"}
    assert stream.attributes["hotspan.stream.items"] < PIECES
