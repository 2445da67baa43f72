"""With content off, as it is by default, nothing of prompts, documents, messages is written or sent."""

import asyncio
import contextlib
import gzip
import http.server
import threading

import pytest

import hotspan

CANARY = "canary-7f3a"


class Leaky(Exception):  # noqa: N818 - what a program raises
    """An exception whose message quotes the prompt."""


@hotspan.generation(model="m")
def stream(prompt):
    """Yield the prompt, then fail with it."""
    yield prompt
    raise Leaky(f"{prompt} was too long")  # noqa: EM102, TRY003 - messages do quote


@hotspan.generation
async def async_stream(prompt):
    """Yield the prompt as a model would."""
    yield {"choices": [{"delta": {"content": prompt}}]}


@hotspan.tool
def tool(argument, *, keyword):  # noqa: ARG001 - they are what must not be seen
    """Fail with the argument as it was written in the source."""
    raise Leaky("canary-7f3a")  # noqa: EM101 - messages do quote


@hotspan.retrieval("faiss")
async def retrieve(query):
    """Return documents."""
    raise Leaky(query) from KeyError(query)


@hotspan.step
@contextlib.contextmanager
def manager(argument):
    """Fail with the argument, around a block."""
    yield argument
    raise Leaky(argument)


@hotspan.step
def start(argument):
    """Return a task that fails with the argument."""

    async def fail():
        raise Leaky(argument)

    return asyncio.create_task(fail())


@hotspan.request
def pipeline():
    """Take every path with the canary in its hands."""
    with contextlib.suppress(Leaky):
        list(stream(CANARY))
    with contextlib.suppress(Leaky):
        tool("canary-7f3a", keyword=CANARY)
    with contextlib.suppress(Leaky):
        asyncio.run(retrieve(CANARY))

    async def consume():
        async for _ in async_stream(CANARY):
            pass

    async def started():
        await asyncio.wait([start(CANARY)])
        await asyncio.sleep(0)

    asyncio.run(consume())
    with contextlib.suppress(Leaky), manager(CANARY):
        pass
    with contextlib.suppress(Leaky):
        asyncio.run(started())
    hotspan.current().record_exception(Leaky(CANARY))
    raise ExceptionGroup(CANARY, [Leaky(CANARY)])


class Collector(http.server.BaseHTTPRequestHandler):
    """Keeps what it is sent, as bytes."""

    def do_POST(self):
        """Keep the body, unpacked."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.sent += gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_args):
        """Print nothing."""


@pytest.fixture
def collector():
    """A server that keeps what it is sent."""
    with http.server.HTTPServer(("127.0.0.1", 0), Collector) as server:
        server.sent = b""
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("content", [False, True])
def test_the_canary_is_written_and_sent_only_if_asked(tmp_path, collector, caplog, content):
    """Zero bytes of it by default, in the file and over OTLP; with content the messages are there."""
    path = tmp_path / "run.jsonl"
    address = f"http://127.0.0.1:{collector.server_port}"
    hotspan.configure(file=path, otlp=address, capture_content=content)
    with pytest.raises(ExceptionGroup):
        pipeline()
    assert hotspan.shutdown(10).ok
    caplog.clear()  # asyncio's own line about the task that nobody read

    text = path.read_text("utf-8")
    assert text.count('"name":"exception"') == 7
    assert (CANARY in text) == content
    assert collector.sent.count(b"exception.type") == 7
    assert (CANARY.encode() in collector.sent) == content
