"""One span record as OTLP's protobuf bytes, written directly.

Why it is written by hand: OpenTelemetry's encoder makes an SDK span and then some thirty message objects of
each span, about ten times the work, and spans that wait are a fraction of their size as bytes.  Of the wire
format only this much is needed: a field is a tag (field number and wire type) and a varint, 8 or 4 bytes, or
a length and that many bytes; what a repeated field holds are fields with the same tag.  The numbers are those
of opentelemetry/proto/trace/v1/trace.proto, and tests read the bytes with OpenTelemetry's own classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from hotspan.exporters.otlp_json import MAX_DEPTH, clean_text, in_int64
from hotspan.tracer.record import KINDS, STATUSES

if TYPE_CHECKING:
    from hotspan.tracer.record import Event, Link, SpanRecord

_MAX_CACHED: Final = 4096
_MAX_CACHED_CHARS: Final = 64
_MAX_UINT32, _MAX_UINT64 = (1 << 32) - 1, (1 << 64) - 1
_DOUBLE: Final = Struct("<3sd").pack  # a value of 9 bytes: field 4
_INT: Final = (b"", b"\x12\x02\x18", b"\x12\x03\x18")  # a value of 2 or 3 bytes: field 3, a varint of 1 or 2
_TIMES: Final = Struct("<cQcQ").pack
_TIME: Final = Struct("<cQ").pack
_FLAGS: Final = Struct("<2sI").pack
_KIND_NUMBERS: Final = {kind: number for number, kind in enumerate(KINDS)}
_STATUS_NUMBERS: Final = {status: number for number, status in enumerate(STATUSES)}
_ONE_BYTE: Final = [bytes((number,)) for number in range(128)]

_heads: dict[str, bytes] = {}  # attribute key -> the key's field
_names: dict[str, bytes] = {}  # span name -> its field
_pairs: dict[tuple[str, Any, type], bytes] = {}  # (key, short text or bool, type) -> the whole pair


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
        text_field(b"\x1a", trace_state) if trace_state else b"",
        b"\x22\x08" + bytes.fromhex(parent_id.rjust(16, "0")) if parent_id else b"",
        name_bytes(name),
        _ONE_BYTE[_KIND_NUMBERS[kind]],
        _TIMES(b"\x39", _time(start_ns), b"\x41", _time(end_ns or 0)),
        attributes_field(b"\x4a", attributes) if attributes else b"",
        _rest(span) if has_rest else b"",
        _FLAGS(b"\x85\x01", flags & _MAX_UINT32) if flags else b"",
    )
    return b"\x12" + varint(len(data)) + data


def name_bytes(name: str) -> bytes:
    """Return a span's name as a field."""
    field = _names.get(name)
    if field is None:
        field = text_field(b"\x2a", name)
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
        + _status(span)
    )


def _status(span: SpanRecord) -> bytes:
    code = _count(b"\x18", _STATUS_NUMBERS[span.status])
    return sized(b"\x7a", text_field(b"\x12", span.status_message) + code)


def _event(event: Event) -> bytes:
    said = _TIME(b"\x09", _time(event.time_ns)) + text_field(b"\x12", event.name)
    counted = _count(b"\x20", event.n_dropped_attributes)
    return sized(b"\x5a", said + attributes_field(b"\x1a", event.attributes) + counted)


def _link(link: Link) -> bytes:
    ids = sized(b"\x0a", bytes.fromhex(link.trace_id)) + sized(b"\x12", bytes.fromhex(link.span_id))
    state = text_field(b"\x1a", link.trace_state)
    return sized(b"\x6a", ids + state + attributes_field(b"\x22", link.attributes))


def _time(time_ns: int) -> int:
    return time_ns if 0 <= time_ns <= _MAX_UINT64 else 0


# --- Fields -------------------------------------------------------------------------------------------
def varint(number: int) -> bytes:
    """Return the number as protobuf's variable-length integer."""
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


def sized(tag: bytes, data: bytes) -> bytes:
    """Return the data with its tag and its length before it."""
    return tag + varint(len(data)) + data


def text_field(tag: bytes, text: str) -> bytes:
    """Return a text as a field; nothing for an empty one."""
    return sized(tag, _utf8(text)) if text else b""


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return clean_text(text).encode()


def _count(tag: bytes, number: int) -> bytes:
    return tag + varint(min(number, _MAX_UINT32)) if number > 0 else b""


# --- Attributes ---------------------------------------------------------------------------------------
def attributes_field(tag: bytes, attributes: Mapping[str, Any]) -> bytes:
    """Return attributes as fields with this tag."""
    # Hot: the exact type first, and a pair that is the same from span to span is looked up whole.
    pieces = [b""]
    for key, value in attributes.items():
        kind = type(value)
        if kind is str or kind is bool:
            pieces.append(_pairs.get((key, value, kind)) or _pair(key, value))
        elif kind is int and 0 <= value < 1 << 14:
            head = key_bytes(key)
            number = varint(value)
            size = len(number)
            pieces.append(varint(len(head) + size + 3) + head + _INT[size] + number)
        elif kind is float:
            head = key_bytes(key)
            pieces.append(varint(len(head) + 11) + head + _DOUBLE(b"\x12\x09\x21", value))
        else:
            pieces.append(_pair(key, value))
    return tag.join(pieces)


def key_bytes(key: str) -> bytes:
    """Return an attribute's key as a field."""
    field = _heads.get(key)
    if field is None:
        field = sized(b"\x0a", _utf8(key))
        if len(field) <= _MAX_CACHED_CHARS:
            if len(_heads) >= _MAX_CACHED:
                _heads.clear()
            _heads[key] = field
    return field


def attribute_bytes(tag: bytes, key: str, value: object) -> bytes:
    """Return one attribute as a field with this tag."""
    return tag + _pair(key, value)


def _pair(key: str, value: object) -> bytes:
    """Return a key-value message with its length before it."""
    pair = sized(b"", key_bytes(key) + sized(b"\x12", _value(value)))
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
        return sized(b"\x0a", _utf8(value))  # an empty text is a value too, so the field is written
    if isinstance(value, bool):
        return b"\x10\x01" if value else b"\x10\x00"
    if isinstance(value, int):
        if in_int64(value):
            return b"\x18" + varint(int(value) & _MAX_UINT64)
        return sized(b"\x0a", str(int(value)).encode())
    if isinstance(value, float):
        return _DOUBLE(b"\x12\x09\x21", value)[2:]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return sized(b"\x3a", bytes(value))
    if depth >= MAX_DEPTH:
        return sized(b"\x0a", "…".encode())
    return _nested(value, depth + 1)


def _nested(value: object, depth: int) -> bytes:
    if isinstance(value, Mapping):
        pairs = (
            sized(b"\x0a", sized(b"\x0a", _utf8(str(key))) + sized(b"\x12", _value(item, depth)))
            for key, item in value.items()
        )
        return sized(b"\x32", b"".join(pairs))
    if isinstance(value, Sequence):
        return sized(b"\x2a", b"".join([sized(b"\x0a", _value(item, depth)) for item in value]))
    return sized(b"\x0a", f"<{type(value).__qualname__}>".encode())
