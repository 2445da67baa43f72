"""Setting up: arguments, environment, faults of either, other people's providers, switching off."""

import json
import logging
import subprocess
import sys

import pytest
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import hotspan
from hotspan.testing import capture
from hotspan.tracer import config


def spans_of(path):
    """Return the spans of a trace file, each with its resource's attributes."""
    found = []
    for line in path.read_text("utf-8").splitlines():
        for group in json.loads(line)["resourceSpans"]:
            resource = {pair["key"]: pair["value"] for pair in group["resource"]["attributes"]}
            for scope in group.get("scopeSpans", ()):
                found.extend((span, resource) for span in scope["spans"])
    return found


def run(program, *arguments, **environment):
    """Run a Python program with these environment variables; return what it printed and said."""
    import os  # noqa: PLC0415 - next to its only use

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param({"sample_ratio": 1.5}, "sample_ratio=1.5", id="ratio-over-1"),
        pytest.param({"sample_ratio": float("nan")}, "sample_ratio=nan", id="ratio-nan"),
        pytest.param({"sample_ratio": "half"}, "sample_ratio='half'", id="ratio-text"),
        pytest.param({"protocol": "carrier pigeon"}, "protocol=", id="protocol"),
        pytest.param({"otlp": "localhost:4318"}, "otlp=", id="otlp-without-scheme"),
        pytest.param({"file": "/nowhere/at/all/run.jsonl"}, "run.jsonl", id="file-without-folder"),
        pytest.param({"span_processors": [object()]}, "on_end", id="no-processor"),
        pytest.param({"span_processors": 1}, "span_processors=1", id="no-processors"),
        pytest.param({"provider": object()}, "provider=", id="no-provider"),
        pytest.param({"capture_content": "false"}, "capture_content='false'", id="content-text"),
        pytest.param({"otlp": 3}, "otlp=3", id="otlp-number"),
        pytest.param({"file": 3}, "file=3", id="file-number"),
        pytest.param({"file": "a\0b"}, "null character", id="file-null"),
        pytest.param({"service_name": b"bot"}, "service_name=b'bot'", id="service-bytes"),
    ],
)
def test_what_cannot_be_used_is_refused(arguments, says, tmp_path):
    """A wrong value is an error that names it, and what was configured before stays in force."""
    hotspan.configure(file=tmp_path / "run.jsonl")
    with pytest.raises(hotspan.ConfigurationError, match=says):
        hotspan.configure(**arguments)
    with hotspan.request():
        pass

    assert hotspan.flush().exported == 1


def test_environment_configures_without_a_call(tmp_path):
    """A program that never calls `configure` is traced when the environment says where to."""
    path = tmp_path / "run.jsonl"
    program = "import hotspan\nwith hotspan.request('r'):\n    pass"

    run(program, HOTSPAN_FILE=str(path), OTEL_SERVICE_NAME="svc", HOTSPAN_SAMPLE_RATIO="1.0")

    ((span, resource),) = spans_of(path)
    assert span["name"] == "request r"
    assert resource["service.name"] == {"stringValue": "svc"}


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HOTSPAN_SAMPLE_RATIO", "lots"),
        ("HOTSPAN_CAPTURE_CONTENT", "perhaps"),
        ("HOTSPAN_FILE", "/nowhere/at/all/run.jsonl"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "nonsense"),
    ],
)
def test_a_wrong_variable_does_not_break_the_program(variable, value):
    """Unasked, Hotspan says once that it is off, and the program runs."""
    program = "import hotspan\nfor _ in range(3):\n    with hotspan.request():\n        pass\nprint('done')"

    out, said = run(program, **{variable: value})

    assert out == "done\n"
    assert said.count("tracing is off") == 1


def test_an_argument_wins_over_its_variable(tmp_path, monkeypatch):
    """What is given in code is used, and what is not comes from the environment."""
    monkeypatch.setenv("HOTSPAN_FILE", str(tmp_path / "environment.jsonl"))
    monkeypatch.setenv("OTEL_SERVICE_NAME", "from-environment")
    hotspan.configure(file=tmp_path / "argument.jsonl")

    assert config.settings().file == str(tmp_path / "argument.jsonl")
    assert config.settings().service_name == "from-environment"


def test_sampling_is_decided_at_the_root():
    """Whole requests are kept or dropped, about as many as asked for."""
    with capture(sample_ratio=0.5) as captured:
        for _ in range(400):
            with hotspan.request(), hotspan.step():
                pass
        spans = captured.spans
    roots = [span for span in spans if span.parent_id is None]

    assert len(spans) == 2 * len(roots)
    assert 120 < len(roots) < 280


def test_own_cost_is_written_into_the_resource(tmp_path):
    """The cost of a stage and of a stream's item is measured by spans that are not written or counted."""
    path = tmp_path / "run.jsonl"
    hotspan.configure(file=path)
    with hotspan.request():
        pass
    result = hotspan.shutdown()
    ((_, resource),) = spans_of(path)

    assert (result.exported, result.lost) == (1, 0)
    for key in ("hotspan.overhead_per_span_ns", "hotspan.overhead_per_chunk_ns"):
        assert 0 < int(resource[key]["intValue"]) < 1_000_000


def test_shutdown_stops_and_configure_starts_again(tmp_path):
    """After `shutdown` stages cost next to nothing and write nothing, until `configure` is called again."""
    hotspan.configure(file=tmp_path / "run.jsonl")
    hotspan.shutdown()
    with hotspan.request() as span:
        assert not span.is_recording()
    assert hotspan.flush() == hotspan.shutdown()
    hotspan.configure(file=tmp_path / "run.jsonl")
    with hotspan.request():
        pass

    assert hotspan.flush().exported == 1


# --- Other people's OpenTelemetry --------------------------------------------------------------------------


class Failing(SpanProcessor):
    """Raises at every span."""

    def on_end(self, span):
        """Raise."""
        raise RuntimeError(span.name)


def provider_to(exporter):
    """Return an application's provider that sends to the exporter."""
    provider = TracerProvider(resource=Resource({"service.name": "app"}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


def test_span_processors_receive_every_span():
    """A processor gets finished spans as the SDK's own, with ids, times, attributes, events and status."""
    exporter = InMemorySpanExporter()
    hotspan.configure(span_processors=[SimpleSpanProcessor(exporter)], service_name="svc")
    with hotspan.request("r") as span:
        span.set("k", [1, 2]).fail(KeyError())
    assert hotspan.flush().ok
    (found,) = exporter.get_finished_spans()

    assert (found.name, found.context.span_id, found.context.trace_id) == (
        "request r",
        span.span_id,
        span.trace_id,
    )
    assert found.attributes["k"] == [1, 2]
    assert found.status.status_code is trace.StatusCode.ERROR
    assert found.events[0].name == "exception"
    assert found.resource.attributes["service.name"] == "svc"
    assert found.end_time >= found.start_time


def test_a_processor_that_fails_is_counted_and_stops_nobody(caplog):
    """The spans of a failing processor count as lost, are said once, and reach the processor beside it."""
    caplog.set_level(logging.WARNING)
    exporter = InMemorySpanExporter()
    hotspan.configure(span_processors=[Failing(), SimpleSpanProcessor(exporter)])
    for _ in range(3):
        with hotspan.step():
            pass
    result = hotspan.flush()

    assert (result.ok, result.lost) == (False, 3)
    assert len(exporter.get_finished_spans()) == 3
    assert len(caplog.records) == 1


def test_the_applications_provider_gets_our_spans_if_it_asks():
    """`configure(provider=…)` puts stages and the application's spans in one tree, under its resource."""
    exporter = InMemorySpanExporter()
    provider = provider_to(exporter)
    hotspan.configure(provider=provider)
    with provider.get_tracer("app").start_as_current_span("app") as app:
        with hotspan.request("ours"):
            pass
    assert hotspan.shutdown().ok
    with provider.get_tracer("app").start_as_current_span("after"):
        pass
    found = {span.name: span for span in exporter.get_finished_spans()}

    assert found["request ours"].parent.span_id == app.get_span_context().span_id
    assert found["request ours"].resource.attributes["service.name"] == "app"
    assert "after" in found  # the provider was not shut down
    provider.shutdown()


# --- Switched off ------------------------------------------------------------------------------------------

DISABLED = """
import asyncio, functools, pickle, sys, hotspan
def plain(x): return x
class Search:
    def run(self): return 1
before = Search.run
assert hotspan.tool(plain) is plain
assert hotspan.retrieval("faiss", top_k=3)(plain) is plain
assert hotspan.stage("x")(Search).run is before
partial = functools.partial(plain, 1)
assert hotspan.step(partial) is partial
hotspan.configure(file=sys.argv[1])
with hotspan.request() as span:
    span.set("k", 1)
    assert not span.is_recording()
again = hotspan.stage("own", k=1)
async def nested():
    async with again as outer:
        with again as inner, hotspan.step("s"):
            assert inner is outer is span and not hotspan.current().is_recording()
asyncio.run(nested())
try:
    with again, hotspan.tool("t"):
        raise KeyError("kept")
except KeyError as error:
    assert error.args == ("kept",)
assert not again.start().is_recording()
assert pickle.loads(pickle.dumps(again)).span_name == again.span_name
for wrong in (lambda: hotspan.step(3), lambda: hotspan.stage("")):
    try:
        wrong()
    except hotspan.ConfigurationError:
        print("refused")
"""


def test_disabled_returns_what_it_was_given(tmp_path):
    """With `HOTSPAN_DISABLED` at import a decorator costs nothing at the call: it returns the callable."""
    path = tmp_path / "run.jsonl"

    out, said = run(DISABLED, path, HOTSPAN_DISABLED="1")

    assert (out, said) == ("refused\nrefused\n", "")
    assert not path.exists()


def test_a_switch_that_is_neither_true_nor_false_is_said(tmp_path):
    """`HOTSPAN_DISABLED=maybe` is taken for false, in one line of the log."""
    out, said = run("import hotspan; print('ran')", tmp_path / "run.jsonl", HOTSPAN_DISABLED="maybe")
    assert out == "ran\n"
    assert said.count("HOTSPAN_DISABLED='maybe' is taken for false") == 1
