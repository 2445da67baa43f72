"""Runs a program that another library traces, and keeps what that library sends.

The model server is a script, so that what a correct report must say is known beforehand.
"""

import gzip
import http.server
import os
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path

from tests.servers import DONE, Pause, ScriptedServer, answer, delta, event, message, stream, usage

SDK = ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http")
# Name -> the module that sets the library up, and the packages of its environment: the newest that there are,
# so that a change of theirs is noticed.
LIBRARIES = {
    "openinference": ("traced_by_openinference", ("openinference-instrumentation-openai", "openai", *SDK)),
    "otel-openai-v2": (
        "traced_by_openai_v2",
        (
            "opentelemetry-instrumentation-openai-v2",
            "opentelemetry-util-genai<1",  # it imports names that are gone in version 1
            "opentelemetry-instrumentation-httpx",
            "openai<3",  # which sends by httpx2, unseen by this instrumentation
            *SDK,
        ),
    ),
    "otel-genai": ("traced_by_genai", ("opentelemetry-instrumentation-genai-openai", "openai", *SDK)),
    "langfuse": ("traced_by_langfuse", ("langfuse", "openai")),
    "openllmetry": ("traced_by_traceloop", ("traceloop-sdk", "openai", "httpx")),
}
PROGRAM = Path(__file__).parent / "applications" / "pipeline.py"
FIRST_TOKEN_S = 0.05  # behind an empty chunk that comes at once
# What pipeline.py does, by stage; the last request fails in its model call.
EXPECTED = {"generation": 6, "embedding": 3, "retrieval": 3, "rerank": 3, "tool": 3, "agent": 1}
N_REQUESTS, N_FAILED, N_STREAMED = 4, 1, 2
N_PROMPT_TOKENS, N_OUTPUT_TOKENS = 2 * 9 + 3 * 5, 2 * 3 + 3 * 2
# Libraries that would say something about themselves or wait for the network, and what keeps them quiet.
QUIET = {"TRACELOOP_TELEMETRY": "false", "TRACELOOP_METRICS_ENABLED": "false", "OTEL_SERVICE_NAME": "app"}


def _replies():
    vector = {"object": "embedding", "index": 0, "embedding": [0.5] * 4}
    counts = {"prompt_tokens": 4, "total_tokens": 4}
    embedding = answer({"object": "list", "data": [vector], "model": "tiny-embed", "usage": counts})
    ranked = answer({"results": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.2}]})
    chat = stream(
        event(delta("", role="assistant")),
        Pause(FIRST_TOKEN_S),
        *(event(delta(word)) for word in ("It ", "is ", "so.")),
        event(delta(finish="stop")),
        event(usage(9, 3)),
        DONE,
    )
    return [embedding, ranked, chat, embedding, ranked, chat, *[answer(message())] * 3, embedding, ranked]


class _Backend(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        """Keep spans, as they came; say no to everything else."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        is_spans = self.path.endswith("/v1/traces")
        if is_spans:
            is_zipped = self.headers.get("Content-Encoding") == "gzip"
            self.server.bodies.append(gzip.decompress(body) if is_zipped else body)
        self.send_response(200 if is_spans else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_args):
        """Print nothing."""


@contextmanager
def _backend():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Backend)
    server.bodies = []
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def record(python, module):
    """Run the program in the library's environment; return the OTLP requests that the library sent."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("HOTSPAN_", "OTEL_"))}
    with ScriptedServer(_replies()) as model, _backend() as backend:
        traces = f"http://127.0.0.1:{backend.server_port}"
        done = subprocess.run(
            [python, PROGRAM, module, model.url, traces],
            env=inherited | QUIET,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        asked = [request.target for request in model.requests]
    assert done.returncode == 0, done.stderr
    assert (len(asked), "Error" in done.stdout) == (len(_replies()), True), (asked, done.stderr)
    return backend.bodies


def check(report):
    """Hold a report against what the program did."""
    calls = {row.stage: row.n_calls for row in report.stages}
    assert {stage: calls.get(stage) for stage in EXPECTED} == EXPECTED
    # An agent that is a root is a request as well.
    assert (report.request.n, report.request.n_errors) == (N_REQUESTS, N_FAILED)
    assert report.generation.status["error"] == N_FAILED
    tokens = report.generation.tokens
    assert (tokens.prompt, tokens.output) == (N_PROMPT_TOKENS, N_OUTPUT_TOKENS)
    # The empty chunk comes at once: whoever took it for the first token would be wrong by FIRST_TOKEN_S.
    assert report.generation.ttft_ns is None
    if (first := report.generation.first_chunk_ns) is not None:
        assert first.n == N_STREAMED
