"""Executors that carry the current stage: into threads, and by `traceparent` into processes."""

import asyncio
import contextvars
import functools
import os
import subprocess
import sys
import threading
from concurrent import futures

import pytest
from opentelemetry import baggage
from opentelemetry import context as otel_context

import hotspan
from hotspan.testing import capture

TOGETHER = 3
THREE_TOOLS = [["step s", *[["execute_tool t"]] * TOGETHER]]


def work(together, _item=None):
    """Run a tool, when all of them are there."""
    together.wait(10)
    with hotspan.tool("t"):
        pass


def by_submit(pool, fn):
    """One callable three times at the same moment."""
    for future in [pool.submit(fn) for _ in range(TOGETHER)]:
        future.result()


def by_map(pool, fn):
    """`map`, whose results come in order."""
    assert list(pool.map(fn, range(TOGETHER), timeout=10)) == [None] * TOGETHER


def by_loop(pool, fn):
    """`run_in_executor` with the pool."""

    async def main():
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(loop.run_in_executor(pool, fn) for _ in range(TOGETHER)))

    asyncio.run(main())


def by_default(pool, fn):
    """`run_in_executor(None, …)` of a loop whose default executor is the pool."""

    async def main():
        loop = asyncio.get_running_loop()
        loop.set_default_executor(pool)
        await asyncio.gather(*(loop.run_in_executor(None, fn) for _ in range(TOGETHER)))

    asyncio.run(main())


@pytest.mark.parametrize("run", [by_submit, by_map, by_loop, by_default])
def test_calls_are_children_of_the_step_that_submitted_them(run):
    """Whatever way calls come into the pool, they are below the stage that was current there."""
    with capture() as captured, hotspan.ThreadPoolExecutor(TOGETHER) as pool:
        with hotspan.step("s"):
            run(pool, functools.partial(work, threading.Barrier(TOGETHER)))

    assert captured.tree() == THREE_TOOLS


def test_a_thread_keeps_nothing_of_the_call_before():
    """One thread serves two steps and then none: each call is where it was submitted, the last is a root."""
    with capture() as captured, hotspan.ThreadPoolExecutor(1) as pool:
        for name in "ab":
            with hotspan.step(name):
                pool.submit(hotspan.tool(print)).result()
        pool.submit(hotspan.tool(print)).result()

    assert captured.tree() == [
        ["step a", ["execute_tool print"]],
        ["step b", ["execute_tool print"]],
        ["execute_tool print"],
    ]


def test_the_rest_of_opentelemetrys_context_is_carried_and_nothing_else():
    """Baggage arrives, also where there is no stage; a context variable of the program's own does not."""
    own = contextvars.ContextVar("own", default="thread's")
    own.set("caller's")
    token = otel_context.attach(baggage.set_baggage("user", "u1"))
    try:
        with hotspan.ThreadPoolExecutor(1) as pool:
            assert pool.submit(lambda: (baggage.get_baggage("user"), own.get())).result() == (
                "u1",
                "thread's",
            )
    finally:
        otel_context.detach(token)


@pytest.mark.skipif(sys.version_info < (3, 14), reason="map(buffersize=…) came with Python 3.14")
def test_a_late_submission_of_map_belongs_to_the_map():
    """`map` with a buffer submits while its results are consumed: the calls are below where it was called."""
    with capture() as captured, hotspan.ThreadPoolExecutor(1) as pool:
        with hotspan.step("s"):
            results = pool.map(hotspan.tool("t")(str), range(TOGETHER), buffersize=1)
        with hotspan.step("consumer"):
            assert list(results) == ["0", "1", "2"]

    assert captured.tree() == [*THREE_TOOLS, ["step consumer"]]


def test_what_the_standard_library_carries_is_as_documented():
    """`to_thread` copies the context; `run_in_executor` of a plain pool does not, so it needs `propagate`."""
    tool = hotspan.tool("t")(lambda: None)

    async def main():
        loop = asyncio.get_running_loop()
        with hotspan.step("s"):
            await asyncio.to_thread(tool)
            await loop.run_in_executor(None, hotspan.propagate(tool))
            await loop.run_in_executor(None, tool)

    with capture() as captured:
        asyncio.run(main())

    assert captured.tree() == [["step s", ["execute_tool t"], ["execute_tool t"]], ["execute_tool t"]]


def observe(make_pool):
    """Use a thread pool in every way there is, and return what was seen."""
    seen, begun, release = [], threading.Event(), threading.Event()

    def block():
        begun.set()
        return release.wait(10)

    def raised_by(action):
        try:
            return action()
        except BaseException as exc:  # noqa: BLE001 - what was raised is the observation
            return type(exc), str(exc)

    with make_pool(1, "mine", lambda name: seen.append(name), ("initialised",)) as pool:  # noqa: PLW0108 - a function of the pool's
        running = pool.submit(block)
        begun.wait(10)
        waiting = pool.submit(seen.append, "never runs")
        seen += [pool.submit(seen.append, "never runs").cancel(), waiting.cancel(), running.cancel()]
        release.set()
        seen += [running.result(), waiting.cancelled()]
        error = ValueError("the caller's own")
        seen.append(pool.submit(raising, error).exception() is error)
        seen.append(pool.submit(lambda *args, **kwargs: (args, kwargs), 1, fn=2, self=3).result())
        seen.append(pool.submit(lambda: threading.current_thread().name).result())
        seen.append(raised_by(pool.submit(None).result))
        seen.append(raised_by(lambda: list(pool.map(int, ["1", "x"]))))
        seen += pool.map(max, [1, 5], [4, 2], timeout=10)
    seen.append(raised_by(lambda: pool.submit(print)))
    seen.append(raised_by(lambda: make_pool(0)))
    seen.append(raised_by(lambda: make_pool(initializer=3)))
    with make_pool(1, initializer=raising, initargs=(error,)) as broken:
        seen.append(raised_by(broken.submit(print).result)[0])
    return seen


def raising(error):
    """Raise it."""
    raise error


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_pool_behaves_as_the_standard_one(caplog):
    """Results, exceptions, cancelling, initializer, names, shutdown and every refusal are the same."""
    caplog.set_level("CRITICAL")

    assert observe(hotspan.ThreadPoolExecutor) == observe(futures.ThreadPoolExecutor)
    assert issubclass(hotspan.ThreadPoolExecutor, futures.ThreadPoolExecutor)
    assert issubclass(hotspan.ProcessPoolExecutor, futures.ProcessPoolExecutor)


# --- Processes ---------------------------------------------------------------------------------------------

COMMON = """
import multiprocessing, os, signal, sys
from concurrent import futures
import hotspan
from opentelemetry import baggage, context

@hotspan.tool
def tool(x=0):
    return os.getpid(), x

@hotspan.embedding("start")
def start(): ...

def fail():
    raise ValueError("the worker's own")

@hotspan.step("dying")
def die():
    tool()
    os.kill(os.getpid(), signal.SIGKILL)

def user():
    return baggage.get_baggage("user")

def elsewhere(path):
    hotspan.configure(file=path)

def pool(*args, **options):
    method = multiprocessing.get_context(sys.argv[1])
    return hotspan.ProcessPoolExecutor(1, method, *args, **options)
"""
PROGRAMS = {
    "one trace": """
    hotspan.configure(file="run.jsonl", service_name="svc")
    os.chdir("/")
    with pool(start) as workers:
        with hotspan.request("r"), hotspan.step("s"):
            pid, _ = workers.submit(tool).result()
            assert pid != os.getpid()
            assert list(workers.map(tool, range(4), chunksize=2)) == [(pid, n) for n in range(4)]
        workers.submit(tool).result()
        error = workers.submit(fail).exception()
        assert type(error) is ValueError and str(error) == "the worker's own"
        assert "in fail" in str(error.__cause__)
        try:
            workers.submit(lambda: 0).result()
        except Exception as exc:
            assert "pickle" in str(exc), exc
        token = context.attach(baggage.set_baggage("user", "é 1"))
        assert workers.submit(user).result() == "é 1"
""",
    "environment": """
    os.environ["HOTSPAN_FILE"] = "run.jsonl"
    with pool() as workers:
        workers.submit(tool).result()
        with hotspan.request("r"), hotspan.step("s"):
            workers.submit(tool).result()
""",
    "not sampled": """
    hotspan.configure(file="run.jsonl", sample_ratio=0.0)
    with pool() as workers, hotspan.request("r"):
        workers.submit(tool).result()
    hotspan.configure(file="run.jsonl")
    with hotspan.step("s"):
        pass
""",
    "configured later": """
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    with pool(start) as workers:
        workers.submit(tool).result()
        hotspan.configure(file="first.jsonl")
        workers.submit(tool).result()
        hotspan.configure(file="run.jsonl", span_processors=[SimpleSpanProcessor(InMemorySpanExporter())])
        with hotspan.step("s"):
            workers.submit(tool).result()
""",
    "configured by the worker": """
    hotspan.configure(file="other.jsonl")
    with pool(elsewhere, ("first.jsonl",)) as workers:
        workers.submit(os.getpid).result()
        hotspan.configure(file="run.jsonl")
        with hotspan.step("s"):
            workers.submit(tool).result()
""",
    "killed worker": """
    hotspan.configure(file="run.jsonl")
    with pool() as workers:
        with hotspan.request("r"):
            workers.submit(tool).result()
            error = workers.submit(die).exception()
        assert type(error) is futures.process.BrokenProcessPool
""",
    "no destination": """
    with pool(start) as workers, hotspan.step("s"):
        workers.submit(tool).result()
""",
}


def spans_of(path):
    """Return the spans of a file, with the names of their parents."""
    spans = [span for trace in hotspan.load(path) for span in trace.spans] if path.exists() else []
    names = {span.span_id: span.name for span in spans}
    return sorted(((s.name, names.get(s.parent_id, s.parent_id)) for s in spans), key=str), spans


@pytest.fixture
def run(tmp_path):
    """Run one of the programs in a folder of its own, and return the folder."""

    def run(program, method):
        path = tmp_path / "program.py"
        path.write_text(f"{COMMON}\nif __name__ == '__main__':\n{PROGRAMS[program]}", encoding="utf-8")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("HOTSPAN_", "OTEL_"))}
        command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", path, method]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        return tmp_path

    return run


METHODS = pytest.mark.parametrize("method", ["spawn", "fork"])
TOOL = "execute_tool tool"


@METHODS
def test_a_worker_continues_the_trace_in_the_same_file(run, method):
    """Calls are below the step that made them, one made outside of it is not; service and pid are right."""
    found, spans = spans_of(run("one trace", method) / "run.jsonl")

    assert found == sorted(
        [
            ("request r", None),
            ("step s", "request r"),
            *[(TOOL, "step s")] * 5,
            (TOOL, None),
            ("embeddings start", None),
        ],
        key=str,
    )
    assert len({span.trace_id for span in spans}) == 3
    assert len({span.span_id for span in spans}) == len(spans)
    assert {span.resource.attributes["service.name"] for span in spans} == {"svc"}
    pids = {span.name: span.resource.attributes["process.pid"] for span in spans}
    assert pids["request r"] == pids["step s"] != pids[TOOL] == pids["embeddings start"]


@METHODS
def test_a_worker_has_the_environment_as_its_parent_has(run, method):
    """A program that configures nothing, and a variable that names the file."""
    found, _ = spans_of(run("environment", method) / "run.jsonl")

    assert found == [(TOOL, "step s"), (TOOL, None), ("request r", None), ("step s", "request r")]


@METHODS
def test_a_worker_respects_that_a_request_is_not_sampled(run, method):
    """The parent's decision holds in the worker: nothing of that request is written, by either."""
    found, _ = spans_of(run("not sampled", method) / "run.jsonl")

    assert found == [("step s", None)]


@METHODS
def test_a_worker_follows_what_its_parent_configures_later(run, method):
    """A call's spans go where the parent recorded when it made the call; its span processors stay with it."""
    folder = run("configured later", method)

    assert spans_of(folder / "first.jsonl")[0] == [(TOOL, None)]
    assert spans_of(folder / "run.jsonl")[0] == [(TOOL, "step s"), ("step s", None)]


@METHODS
def test_what_a_worker_configured_itself_holds(run, method):
    """`configure` in the initializer is the worker's own word; the trace goes on all the same."""
    folder = run("configured by the worker", method)

    ((name, parent),), (span,) = spans_of(folder / "first.jsonl")
    _, (step,) = spans_of(folder / "run.jsonl")
    assert (name, parent, span.trace_id) == (TOOL, step.span_id, step.trace_id)


@METHODS
def test_a_worker_that_is_killed_leaves_a_note(run, method):
    """The parent's file has the parent's spans, and says that a call went down with its process."""
    path = run("killed worker", method) / "run.jsonl"
    found, _ = spans_of(path)
    evidence = hotspan.analyse(hotspan.load(path)).evidence

    assert ("request r", None) in found
    assert not [name for name, _ in found if name == "step dying"]
    (warning,) = [warning for warning in evidence.warnings if "worker process" in warning]
    assert warning.startswith("1 calls failed")


@METHODS
def test_a_worker_writes_nothing_where_its_parent_does_not(run, method):
    """Without a destination the pool is the standard one."""
    folder = run("no destination", method)

    assert [path.name for path in folder.glob("*.jsonl")] == []
