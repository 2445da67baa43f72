"""A FastAPI service whose own tracing is around Hotspan's stages, from the HTTP request to the report."""

from __future__ import annotations

import pytest
from opentelemetry import context as otel_context
from opentelemetry import propagate, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import hotspan

fastapi = pytest.importorskip("fastapi")
responses = pytest.importorskip("fastapi.responses")
testclient = pytest.importorskip("fastapi.testclient")

N_ASKED = 3
REMOTE = {"traceparent": f"00-{0xA:032x}-{0xB:016x}-01"}


class AroundEachRequest:
    """The application's own tracing: an SDK span around each HTTP request, below its caller's."""

    def __init__(self, app, provider):
        self.app, self.tracer = app, provider.get_tracer("http")

    async def __call__(self, scope, receive, send):
        """Answer inside the span."""
        headers = {name.decode(): value.decode() for name, value in scope.get("headers", ())}
        token = otel_context.attach(propagate.extract(headers))
        try:
            with self.tracer.start_as_current_span("GET", kind=trace.SpanKind.SERVER):
                await self.app(scope, receive, send)
        finally:
            otel_context.detach(token)


@hotspan.retrieval
def search(question):
    """Find nothing, and say so."""
    return [question]


@hotspan.generation
async def tokens(question):
    """Yield an answer."""
    for token in search(question):
        yield token


def service(provider):
    """Return a service with an endpoint that is a request, and one that streams a request's answer."""
    app = fastapi.FastAPI()

    @app.get("/plain")
    @hotspan.request("plain")
    def plain(q: str):
        return search(q)

    @hotspan.request("stream")
    async def answer(q):
        async for token in tokens(q):
            yield token

    @app.get("/stream")
    async def stream(q: str):
        return responses.StreamingResponse(answer(q))

    app.add_middleware(AroundEachRequest, provider=provider)
    return testclient.TestClient(app)


def ask(client, path, headers):
    """Ask a few times."""
    for _ in range(N_ASKED):
        assert client.get(path, params={"q": "why"}, headers=headers).text in {"why", '["why"]'}


@pytest.mark.parametrize("headers", [pytest.param({}, id="root-here"), pytest.param(REMOTE, id="called")])
@pytest.mark.parametrize("path", ["/plain", "/stream"])
def test_each_http_request_is_a_request(path, headers, tmp_path):
    """With the HTTP spans elsewhere the stages are whole requests: shares, critical path and percentiles."""
    theirs, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(theirs))
    hotspan.configure(file=tmp_path / "run.jsonl")
    ask(service(provider), path, headers)
    assert hotspan.shutdown().ok

    report = hotspan.analyse(hotspan.load(tmp_path / "run.jsonl"))
    evidence = report.evidence
    assert (report.request.n, report.request.duration_ns.n, evidence.n_entry_requests) == (N_ASKED,) * 3
    assert (evidence.n_partial_traces, evidence.n_orphan_spans, evidence.warnings) == (0, 0, ())
    assert evidence.n_traces == (1 if headers else N_ASKED)
    (row,) = [row for row in report.stages if row.stage == "retrieval"]
    assert (row.calls_per_request.max, row.critical_path_ns > 0) == (1, True)
    assert {span.parent.span_id for span in theirs.get_finished_spans() if span.parent} == (
        {0xB} if headers else set()
    )


def test_with_the_http_spans_in_the_file_they_are_the_requests(tmp_path):
    """Sent to a `receiver`, the application's spans are in the file, and the request is the whole of each."""
    provider = TracerProvider()
    hotspan.configure(file=tmp_path / "run.jsonl")
    with hotspan.receiver() as receiver:
        exporter = OTLPSpanExporter(endpoint=f"{receiver.endpoint}/v1/traces")
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        ask(service(provider), "/plain", {})
        provider.shutdown()
    assert hotspan.shutdown().ok

    traces = list(hotspan.load(tmp_path / "run.jsonl"))
    report = hotspan.analyse(traces)
    assert (report.request.n, report.evidence.n_entry_requests) == (N_ASKED, 0)
    assert [span.name for trace in traces for span in trace.roots] == ["GET"] * N_ASKED
    assert report.request.duration_ns.max == max(s.duration_ns for trace in traces for s in trace.roots)
