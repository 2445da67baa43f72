"""The application's tracer provider is untouched, set before or after, and configuring twice is fine."""

import subprocess
import sys

import pytest

PROGRAM = """
import logging, sys
logging.basicConfig(level=logging.DEBUG, stream=sys.stderr, format="LOG %(message)s")
import hotspan
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

def application():
    global exporter, provider
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)

if sys.argv[2] == "before":
    application()
hotspan.configure(file=sys.argv[1])
hotspan.configure(file=sys.argv[1])
if sys.argv[2] == "after":
    application()
with trace.get_tracer("app").start_as_current_span("app"):
    with hotspan.request():
        with trace.get_tracer("lib").start_as_current_span("lib"):
            pass
assert trace.get_tracer_provider() is provider
assert [span.name for span in exporter.get_finished_spans()] == ["lib", "app"]
lib, app = exporter.get_finished_spans()
assert lib.context.trace_id == app.context.trace_id and lib.parent.span_id != app.context.span_id
"""


@pytest.mark.parametrize("order", ["before", "after"])
def test_both_go_their_own_way(tmp_path, order):
    """The application's spans go where it sends them, ours into the file once, in one tree."""
    path = tmp_path / "run.jsonl"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, path, order],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert path.read_text().count('"spanId"') == 1
    assert path.read_text().count('"parentSpanId"') == 1
