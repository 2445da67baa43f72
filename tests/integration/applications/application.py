"""A program that already uses another tracing library, with Hotspan's stages between that library's spans.

    python application.py using_{logfire|langfuse|traceloop} {never|before|after|provider} FOLDER URL

"never" is the program without Hotspan.  Otherwise Hotspan is configured before or after the other library;
with "provider" it hands its spans to that library's processors too.  The spans that the other library
delivered are written to FOLDER/theirs.json, except where it sends them to URL itself; Hotspan's to
FOLDER/run.jsonl.  A connection to anywhere but this machine is refused, and said on stderr.
"""

import asyncio
import contextlib
import contextvars
import importlib
import sys
from concurrent import futures
from pathlib import Path

from opentelemetry import propagate, trace

LOCAL = ("127.0.0.1", "::1", "localhost")


class Bare:
    """What stands in Hotspan's place where there is no Hotspan: nothing happens."""

    class ThreadPoolExecutor(futures.ThreadPoolExecutor):
        """A pool that carries the context by hand."""

        def submit(self, fn, /, *args):
            """Run `fn` in a copy of the context."""
            return super().submit(contextvars.copy_context().run, fn, *args)

    class Nothing(contextlib.nullcontext):
        """A stage that is none."""

        def __call__(self, fn):
            """Leave the function as it is."""
            return fn

    def __getattr__(self, _name):
        return lambda *_args, **_attributes: self.Nothing()


def work(ours, theirs):
    """Run spans of both libraries, and of plain OpenTelemetry, below each other in every way."""
    tracer = trace.get_tracer("app")

    @theirs("inner")
    def inner(x):
        with ours.tool("lookup"), tracer.start_as_current_span("http"):
            headers = {}
            propagate.inject(headers)
            here = trace.get_current_span().get_span_context()
            assert headers["traceparent"][:-2] == f"00-{here.trace_id:032x}-{here.span_id:016x}-"
            return x

    @theirs("broken")
    def broken():
        raise KeyError("no such page")  # noqa: EM101, TRY003 - short

    @ours.generation(model="echo")
    def stream():
        yield inner("in the stream")
        yield inner("in the stream, again")

    consume = theirs("consume")(len)

    @theirs("answer")
    def answer():
        ours.retrieval("wiki")(inner)("retrieved")
        for piece in stream():
            consume(piece)
        with contextlib.suppress(KeyError), ours.step("attempt"):
            broken()
        with ours.ThreadPoolExecutor(1) as pool:
            pool.submit(inner, "in a thread").result()

    @theirs("task")
    async def task():
        await asyncio.sleep(0)
        async with ours.embedding("e5"):
            await asyncio.to_thread(inner, "in a task")

    @theirs("later")
    async def later():
        async with ours.step("together"):
            await asyncio.gather(task(), task())

    answer()
    with ours.request("r"):
        answer()
        asyncio.run(later())


def stay_here(event, args):
    """Refuse every connection and every name that leads off this machine."""
    if event in ("socket.connect", "socket.sendto"):
        host = args[1][0] if isinstance(args[1], tuple) else LOCAL[0]  # a path is a socket on this machine
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = args[0]
    else:
        return
    if host not in LOCAL:
        sys.stderr.write(f"{event} {host}\n")
        raise PermissionError(event, host)


def main(name, order, folder, url):
    """Set both libraries up in the order asked for, work, and write down what the other one delivered."""
    sys.addaudithook(stay_here)
    library, ours = importlib.import_module(name), Bare()
    if order != "never":
        import hotspan as ours  # noqa: PLC0415 - not in the program without it
    if order == "before":
        ours.configure(file=folder / "run.jsonl")
    theirs = library.set_up(folder, url)
    provider = trace.get_tracer_provider()
    if order in ("after", "provider"):
        ours.configure(file=folder / "run.jsonl", provider=provider if order == "provider" else None)
    work(ours, theirs)
    if order != "never":
        result = ours.flush(10)
        assert result.ok, result
    assert trace.get_tracer_provider() is provider
    delivered = library.finish()
    if delivered is not None:
        (folder / "theirs.json").write_text(f"[{','.join(span.to_json() for span in delivered)}]")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4])
