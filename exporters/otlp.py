"""Spans to any OTLP backend (Jaeger, an OpenTelemetry Collector, …) by OpenTelemetry's own exporters.

What is done here: spans become bytes (`otlp_parts`) in as many requests as their size asks for, and a
failure becomes one exception that says how much was lost and why.  Connection, retries and time-outs are
those of OpenTelemetry's exporters.  They have no public way in for bytes; where the private one is not there,
they are given SDK spans, which they encode themselves.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

from opentelemetry.sdk.trace.export import SpanExportResult

from hotspan.exporters.otlp_parts import Packed, Part, parts_of
from hotspan.exporters.otlp_quiet import quiet, reason
from hotspan.exporters.otlp_settings import GRPC, checked_endpoint, checked_protocol, port_hint
from hotspan.exporters.otlp_spans import SpanConverter, size_of
from hotspan.tracer.errors import ConfigurationError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import requests
    from opentelemetry.sdk.trace import ReadableSpan

    from hotspan.tracer.record import SpanRecord

MAX_REQUEST_BYTES: Final = 3_500_000  # gRPC servers refuse a message over 4 MiB, whole

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_SHUT_DOWN: Final = "the exporter was shut down"


class OtlpExportError(ConnectionError):
    """A batch, or a part of it, did not reach the collector.

    Attributes:
        n_lost: How many spans of the batch were not delivered.
    """

    def __init__(self, message: str, n_lost: int) -> None:
        super().__init__(message)
        self.n_lost = n_lost


class _Sender(Protocol):
    def export(self, spans: Sequence[ReadableSpan], /) -> SpanExportResult: ...
    def shutdown(self) -> None: ...


class OtlpExporter:
    """Sends spans over OTLP, HTTP or gRPC.

    Whatever is not given comes from the environment, as OpenTelemetry defines it
    (`OTEL_EXPORTER_OTLP_ENDPOINT`, `…_PROTOCOL`, `…_HEADERS`, `…_TIMEOUT`, and the same with `_TRACES_`;
    certificates and compression from there alone).

    A failed request is tried again with growing pauses until `timeout_s` is over; `shutdown` ends a pause at
    once.  A forked child needs an exporter of its own, and over gRPC may not get one to work: gRPC does not
    survive the fork of a process that uses it.

    Args:
        endpoint: `http://host:4318` (HTTP; `/v1/traces` is added) or `http://host:4317` (gRPC); `https://`
            for TLS.
        protocol: `"http/protobuf"` or `"grpc"`.
        headers: Sent with each request, such as an API key.
        timeout_s: Bound of one request with its retries, in seconds; over 0.

    Raises:
        ConfigurationError: The endpoint, the protocol or the time-out cannot be used.
        MissingDependencyError: OpenTelemetry's exporter of this protocol is not installed.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        protocol: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> None:
        if timeout_s is not None and not timeout_s > 0:
            msg = f"The OTLP time-out {timeout_s!r} is not over 0. Give seconds, such as 10."
            raise ConfigurationError(msg)
        self.protocol = checked_protocol(protocol)
        self.endpoint = checked_endpoint(endpoint, self.protocol)
        self._stopped = threading.Event()
        self._sender = self._make_sender(dict(headers) if headers else None, timeout_s)
        self._converter = SpanConverter()
        self._send_bytes = _way_for_bytes(self._sender)

    def pack(self, spans: Sequence[SpanRecord], /) -> Packed | Sequence[SpanRecord]:
        """Return the spans as they wait best for `export`: as bytes, a tenth as large."""
        return spans if self._send_bytes is None else Packed(spans, MAX_REQUEST_BYTES)

    def export(self, spans: Packed | Sequence[SpanRecord], /) -> None:
        """Send the spans, in as many requests as their size asks for; one that fails does not stop the rest.

        Raises:
            OtlpExportError: Some were not delivered; says how many and why.
        """
        n_lost, why = 0, ""
        for part in self._parts(spans):
            failure = self._send(part)
            if failure is not None:
                n_lost, why = n_lost + len(part), failure
        if n_lost:
            where = f"{self.endpoint} ({self.protocol})"
            hint = port_hint(self.endpoint, self.protocol)
            msg = f"{n_lost} of {len(spans)} spans were not delivered to {where}: {why}.{hint}"
            raise OtlpExportError(msg, n_lost)

    def shutdown(self) -> None:
        """Stop: a retry's pause ends at once, and no further span is sent."""
        if not self._stopped.is_set():
            self._stopped.set()
            self._sender.shutdown()

    def _parts(self, spans: Packed | Sequence[SpanRecord]) -> Iterator[Part | list[SpanRecord]]:
        if isinstance(spans, Packed):
            return iter(spans.parts)
        return _parts(spans) if self._send_bytes is None else parts_of(spans, MAX_REQUEST_BYTES)

    def _send(self, part: Part | list[SpanRecord]) -> str | None:
        """Send one request; return why it failed, or None."""
        if self._stopped.is_set():
            return _SHUT_DOWN
        with quiet() as said:
            try:
                delivered = self._deliver(part)
            except ValueError:  # gRPC's word for a channel that was closed meanwhile
                if self._stopped.is_set():
                    return _SHUT_DOWN
                raise
        return None if delivered else reason(said)

    def _deliver(self, part: Part | list[SpanRecord]) -> bool:
        if isinstance(part, Part):
            return self._send_bytes is not None and self._send_bytes(part)
        spans = [self._converter.convert(span) for span in part]
        return self._sender.export(spans) is SpanExportResult.SUCCESS

    def _make_sender(self, headers: dict[str, str] | None, timeout_s: float | None) -> _Sender:
        make = _grpc_sender if self.protocol == GRPC else _http_sender
        try:
            return make(self.endpoint, headers, timeout_s)
        except ImportError as error:
            msg = f"OTLP over {self.protocol} needs one more package: pip install opentelemetry-exporter-otlp"
            raise MissingDependencyError(msg) from error


def _way_for_bytes(sender: _Sender) -> Callable[[Part], bool] | None:
    """Return what sends bytes by the exporter's own connection, or None where there is no such way."""
    take_part = getattr(sender, "export_part", None)  # ours, see `_grpc_sender`
    if take_part is not None:
        return take_part  # type: ignore[no-any-return]  # as it is declared there
    post = getattr(getattr(sender, "_client", None), "export", None)
    return None if post is None else lambda part: bool(post(part.data).success)


def _http_sender(endpoint: str, headers: dict[str, str] | None, timeout_s: float | None) -> _Sender:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 -- 0.1 s, for who uses it
        OTLPSpanExporter,
    )

    return OTLPSpanExporter(endpoint, headers=headers, timeout=timeout_s, session=_session(endpoint))


def _session(endpoint: str) -> requests.Session | None:
    """Return a session without a proxy for this machine's own loopback, where no proxy has a way to."""
    if urlsplit(endpoint).hostname not in _LOOPBACK:
        return None
    import requests  # noqa: PLC0415 -- it came with the HTTP exporter

    session = requests.Session()
    session.trust_env = False
    return session


def _grpc_sender(endpoint: str, headers: dict[str, str] | None, timeout_s: float | None) -> _Sender:
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (  # noqa: PLC0415 -- imports grpc
        OTLPSpanExporter,
    )

    lowered = {key.lower(): value for key, value in headers.items()} if headers else None
    insecure = urlsplit(endpoint).scheme == "http"
    is_known = hasattr(OTLPSpanExporter, "_translate_data")
    kind: Any = _taking_bytes(OTLPSpanExporter) if is_known else OTLPSpanExporter
    return kind(endpoint, insecure=insecure, headers=lowered, timeout=timeout_s)  # type: ignore[no-any-return]  # as the class it is made of


def _taking_bytes(base: Any) -> Any:
    """Return OpenTelemetry's gRPC exporter such that it also takes what is encoded already."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (  # noqa: PLC0415 -- with gRPC alone
        ExportTraceServiceRequest,
    )

    class Taking(base):  # type: ignore[misc]  # a class that is not always there
        def _translate_data(self, data: Any) -> Any:
            if isinstance(data, Part):
                return ExportTraceServiceRequest.FromString(data.data)
            return super()._translate_data(data)

        def export_part(self, part: Part) -> bool:
            return self.export(part) is SpanExportResult.SUCCESS

    return Taking


def _parts(spans: Sequence[SpanRecord]) -> Iterator[list[SpanRecord]]:
    """Yield the spans in runs of at most `MAX_REQUEST_BYTES`; a larger span is a run of its own."""
    part: list[SpanRecord] = []
    n_bytes = 0
    for span in spans:
        size = size_of(span)
        if part and n_bytes + size > MAX_REQUEST_BYTES:
            yield part
            part, n_bytes = [], 0
        part.append(span)
        n_bytes += size
    if part:
        yield part
