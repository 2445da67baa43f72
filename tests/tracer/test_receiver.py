"""The OTLP receiver: what it takes, what it answers, and that it neither breaks nor leaks."""

import gzip
import http.client
import json
import socket
import threading
import urllib.error
import urllib.request
import zlib

import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

import hotspan
from hotspan.testing import capture
from hotspan.tracer.errors import ConfigurationError

TRACE, SPAN = "5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174"
PROTOBUF, JSON = "application/x-protobuf", "application/json"


def request(*names, trace_id=TRACE):
    """Return an OTLP request of vLLM's, with spans of these names."""
    made = ExportTraceServiceRequest()
    group = made.resource_spans.add()
    group.resource.attributes.add(key="service.name").value.string_value = "vllm"
    part = group.scope_spans.add()
    part.scope.name = "vllm.tracing"
    for i, name in enumerate(names):
        span = part.spans.add(trace_id=bytes.fromhex(trace_id), span_id=(i + 1).to_bytes(8), name=name)
        span.start_time_unix_nano, span.end_time_unix_nano, span.kind = 10, 20, 2
        span.attributes.add(key="gen_ai.latency.time_in_queue").value.double_value = 0.25
    return made


def as_json(**changes):
    """Return one span as OTLP/JSON."""
    span = {
        "traceId": TRACE,
        "spanId": SPAN,
        "name": "llm_request",
        "startTimeUnixNano": "10",
        "kind": 2,
    } | changes
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


def post(url, body, content_type=PROTOBUF, **headers):
    """Post without a proxy; return status, content type and body of the answer, good or bad."""
    sent = urllib.request.Request(url, body, {"Content-Type": content_type, **headers})  # noqa: S310 -- own receiver
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(sent, timeout=10) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read()
    except urllib.error.HTTPError as answer:
        with answer:
            return answer.status, answer.headers["Content-Type"], answer.read()


@pytest.fixture
def receiver():
    """A running receiver; no thread of it is left behind."""
    before = threading.active_count()
    with hotspan.receiver() as running:
        yield running
    assert threading.active_count() <= before


@pytest.fixture
def traces(receiver):
    """The address that traces are sent to."""
    return f"{receiver.endpoint}/v1/traces"


def test_spans_join_those_of_this_process(traces):
    """What arrives is recorded with its own resource and scope, and answered in protobuf."""
    with capture() as captured:
        status, kind, body = post(traces, request("llm_request").SerializeToString())

    assert (status, kind) == (200, PROTOBUF)
    assert ExportTraceServiceResponse.FromString(body) == ExportTraceServiceResponse()
    span = captured.one("llm_request")
    assert (span.trace_id, span.span_id, span.parent_id) == (TRACE, "0000000000000001", None)
    assert (span.start_ns, span.end_ns, span.kind) == (10, 20, "server")
    assert span.attributes == {"gen_ai.latency.time_in_queue": 0.25}
    assert span.resource.attributes == {"service.name": "vllm"}
    assert span.scope.name == "vllm.tracing"


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="as-specified"),
        pytest.param({"traceId": "W47/95gDgQPSabYzgT/GDA==", "spanId": "7uGbfsPBsXQ="}, id="base64-ids"),
        pytest.param({"kind": "SPAN_KIND_SERVER", "startTimeUnixNano": 10}, id="enum-name-and-number"),
        pytest.param({"unknownField": 1}, id="unknown-field"),
    ],
)
def test_json_is_taken_and_answered_in_json(traces, changes):
    """OTLP/JSON gives the same span however its writer spells ids, enums and integers."""
    with capture() as captured:
        status, kind, body = post(traces, as_json(**changes), "application/json; charset=utf-8")

    assert (status, kind, json.loads(body)) == (200, JSON, {})
    span = captured.one("llm_request")
    assert (span.trace_id, span.span_id, span.start_ns, span.kind) == (TRACE, SPAN, 10, "server")


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        pytest.param("gzip", gzip.compress, id="gzip"),
        pytest.param("deflate", zlib.compress, id="deflate"),
        pytest.param("identity", bytes, id="identity"),
    ],
)
def test_compressed_bodies_are_taken(receiver, traces, encoding, pack):
    """The compressions that OpenTelemetry's exporters know are unpacked."""
    body = pack(request("llm_request").SerializeToString())

    status, *_ = post(traces, body, **{"Content-Encoding": encoding})

    assert (status, receiver.n_spans) == (200, 1)


def test_the_bare_endpoint_takes_traces_too(receiver):
    """A sender that is given the endpoint alone, and adds no path to it, is served."""
    status, *_ = post(receiver.endpoint, request("llm_request").SerializeToString())

    assert (status, receiver.n_spans) == (200, 1)


def test_spans_without_an_id_are_refused_and_said(receiver, traces):
    """A span that cannot be placed is counted in the answer; the others are kept."""
    sent = request("good")
    sent.resource_spans[0].scope_spans[0].spans.add(name="no ids")

    status, _, body = post(traces, sent.SerializeToString())

    answer = ExportTraceServiceResponse.FromString(body)
    assert (status, receiver.n_spans, answer.partial_success.rejected_spans) == (200, 1, 1)


@pytest.mark.parametrize(
    ("body", "headers", "expected", "says"),
    [
        pytest.param(b"\xff\xff", {}, 400, "not an OTLP trace", id="no-protobuf"),
        pytest.param(b"{", {"Content-Type": JSON}, 400, "not an OTLP trace", id="no-json"),
        pytest.param(b"[1]", {"Content-Type": JSON}, 400, "not an OTLP trace", id="wrong-json"),
        pytest.param(b"text", {"Content-Encoding": "gzip"}, 400, "is not gzip", id="no-gzip"),
        pytest.param(b"\x1f\x8b", {"Content-Encoding": "gzip"}, 400, "too early", id="cut-gzip"),
        pytest.param(b"x", {"Content-Encoding": "br"}, 415, "'br'", id="other-compression"),
        pytest.param(b"x", {"Content-Type": "text/plain"}, 415, "'text/plain'", id="other-type"),
        pytest.param(b"", {"Content-Length": str(1 << 40)}, 413, "over", id="too-large"),
    ],
)
def test_bad_requests_get_an_answer_that_says_what_is_wrong(traces, body, headers, expected, says):
    """Bad input is refused in the sender's encoding, and the next request is served."""
    sent = {"Content-Type": PROTOBUF} | headers

    status, kind, answer = post(traces, body, sent.pop("Content-Type"), **sent)

    assert status == expected
    assert kind == (JSON if headers.get("Content-Type") == JSON else PROTOBUF)
    assert says in (json.loads(answer)["message"] if kind == JSON else Status.FromString(answer).message)
    assert post(traces, request("next").SerializeToString())[0] == 200


def test_other_paths_are_not_served(receiver):
    """Metrics and logs, which some senders send too, are refused by name."""
    status, _, answer = post(f"{receiver.endpoint}/v1/metrics", b"")

    assert status == 404
    assert "/v1/metrics" in Status.FromString(answer).message


def test_a_body_without_a_length_is_refused(receiver):
    """A chunked body is answered with 411 instead of being waited for."""
    host, port = receiver.endpoint.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(b"POST /v1/traces HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")

        assert connection.makefile("rb").readline().startswith(b"HTTP/1.1 411 ")


def test_a_packed_body_that_unpacks_without_end_is_refused(traces, monkeypatch):
    """The bound holds for what a body unpacks to, not only for what was sent."""
    monkeypatch.setattr("hotspan.tracer.otlp_server.MAX_BODY_BYTES", 100_000)

    status, _, answer = post(traces, gzip.compress(bytes(1_000_000)), **{"Content-Encoding": "gzip"})

    assert status == 413
    assert "unpacked" in Status.FromString(answer).message


def test_a_sender_keeps_its_connection(receiver):
    """Several requests come over one connection, as exporters send them."""
    connection = http.client.HTTPConnection(receiver.endpoint.removeprefix("http://"), timeout=10)
    for _ in range(3):
        connection.request("POST", "/v1/traces", request("s").SerializeToString(), {"Content-Type": PROTOBUF})
        assert connection.getresponse().read() == b""
    connection.close()

    assert receiver.n_spans == 3


def test_wait_returns_when_the_spans_are_there(receiver, traces):
    """`wait` ends with the arrival that makes it true, by number and by condition."""
    late = threading.Thread(target=post, args=(traces, request("a", "llm_request").SerializeToString()))
    late.start()

    assert receiver.wait(lambda: receiver.n_by_name["llm_request"] == 1, 10)
    assert receiver.wait(2, 0)
    assert not receiver.wait(3, 0)
    late.join()


def test_leaving_ends_idle_connections():
    """A sender that keeps its connection open does not hold up the end."""
    with hotspan.receiver() as receiver:
        host, port = receiver.endpoint.removeprefix("http://").split(":")
        idle = socket.create_connection((host, int(port)), 10)
        post(f"{receiver.endpoint}/v1/traces", request("s").SerializeToString())

    assert idle.recv(1) == b""
    idle.close()


@pytest.mark.parametrize(
    ("host", "port", "says"),
    [
        pytest.param("127.0.0.1", None, "in use", id="in-use"),
        pytest.param("127.0.0.1", 70_000, "0 to 65535", id="no-port"),
        pytest.param("192.0.2.1", 0, "cannot listen", id="not-our-address"),
    ],
)
def test_an_address_that_cannot_be_listened_on_is_refused(host, port, says):
    """The error says which address, and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1] if port is None else port
        with pytest.raises(ConfigurationError, match=says), hotspan.receiver(port, host):
            pass
