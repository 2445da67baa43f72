"""The OTLP exporter against real receivers, dead ports and peers that misbehave."""

import logging
import socket
import socketserver
import threading

import pytest

import hotspan
from hotspan.exporters import otlp
from hotspan.exporters.otlp import OtlpExporter, OtlpExportError
from hotspan.exporters.otlp_settings import checked_endpoint, checked_protocol
from hotspan.testing import capture
from hotspan.tracer.errors import ConfigurationError
from hotspan.tracer.record import Event, Link, Resource, Scope, SpanRecord

TRACE, SPAN, PARENT = "5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174", "eee19b7ec3c1b173"


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch):
    """Each test says what it needs of the environment."""
    for name in ("ENDPOINT", "TRACES_ENDPOINT", "PROTOCOL", "TRACES_PROTOCOL", "HEADERS", "TIMEOUT"):
        monkeypatch.delenv(f"OTEL_EXPORTER_OTLP_{name}", raising=False)


@pytest.fixture
def free_port():
    """A port of this machine that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def spans(n_spans, **fields):
    """Return so many finished spans."""
    return [SpanRecord(TRACE, f"{i + 1:016x}", None, "s", 1, 2, **fields) for i in range(n_spans)]


class Answering(socketserver.ThreadingTCPServer):
    """An HTTP server that answers every request with one status, and keeps the requests' heads."""

    daemon_threads = True

    def __init__(self, status):
        self.heads = []
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    head += self.rfile.readline()
                outer.heads.append(head.decode().lower())
                length = int(outer.heads[-1].split("content-length:")[1].split()[0])
                self.rfile.read(length)
                self.wfile.write(
                    f"HTTP/1.1 {status} Said\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
                )

        super().__init__(("127.0.0.1", 0), Handler)

    def __enter__(self):
        self.thread = threading.Thread(target=self.serve_forever, args=(0.02,))
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.shutdown()
        self.thread.join()
        self.server_close()

    @property
    def url(self):
        """The server's address."""
        return f"http://127.0.0.1:{self.server_address[1]}"


def test_records_arrive_as_they_were():
    """Every field that OTLP's exporter can carry comes out at the other end the same."""
    sent = SpanRecord(
        TRACE,
        SPAN,
        PARENT,
        "chat",
        1_000,
        2_000,
        {
            "text": "é",
            "n": 3,
            "score": 0.5,
            "ok": False,
            "gaps": [1, 2],
            "map": {"a": [None, b"x"]},
            "none": None,
        },
        kind="client",
        status="error",
        status_message="broke off",
        events=(Event("exception", 1_500, {"exception.type": "OSError"}, 2),),
        links=(Link(TRACE, PARENT, {"k": "v"}),),
        resource=Resource({"service.name": "vllm", "nested": {"a": 1}}, "https://schema/r"),
        scope=Scope("vllm", "0.32", {"k": "v"}, "https://schema/s"),
        trace_state="vendor=1",
        flags=0x300,
        n_dropped_attributes=1,
        n_dropped_events=-1,
        n_dropped_links=3,
    )
    with hotspan.receiver() as receiver, capture() as captured:
        OtlpExporter(receiver.endpoint).export([sent])

    assert captured.one("chat") == sent._replace(n_dropped_events=0)


def test_text_and_integers_that_protobuf_cannot_hold_arrive_readably(caplog):
    """A lone surrogate and an integer beyond 64 bits cost neither the span nor a log line."""
    sent = spans(1, attributes={"t\ud83d": "a\ud83d", "n": 2**64, "deep": [[2**64]], "what": object()})
    with hotspan.receiver() as receiver, capture() as captured:
        OtlpExporter(receiver.endpoint).export(sent)

    (span,) = captured.spans
    assert span.attributes == {
        "t\ufffd": "a\ufffd",
        "n": str(2**64),
        "deep": [[str(2**64)]],
        "what": "<object>",
    }
    assert caplog.records == []


def test_large_batches_are_sent_in_parts():
    """No request comes near the 4 MiB that gRPC servers take; a span too large for that is sent alone."""
    sizes = [otlp.MAX_REQUEST_BYTES // 3] * 4 + [2 * otlp.MAX_REQUEST_BYTES] + [10] * 3
    batch = [SpanRecord(TRACE, f"{i + 1:016x}", None, "s", 1, 2, {"t": "x" * n}) for i, n in enumerate(sizes)]
    with Answering(200) as server:
        OtlpExporter(server.url).export(batch)
        lengths = [int(head.split("content-length:")[1].split()[0]) for head in server.heads]

    assert len(lengths) == 4
    assert sorted(length < otlp.MAX_REQUEST_BYTES for length in lengths) == [False, True, True, True]


def test_headers_reach_the_backend(monkeypatch):
    """Headers that are given are sent beside those of the environment."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "from-environment=1")
    with Answering(200) as server:
        OtlpExporter(server.url, headers={"Api-Key": "secret"}).export(spans(1))

    (head,) = server.heads
    assert "api-key: secret" in head
    assert "from-environment: 1" in head
    assert head.startswith("post /v1/traces ")


def test_loopback_is_not_sent_through_a_proxy(monkeypatch, free_port):
    """A proxy that the environment names has no way to this machine's own loopback."""
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port}")
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with Answering(200) as server:
        OtlpExporter(server.url).export(spans(1))
        assert len(server.heads) == 1


def test_a_refusal_says_how_many_and_why(caplog):
    """A server's error becomes one exception; OpenTelemetry's own log lines do not appear."""
    with (
        Answering(400) as server,
        pytest.raises(OtlpExportError, match=r"3 of 3 .*127\.0\.0\.1.*400") as caught,
    ):
        OtlpExporter(server.url).export(spans(3))

    assert caught.value.n_lost == 3
    assert caplog.records == []


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_shutdown_ends_the_retries_at_once(protocol, free_port, caplog):
    """A collector that is down holds an export only until `shutdown`, not for its time-out."""
    exporter = OtlpExporter(f"http://127.0.0.1:{free_port}", protocol=protocol, timeout_s=120)
    raised = []

    def export():
        try:
            exporter.export(spans(2))
        except OtlpExportError as error:
            raised.append(error)

    thread = threading.Thread(target=export)
    thread.start()
    exporter.shutdown()
    thread.join(20)

    assert not thread.is_alive()
    assert [error.n_lost for error in raised] == [2]
    with pytest.raises(OtlpExportError, match="shut down"):
        exporter.export(spans(1))
    exporter.shutdown()
    assert caplog.records == []


def test_a_dead_collector_gives_the_reason(free_port):
    """The message names address, protocol and the system's own reason, and nothing of the connection pool."""
    exporter = OtlpExporter(f"http://127.0.0.1:{free_port}", timeout_s=1.5)  # one retry fits

    with pytest.raises(OtlpExportError) as caught:
        exporter.export(spans(1))

    where = f"http://127.0.0.1:{free_port}/v1/traces (http/protobuf)"
    assert str(caught.value) == f"1 of 1 spans were not delivered to {where}: Connection refused."


def test_the_applications_own_exporters_log_as_before(caplog, free_port):
    """Only what is said during an export of ours is taken; others' lines are theirs."""
    with pytest.raises(OtlpExportError):
        OtlpExporter(f"http://127.0.0.1:{free_port}", timeout_s=0.2).export(spans(1))
    logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter").error("theirs")

    assert [record.getMessage() for record in caplog.records] == ["theirs"]


@pytest.mark.parametrize(
    ("given", "environment", "protocol", "expected"),
    [
        pytest.param("http://h:4318", {}, "http/protobuf", "http://h:4318/v1/traces", id="base"),
        pytest.param("http://h:4318/", {}, "http/protobuf", "http://h:4318/v1/traces", id="slash"),
        pytest.param("https://h/otlp", {}, "http/protobuf", "https://h/otlp/v1/traces", id="below-a-path"),
        pytest.param("http://h/v1/traces", {}, "http/protobuf", "http://h/v1/traces", id="full"),
        pytest.param("http://h:4317", {}, "grpc", "http://h:4317", id="grpc"),
        pytest.param(None, {}, "http/protobuf", "http://localhost:4318/v1/traces", id="default"),
        pytest.param(None, {}, "grpc", "http://localhost:4317", id="default-grpc"),
        pytest.param(None, {"ENDPOINT": "http://e"}, "http/protobuf", "http://e/v1/traces", id="environment"),
        pytest.param(
            None, {"TRACES_ENDPOINT": "http://e/x"}, "http/protobuf", "http://e/x", id="traces-as-it-is"
        ),
        pytest.param(
            "http://g", {"TRACES_ENDPOINT": "http://e/x"}, "http/protobuf", "http://g/v1/traces", id="given"
        ),
    ],
)
def test_endpoints_are_completed_as_opentelemetry_defines(
    monkeypatch, given, environment, protocol, expected
):
    """A base address gets the path of traces, a complete one stays."""
    for name, value in environment.items():
        monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_{name}", value)

    assert checked_endpoint(given, protocol) == expected


@pytest.mark.parametrize("endpoint", ["localhost:4318", "ftp://h", "http://", "http://h:port", "http://[::1"])
def test_an_endpoint_that_cannot_be_used_is_refused(endpoint):
    """The error names the value and shows one that works."""
    with pytest.raises(ConfigurationError, match=r"http://localhost:4318"):
        OtlpExporter(endpoint)


def test_other_settings_that_cannot_be_used_are_refused(monkeypatch):
    """Protocol and time-out are checked when they are given."""
    with pytest.raises(ConfigurationError, match=r"http/json.*http/protobuf.*grpc"):
        OtlpExporter("http://h", protocol="http/json")
    with pytest.raises(ConfigurationError, match="not over 0"):
        OtlpExporter("http://h", timeout_s=0)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    assert checked_protocol(None) == "grpc"


def test_the_other_protocols_port_is_pointed_out():
    """HTTP sent to the port that gRPC usually has is said in the error."""
    exporter = OtlpExporter("http://127.0.0.1:4317", timeout_s=0.2)
    exporter.shutdown()

    with pytest.raises(OtlpExportError, match=r"usually for 'grpc'"):
        exporter.export(spans(1))
