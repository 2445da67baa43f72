"""An application that uses Logfire, Langfuse or OpenLLMetry keeps its traces, and gets ours in the same tree.

Each library is the real one, in an environment of its own; `applications/application.py` is the program.
"""

import gzip
import http.server
import json
import os
import subprocess
import threading
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

import hotspan
from tests.integration.environments import python_with

pytestmark = pytest.mark.integration

PROGRAM = Path(__file__).parent / "applications" / "application.py"
ENVIRONMENT = {
    "LOGFIRE_IGNORE_NO_CONFIG": "1",
    "TRACELOOP_TELEMETRY": "false",
    "TRACELOOP_METRICS_ENABLED": "false",
}
# Differ between any two runs of one program.
VOLATILE = {"thread.id", "thread.name", "service.instance.id", "process.pid"}
# What Langfuse and Logfire write on a span whose parent they do not know: the one takes it for the root of
# the application, the other for the place where an exception leaves the program.
APP_ROOT = "langfuse.internal.is_app_root"
AS_A_ROOT = {APP_ROOT, "logfire.exception.fingerprint"}

INNER = ("inner", [("execute_tool lookup", [("http", [])])])
ANSWER = (
    "answer",
    [
        ("retrieval wiki", [INNER]),
        ("chat echo", [INNER, INNER]),
        ("consume", []),
        ("consume", []),
        ("step attempt", [("broken", [])]),
        INNER,
    ],
)
TASK = ("task", [("embeddings e5", [INNER])])
TREES = [ANSWER, ("request r", [ANSWER, ("later", [("step together", [TASK, TASK])])])]
N_OURS = 2 * 7 + 6


class Seen(NamedTuple):
    """A span as the other library delivered it, or as Hotspan's file has it."""

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    described: str = ""
    is_app_root: bool = False


class Run(NamedTuple):
    """What came out of the application."""

    theirs: list[Seen]
    ours: list[Seen]
    folder: Path


class Backend(http.server.BaseHTTPRequestHandler):
    """Takes OTLP over HTTP at any path, and says no to everything else."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        """Keep the spans."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("/v1/traces"):
            is_zipped = self.headers.get("Content-Encoding") == "gzip"
            self.server.spans += decode(gzip.decompress(body) if is_zipped else body)
        self.send_response(200 if self.path.endswith("/v1/traces") else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_args):
        """Print nothing."""


@contextmanager
def backend():
    """A server on this machine that the application's library may send to."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Backend)
    server.spans = []
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def describe(name, attributes, resource, status, events):
    """Return what must be equal in two runs, as text."""
    kept = {key: value for key, value in attributes.items() if key not in VOLATILE | AS_A_ROOT}
    service = {key: value for key, value in resource.items() if key not in VOLATILE}
    return json.dumps([name, kept, service, status, events], sort_keys=True, default=str)


def decode(body):
    """Return the spans of an OTLP request."""
    seen = []
    for group in ExportTraceServiceRequest.FromString(body).resource_spans:
        resource = {pair.key: str(pair.value) for pair in group.resource.attributes}
        for span in (span for scope in group.scope_spans for span in scope.spans):
            attributes = {pair.key: str(pair.value) for pair in span.attributes}
            events = [event.name for event in span.events]
            described = describe(span.name, attributes, resource, str(span.status), events)
            ids = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex() or None
            seen.append(Seen(*ids, span.name, described, APP_ROOT in attributes))
    return seen


def read(path):
    """Return the spans that the application wrote down for its library."""
    seen = []
    for span in json.loads(path.read_text()):
        events = [event["name"] for event in span["events"]]
        resource = span["resource"]["attributes"]
        described = describe(span["name"], span["attributes"], resource, span["status"], events)
        ids = [span["context"]["trace_id"][2:], span["context"]["span_id"][2:], (span["parent_id"] or "")[2:]]
        seen.append(Seen(ids[0], ids[1], ids[2] or None, span["name"].removesuffix(".task"), described))
    return seen


def run(library, order, folder):
    """Run the application; nothing it says on stderr is expected."""
    folder.mkdir(exist_ok=True)
    with backend() as server:
        done = subprocess.run(
            [
                library["python"],
                PROGRAM,
                library["module"],
                order,
                folder,
                f"http://127.0.0.1:{server.server_port}",
            ],
            env={k: v for k, v in os.environ.items() if not k.startswith(("HOTSPAN_", "OTEL_"))}
            | ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")
    written = folder / "theirs.json"
    theirs = read(written) if written.exists() else server.spans
    spans = [span for t in hotspan.load(folder / "run.jsonl") for span in t.spans] if order != "never" else []
    return Run(theirs, [Seen(s.trace_id, s.span_id, s.parent_id, s.name) for s in spans], folder)


def trees(spans):
    """Return the trees of the spans as nested names, siblings by name; each tree must be of one trace."""
    by_id = {span.span_id: span for span in spans}
    children = {span_id: [] for span_id in (None, *by_id)}
    for span in spans:
        children[span.parent_id].append(span)  # a parent that is nowhere is an error here
        assert span.parent_id is None or by_id[span.parent_id].trace_id == span.trace_id

    def below(span_id):
        return sorted((child.name, below(child.span_id)) for child in children[span_id])

    assert len(by_id) == len(spans), "a span came twice"
    return below(None)


def in_order(tree):
    """Return a tree with its siblings by name."""
    name, children = tree
    return name, sorted(map(in_order, children))


def depths(found, depth=0):
    """Yield the names of nested trees, each with how deep it lies."""
    for name, children in found:
        yield depth, name
        yield from depths(children, depth + 1)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(("using_logfire", "logfire==5.4.0"), id="logfire"),
        pytest.param(("using_langfuse", "langfuse==5.0.4"), id="langfuse"),
        pytest.param(("using_traceloop", "traceloop-sdk==0.62.4"), id="openllmetry"),
    ],
)
def library(request, tmp_path_factory):
    """One of the libraries, with what the application delivers without Hotspan."""
    module, package = request.param
    found = {"module": module, "python": python_with(package)}
    return found | {"alone": run(found, "never", tmp_path_factory.mktemp(module))}


@pytest.mark.parametrize("order", ["before", "after"])
def test_the_application_keeps_its_traces(library, order, tmp_path):
    """Each of its spans is delivered as without Hotspan, and ours are between them in the same trees."""
    found = run(library, order, tmp_path)

    assert Counter(s.described for s in found.theirs) == Counter(s.described for s in library["alone"].theirs)
    assert len(found.ours) == N_OURS
    assert trees(found.theirs + found.ours) == sorted(map(in_order, TREES))


def test_a_provider_that_is_given_receives_our_spans_too(library, tmp_path):
    """With `configure(provider=…)` the other library delivers whole trees, and the file has ours as ever.

    Its processors are told of each start: Langfuse knows one root a trace, and Logfire prints one tree.
    """
    found = run(library, "provider", tmp_path)
    ids = {span.span_id for span in found.ours}
    alone = Counter(s.described for s in library["alone"].theirs)

    assert Counter(s.described for s in found.theirs if s.span_id not in ids) == alone
    assert len(ids) == N_OURS
    assert trees(found.theirs) == sorted(map(in_order, TREES))
    if library["module"] == "using_langfuse":
        roots = [span.span_id for span in found.theirs if span.parent_id is None]
        assert sorted(roots) == sorted(span.span_id for span in found.theirs if span.is_app_root)
    if library["module"] == "using_logfire":
        lines = (found.folder / "console.txt").read_text().splitlines()
        printed = {((len(line) - len(line.lstrip())) // 2, line.strip()) for line in lines if line}
        assert printed == set(depths(TREES))


def test_logfire_prints_what_it_printed(library, tmp_path):
    """Its console has the same spans, as before; only the indentation below our stages is lost."""
    if library["module"] != "using_logfire":
        pytest.skip("the other libraries print nothing")
    found = run(library, "after", tmp_path)
    before, now = (
        {line.strip() for line in (of.folder / "console.txt").read_text().splitlines()}
        for of in (library["alone"], found)
    )

    assert now == before != set()
