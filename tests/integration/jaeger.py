"""A real Jaeger on free ports of 127.0.0.1, and a reader of its API."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlencode

if TYPE_CHECKING:
    from collections.abc import Callable

BUILD = Path(__file__).parents[2] / "scripts" / "build_jaeger.py"
START_S = 60
STOP_S = 10
POLL_S = 0.05

# Jaeger's own defaults listen on all addresses, and trace Jaeger itself to port 4317, whoever listens there.
CONFIG = """
extensions:
  jaeger_storage:
    backends:
      memory:
        memory: {max_traces: 10000}
  jaeger_query:
    enable_tracing: false
    storage: {traces: memory}
    http: {endpoint: "127.0.0.1:${env:HOTSPAN_TEST_QUERY_PORT}"}
    grpc: {endpoint: "127.0.0.1:${env:HOTSPAN_TEST_QUERY_GRPC_PORT}"}
receivers:
  otlp:
    protocols:
      http: {endpoint: "127.0.0.1:${env:HOTSPAN_TEST_HTTP_PORT}"}
      grpc: {endpoint: "127.0.0.1:${env:HOTSPAN_TEST_GRPC_PORT}"}
processors:
  batch: {timeout: 200ms}
exporters:
  jaeger_storage_exporter: {trace_storage: memory}
service:
  extensions: [jaeger_storage, jaeger_query]
  telemetry:
    metrics: {level: none}
    logs: {level: warn}
  pipelines:
    traces:
      receivers: [otlp]
      processors: [batch]
      exporters: [jaeger_storage_exporter]
"""


def program() -> str:
    """Return the path of Jaeger, built first where that is still to be done."""
    built = subprocess.run([sys.executable, BUILD], stdout=subprocess.PIPE, text=True, check=True)
    return built.stdout.strip()


def free_ports(n_ports: int) -> list[int]:
    """Return ports of 127.0.0.1 that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n_ports)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def get_json(url: str) -> Any:
    """Return what a URL of this machine answers."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(url, timeout=10) as answer:
        return json.load(answer)


class Jaeger:
    """A running Jaeger; stopped when its `with` block is left, whatever happened in it."""

    def __init__(self, folder: Path) -> None:
        self.http_port, self.grpc_port, self._query_port, self._query_grpc_port = free_ports(4)
        self._folder = folder
        self._log = folder / "jaeger.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def http(self) -> str:
        """The OTLP/HTTP endpoint."""
        return f"http://127.0.0.1:{self.http_port}"

    @property
    def grpc(self) -> str:
        """The OTLP/gRPC endpoint."""
        return f"http://127.0.0.1:{self.grpc_port}"

    def __enter__(self) -> Self:
        config = self._folder / "jaeger.yaml"
        config.write_text(CONFIG, "utf-8")
        environment = {
            "HOTSPAN_TEST_HTTP_PORT": self.http_port,
            "HOTSPAN_TEST_GRPC_PORT": self.grpc_port,
            "HOTSPAN_TEST_QUERY_PORT": self._query_port,
            "HOTSPAN_TEST_QUERY_GRPC_PORT": self._query_grpc_port,
        }
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [program(), "--config", config],
                env=os.environ | {key: str(value) for key, value in environment.items()},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            self._poll(self._answers, START_S, "Jaeger did not start")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def traces(self, service: str, n_spans: int, timeout_s: float = 20.0) -> dict[str, list[dict[str, Any]]]:
        """Return the traces of a service, spans by trace id, once they hold at least so many spans.

        Each span is Jaeger's, with `service`, `parent` (its CHILD_OF reference, or None) and `tags` a dict.
        """
        query = urlencode({"service": service, "limit": 1000, "lookback": "24h"})

        def found() -> dict[str, list[dict[str, Any]]] | None:
            traces = {each["traceID"]: _spans(each) for each in self._api(f"traces?{query}")}
            return traces if sum(map(len, traces.values())) >= n_spans else None

        return self._poll(found, timeout_s, f"{n_spans} spans of {service!r} did not arrive")

    def _api(self, path: str) -> Any:
        return get_json(f"http://127.0.0.1:{self._query_port}/api/{path}")["data"] or []

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            msg = f"Jaeger ended with {self._process.returncode}:\n{self._log.read_text('utf-8')[-3000:]}"
            raise RuntimeError(msg)
        try:
            self._api("services")
            for port in (self.http_port, self.grpc_port):
                socket.create_connection(("127.0.0.1", port), 1).close()
        except (urllib.error.URLError, OSError):
            return False
        return True

    def _poll(self, attempt: Callable[[], Any], timeout_s: float, complaint: str) -> Any:
        deadline = time.monotonic() + timeout_s
        while not (result := attempt()):
            if time.monotonic() > deadline:
                msg = f"{complaint} within {timeout_s} s:\n{self._log.read_text('utf-8')[-3000:]}"
                raise TimeoutError(msg)
            time.sleep(POLL_S)
        return result


def _spans(trace: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        span
        | {
            "service": trace["processes"][span["processID"]]["serviceName"],
            "parent": next((r["spanID"] for r in span["references"] if r["refType"] == "CHILD_OF"), None),
            "tags": {tag["key"]: tag["value"] for tag in span["tags"]},
        }
        for span in trace["spans"]
    ]
