"""Spans as OTLP's requests (`ExportTraceServiceRequest`), as many as their size asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from hotspan.exporters.otlp_wire import attributes_field, sized, span_bytes, text_field
from hotspan.exporters.otlp_wire_plain import plain_bytes
from hotspan.tracer.record import SpanBatch, SpanRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from hotspan.tracer.record import Resource, Scope

_MAX_CACHED: Final = 4096
_FRAME_BYTES: Final = 16  # tags and lengths around the spans of one scope

_Owner = TypeVar("_Owner", "Resource", "Scope")
_resources: dict[int, tuple[Resource, tuple[bytes, bytes]]] = {}
_scopes: dict[int, tuple[Scope, tuple[bytes, bytes]]] = {}


class Part:
    """One request's worth of spans.

    Attributes:
        data: An `ExportTraceServiceRequest`.
    """

    __slots__ = ("_n_spans", "data")

    def __init__(self, n_spans: int, data: bytes) -> None:
        self._n_spans, self.data = n_spans, data

    def __len__(self) -> int:
        return self._n_spans


class Packed:
    """Spans that wait to be sent, as bytes.

    Attributes:
        parts: The requests.
    """

    __slots__ = ("parts",)

    def __init__(self, spans: Iterable[SpanRecord], max_bytes: int) -> None:
        self.parts = list(parts_of(spans, max_bytes))

    def __len__(self) -> int:
        return sum(map(len, self.parts))


def parts_of(spans: Iterable[SpanRecord], max_bytes: int) -> Iterator[Part]:
    """Yield the spans as requests of at most `max_bytes`; a larger span is a request of its own."""
    groups: dict[tuple[bytes, bytes], dict[tuple[bytes, bytes], list[bytes]]] = {}
    group: list[bytes] = []
    resource = scope = None
    n_spans = n_bytes = 0
    for data, resource_, scope_ in _bytes_of_batch(spans) if isinstance(spans, SpanBatch) else _bytes(spans):
        if resource_ is not resource or scope_ is not scope or n_bytes + len(data) > max_bytes:
            if n_spans and n_bytes + len(data) > max_bytes:
                yield Part(n_spans, _request(groups))
                groups, n_spans, n_bytes = {}, 0, 0
            resource, scope = resource_, scope_
            frame, inner = (
                _frame(_resources, resource, _resource_frame),
                _frame(_scopes, scope, _scope_frame),
            )
            scopes = groups.setdefault(frame, {})
            n_bytes += 0 if inner in scopes else sum(map(len, frame + inner)) + _FRAME_BYTES
            group = scopes.setdefault(inner, [])
        group.append(data)
        n_spans += 1
        n_bytes += len(data)
    if n_spans:
        yield Part(n_spans, _request(groups))


def _bytes(spans: Iterable[SpanRecord]) -> Iterator[tuple[bytes, Resource, Scope]]:
    for span in spans:
        yield span_bytes(span), span.resource, span.scope


def _bytes_of_batch(batch: SpanBatch) -> Iterator[tuple[bytes, Resource, Scope]]:
    # Hot, as in `otlp_lines`.
    resource, scope, anchor_ns = batch.resource, batch.scope, batch.anchor_ns
    trace_id, trace_bytes = 0, b""
    for span in batch.items:
        if type(span) is SpanRecord:
            yield span_bytes(span), span.resource, span.scope
            continue
        if span.trace_id != trace_id:
            trace_id = span.trace_id
            trace_bytes = trace_id.to_bytes(16)
        data = plain_bytes(span, anchor_ns, trace_bytes)
        yield span_bytes(batch.to_record(span)) if data is None else data, resource, scope


def _request(groups: Mapping[tuple[bytes, bytes], Mapping[tuple[bytes, bytes], list[bytes]]]) -> bytes:
    found = []
    for (resource, resource_tail), scopes in groups.items():
        inner = [sized(b"\x12", scope + b"".join(spans) + tail) for (scope, tail), spans in scopes.items()]
        found.append(sized(b"\x0a", resource + b"".join(inner) + resource_tail))
    return b"".join(found)


# --- Resource and scope: what stands before and after the spans of a group ----------------------------
def _frame(
    cache: dict[int, tuple[_Owner, tuple[bytes, bytes]]],
    owner: _Owner,
    make: Callable[[_Owner], tuple[bytes, bytes]],
) -> tuple[bytes, bytes]:
    # By identity, as in `otlp_lines`: the cache holds the object, so its id is not given to another one.
    found = cache.get(id(owner))
    if found is None:
        if len(cache) >= _MAX_CACHED:
            cache.clear()
        found = cache[id(owner)] = (owner, make(owner))
    return found[1]


def _resource_frame(resource: Resource) -> tuple[bytes, bytes]:
    attributes = sized(b"\x0a", attributes_field(b"\x0a", resource.attributes))
    return attributes, text_field(b"\x1a", resource.schema_url)


def _scope_frame(scope: Scope) -> tuple[bytes, bytes]:
    named = text_field(b"\x0a", scope.name) + text_field(b"\x12", scope.version)
    described = sized(b"\x0a", named + attributes_field(b"\x1a", scope.attributes))
    return described, text_field(b"\x1a", scope.schema_url)
