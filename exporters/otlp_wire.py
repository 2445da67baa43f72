"""Span records as OTLP's protobuf bytes (`ExportTraceServiceRequest`), written directly.

Why it is written by hand: OpenTelemetry's encoder makes an SDK span and then some thirty message objects of
each span, about ten times the work, and spans that wait are a fraction of their size as bytes.  Of the wire
format only this much is needed: a field is a tag (field number and wire type) and a varint, 8 or 4 bytes, or
a length and that many bytes; what a repeated field holds are fields with the same tag.  The numbers are those
of opentelemetry/proto/trace/v1/trace.proto, and tests read the bytes with OpenTelemetry's own classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hotspan.exporters.otlp_json import MAX_DEPTH, clean_text, in_int64
from hotspan.tracer.record import KINDS, STATUSES

if TYPE_CHECKING:
    from collections.abc import Callable

    from hotspan.tracer.record import Event, Link, Resource, Scope, SpanRecord

_MAX_CACHED: Final = 4096
_MAX_CACHED_CHARS: Final = 64
_MAX_UINT32, _MAX_UINT64 = (1 << 32) - 1, (1 << 64) - 1
_FRAME_BYTES: Final = 16  # tags and lengths around the spans of one scope
_DOUBLE: Final = Struct("<3sd").pack  # a value of 9 bytes: field 4
_INT: Final = (b"", b"\x12\x02\x18", b"\x12\x03\x18")  # a value of 2 or 3 bytes: field 3, a varint of 1 or 2
_TIMES: Final = Struct("<cQcQ").pack
_TIME: Final = Struct("<cQ").pack
_FLAGS: Final = Struct("<2sI").pack
_KIND_NUMBERS: Final = {kind: number for number, kind in enumerate(KINDS)}
_STATUS_NUMBERS: Final = {status: number for number, status in enumerate(STATUSES)}
_ONE_BYTE: Final = [bytes((number,)) for number in range(128)]

_Owner = TypeVar("_Owner", "Resource", "Scope")
_heads: dict[str, bytes] = {}  # attribute key -> the key's field
_names: dict[str, bytes] = {}  # span name -> its field
_pairs: dict[tuple[str, Any, type], bytes] = {}  # (key, short text or bool, type) -> the whole pair
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
    for span in spans:
        data = span_bytes(span)
        if span.resource is not resource or span.scope is not scope or n_bytes + len(data) > max_bytes:
            if n_spans and n_bytes + len(data) > max_bytes:
                yield Part(n_spans, _request(groups))
                groups, n_spans, n_bytes = {}, 0, 0
            resource, scope = span.resource, span.scope
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


def _request(groups: Mapping[tuple[bytes, bytes], Mapping[tuple[bytes, bytes], list[bytes]]]) -> bytes:
    found = []
    for (resource, resource_tail), scopes in groups.items():
        inner = [_sized(b"\x12", scope + b"".join(spans) + tail) for (scope, tail), spans in scopes.items()]
        found.append(_sized(b"\x0a", resource + b"".join(inner) + resource_tail))
    return b"".join(found)


# --- Resource and scope: what stands before and after the spans of a group ----------------------------
def _frame(
    cache: dict[int, tuple[_Owner, tuple[bytes, bytes]]],
    owner: _Owner,
    make: Callable[[_Owner], tuple[bytes, bytes]],
) -> tuple[bytes, bytes]:
    # By identity, as in `otlp_json`: the cache holds the object, so its id is not given to another one.
    found = cache.get(id(owner))
    if found is None:
        if len(cache) >= _MAX_CACHED:
            cache.clear()
        found = cache[id(owner)] = (owner, make(owner))
    return found[1]


def _resource_frame(resource: Resource) -> tuple[bytes, bytes]:
    return _sized(b"\x0a", _attributes(b"\x0a", resource.attributes)), _text(b"\x1a", resource.schema_url)


def _scope_frame(scope: Scope) -> tuple[bytes, bytes]:
    named = _text(b"\x0a", scope.name) + _text(b"\x12", scope.version)
    return _sized(b"\x0a", named + _attributes(b"\x1a", scope.attributes)), _text(b"\x1a", scope.schema_url)


# --- One span -----------------------------------------------------------------------------------------
def span_bytes(span: SpanRecord) -> bytes:
    """Return one span as a field of its scope."""
    # Hot: the record is unpacked in one step, as in `otlp_json`.
    (
        trace_id, span_id, parent_id, name, start_ns, end_ns, attributes, kind, status, message, events,
        links, _resource, _scope, trace_state, flags, n_attributes, n_events, n_links,
    ) = span  # fmt: skip
    has_rest = events or links or status != "unset" or message or n_attributes or n_events or n_links
    data = b"\x0a\x10%b\x12\x08%b%b%b%b\x30%b%b%b%b%b" % (
        bytes.fromhex(trace_id.rjust(32, "0")),
        bytes.fromhex(span_id.rjust(16, "0")),
        _text(b"\x1a", trace_state) if trace_state else b"",
        b"\x22\x08" + bytes.fromhex(parent_id.rjust(16, "0")) if parent_id else b"",
        _names.get(name) or _name(name),
        _ONE_BYTE[_KIND_NUMBERS[kind]],
        _TIMES(b"\x39", _time(start_ns), b"\x41", _time(end_ns or 0)),
        _attributes(b"\x4a", attributes) if attributes else b"",
        _rest(span) if has_rest else b"",
        _FLAGS(b"\x85\x01", flags & _MAX_UINT32) if flags else b"",
    )
    return b"\x12" + _varint(len(data)) + data


def _name(name: str) -> bytes:
    field = _text(b"\x2a", name)
    if len(name) <= _MAX_CACHED_CHARS:
        if len(_names) >= _MAX_CACHED:
            _names.clear()
        _names[name] = field
    return field


def _rest(span: SpanRecord) -> bytes:
    return (
        _count(b"\x50", span.n_dropped_attributes)
        + b"".join(map(_event, span.events))
        + _count(b"\x60", span.n_dropped_events)
        + b"".join(map(_link, span.links))
        + _count(b"\x70", span.n_dropped_links)
        + _sized(b"\x7a", _text(b"\x12", span.status_message) + _count(b"\x18", _STATUS_NUMBERS[span.status]))
    )


def _event(event: Event) -> bytes:
    said = _TIME(b"\x09", _time(event.time_ns)) + _text(b"\x12", event.name)
    counted = _count(b"\x20", event.n_dropped_attributes)
    return _sized(b"\x5a", said + _attributes(b"\x1a", event.attributes) + counted)


def _link(link: Link) -> bytes:
    ids = _sized(b"\x0a", bytes.fromhex(link.trace_id)) + _sized(b"\x12", bytes.fromhex(link.span_id))
    state = _text(b"\x1a", link.trace_state)
    return _sized(b"\x6a", ids + state + _attributes(b"\x22", link.attributes))


def _time(time_ns: int) -> int:
    return time_ns if 0 <= time_ns <= _MAX_UINT64 else 0


# --- Fields -------------------------------------------------------------------------------------------
def _varint(number: int) -> bytes:
    if number < 1 << 7:
        return _ONE_BYTE[number]
    if number < 1 << 14:
        return bytes((number & 0x7F | 0x80, number >> 7))
    out = bytearray()
    while number >= 1 << 7:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _sized(tag: bytes, data: bytes) -> bytes:
    return tag + _varint(len(data)) + data


def _text(tag: bytes, text: str) -> bytes:
    return _sized(tag, _utf8(text)) if text else b""


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return clean_text(text).encode()


def _count(tag: bytes, number: int) -> bytes:
    return tag + _varint(min(number, _MAX_UINT32)) if number > 0 else b""


# --- Attributes ---------------------------------------------------------------------------------------
def _attributes(tag: bytes, attributes: Mapping[str, Any]) -> bytes:
    # Hot: the exact type first, and a pair that is the same from span to span is looked up whole.
    pieces = [b""]
    for key, value in attributes.items():
        kind = type(value)
        if kind is str or kind is bool:
            pieces.append(_pairs.get((key, value, kind)) or _pair(key, value))
        elif kind is int and 0 <= value < 1 << 14:
            head = _heads.get(key) or _head(key)
            number = _varint(value)
            size = len(number)
            pieces.append(_varint(len(head) + size + 3) + head + _INT[size] + number)
        elif kind is float:
            head = _heads.get(key) or _head(key)
            pieces.append(_varint(len(head) + 11) + head + _DOUBLE(b"\x12\x09\x21", value))
        else:
            pieces.append(_pair(key, value))
    return tag.join(pieces)


def _head(key: str) -> bytes:
    head = _sized(b"\x0a", _utf8(key))
    if len(head) <= _MAX_CACHED_CHARS:
        if len(_heads) >= _MAX_CACHED:
            _heads.clear()
        _heads[key] = head
    return head


def _pair(key: str, value: object) -> bytes:
    """Return a key-value message with its length before it."""
    pair = _sized(b"", (_heads.get(key) or _head(key)) + _sized(b"\x12", _value(value)))
    if type(value) is bool or (type(value) is str and len(value) <= _MAX_CACHED_CHARS):
        if len(_pairs) >= _MAX_CACHED:
            _pairs.clear()
        _pairs[key, value, type(value)] = pair
    return pair


def _value(value: object, depth: int = 0) -> bytes:  # noqa: PLR0911 - a table of types
    """Return an `AnyValue`: text without lone surrogates, larger integers as their digits."""
    if value is None:
        return b""
    if isinstance(value, str):
        return _sized(b"\x0a", _utf8(value))  # an empty text is a value too, so the field is written
    if isinstance(value, bool):
        return b"\x10\x01" if value else b"\x10\x00"
    if isinstance(value, int):
        if in_int64(value):
            return b"\x18" + _varint(int(value) & _MAX_UINT64)
        return _sized(b"\x0a", str(int(value)).encode())
    if isinstance(value, float):
        return _DOUBLE(b"\x12\x09\x21", value)[2:]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _sized(b"\x3a", bytes(value))
    if depth >= MAX_DEPTH:
        return _sized(b"\x0a", "…".encode())
    return _nested(value, depth + 1)


def _nested(value: object, depth: int) -> bytes:
    if isinstance(value, Mapping):
        pairs = (
            _sized(b"\x0a", _sized(b"\x0a", _utf8(str(key))) + _sized(b"\x12", _value(item, depth)))
            for key, item in value.items()
        )
        return _sized(b"\x32", b"".join(pairs))
    if isinstance(value, Sequence):
        return _sized(b"\x2a", b"".join([_sized(b"\x0a", _value(item, depth)) for item in value]))
    return _sized(b"\x0a", f"<{type(value).__qualname__}>".encode())
