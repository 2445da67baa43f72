"""OTLP's protobuf bytes to span records, one message after the other.

A file holds `TracesData` (which is an `ExportTraceServiceRequest` by another name), or a stream of them, each
behind its length: in 4 bytes, as the Collector's file exporter writes it, or in a varint, as protobuf's own
streams have it.

Why it is read by hand: a file of one message is read piece by piece, a span that cannot be read costs itself
only, and analysis imports nothing of OpenTelemetry.  The numbers are those of
opentelemetry/proto/trace/v1/trace.proto; tests write the bytes with OpenTelemetry's own classes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from hotspan.analysis.readers import ids, protobuf
from hotspan.analysis.readers.compression import LENGTH_BYTES, stream_of
from hotspan.analysis.readers.items import Flaw, Item, LostNote, RefusedSpan
from hotspan.analysis.readers.protobuf import Message
from hotspan.analysis.readers.source import MAX_DOCUMENT_BYTES
from hotspan.tracer.record import KINDS, STATUSES, AttributeValue, Event, Link, Resource, Scope, SpanRecord

if TYPE_CHECKING:
    import io

    from hotspan.analysis.readers.source import Source

Warn = Callable[[str], None]

_RESOURCE_SPANS: Final = 0x0A  # the tag of field 1
_OF_RESOURCE_SPANS: Final = (0x0A, 0x12, 0x1A)  # resource, scope spans, schema
_OF_RESOURCE: Final = (0x0A, 0x10, 0x1A)  # attributes, their dropped count, entities
_TRACE_BYTES, _SPAN_BYTES = 16, 8
_OLD_SCOPE_SPANS: Final = 1000
_SPANS: Final = "a scope's spans"
_DROPPED: Final = "a count of what was dropped"
_MAX_DEPTH: Final = 32
_INT64_END: Final = 1 << 63


# --- Which framing a file has -------------------------------------------------------------------------
def is_protobuf(head: bytes) -> bool:
    """Return whether a file that begins so holds OTLP's protobuf."""
    return _begins_message(head) or _length_reader(head) is not None


def _begins_message(data: bytes) -> bool:
    try:
        size, at = protobuf.varint(data, 1)
        is_ours = data[0] == _RESOURCE_SPANS and size > 1 and data[at] in _OF_RESOURCE_SPANS
        inner_size, inner_at = protobuf.varint(data, at + 1)
    except (ValueError, IndexError):
        return False
    if not is_ours or inner_at - at + inner_size > size:
        return False
    return data[at] != _RESOURCE_SPANS or not inner_size or data[inner_at : inner_at + 1] in _RESOURCE_STARTS


_RESOURCE_STARTS: Final = frozenset(bytes((tag,)) for tag in _OF_RESOURCE)


def _length_reader(head: bytes) -> Callable[[io.BufferedReader], int | None] | None:
    size = int.from_bytes(head[:LENGTH_BYTES], "big")
    if 0 < size <= MAX_DOCUMENT_BYTES and _begins_message(head[LENGTH_BYTES:]):
        return _read_length
    try:
        size, at = protobuf.varint(head, 0)
    except (ValueError, IndexError):
        return None
    return _read_varint if size and _begins_message(head[at:]) else None


def _read_length(stream: io.BufferedReader) -> int | None:
    data = stream.read(LENGTH_BYTES)
    return int.from_bytes(data, "big") if len(data) == LENGTH_BYTES else None


def _read_varint(stream: io.BufferedReader) -> int | None:
    data = b""
    while byte := stream.read(1):
        data += byte
        if byte < b"\x80" or len(data) == protobuf.MAX_VARINT_BYTES:
            return protobuf.varint(data + b"\0", 0)[0]
    return None


# --- Reading -------------------------------------------------------------------------------------------
def read(source: Source, warn: Warn) -> Iterator[Item]:
    """Yield what a file of OTLP's protobuf holds.

    What breaks off at the end is left out and said; behind a message that is none nothing can be found.
    """
    head = source.head()
    stream = stream_of(source.blocks())
    length = None if _begins_message(head) else _length_reader(head)
    decoder, position = Decoder(), 0
    while True:
        start = position
        try:
            message = _next_piece(stream) if length is None else _next_message(stream, length)
            if message is None:
                return
            position += len(message)
            yield from decoder.decode(message)
        except ValueError as exc:
            warn(
                f"{source.name}: {exc} in the message at about byte {start} of its data: it and what follows "
                "is left out. The writer was killed, or the file is none of OTLP traces."
            )
            return


def _next_message(
    stream: io.BufferedReader, length: Callable[[io.BufferedReader], int | None]
) -> bytes | None:
    if not stream.peek(1):
        return None
    return _exactly(stream, length(stream))


def _next_piece(stream: io.BufferedReader) -> bytes | None:
    """Return one field of a message that is the whole file: a message of its own."""
    if not stream.peek(1):
        return None
    tag = _read_varint(stream)
    if tag != _RESOURCE_SPANS:
        msg = "something else than spans"
        raise ValueError(msg)
    data = _exactly(stream, _read_varint(stream))
    return bytes((_RESOURCE_SPANS,)) + protobuf.varint_bytes(len(data)) + data


def _exactly(stream: io.BufferedReader, size: int | None) -> bytes:
    if size is not None and size > MAX_DOCUMENT_BYTES:
        msg = f"more than {MAX_DOCUMENT_BYTES >> 20} MiB"
        raise ValueError(msg)
    data = stream.read(size or 0)
    if size is None or len(data) < size:
        msg = "the end of the file"
        raise ValueError(msg)
    return data


# --- Decoding ------------------------------------------------------------------------------------------
class Decoder:
    """Decodes messages; keeps what the messages of one file share (resources, scopes)."""

    def __init__(self) -> None:
        self._resources: dict[tuple[bytes, str], Resource] = {}
        self._scopes: dict[tuple[bytes, str], Scope] = {}
        self._flaws: list[str] = []  # of the group that is being read

    def decode(self, message: bytes) -> Iterator[Item]:
        """Yield what one `ExportTraceServiceRequest` holds.

        Raises:
            ValueError: It is none.
        """
        for group in protobuf.fields_of(message).get(1, ()):
            yield from self._resource_spans(Message.within(group, "a group of spans", self._flaws.append))
            yield from map(Flaw, self._flaws)
            self._flaws.clear()

    def _resource_spans(self, group: Message) -> Iterator[Item]:
        resource = self._resource(group.raw(1, "the resource"), group.text(3, "the schema"))
        n_spans = 0
        for part in (*group.messages(2, _SPANS), *group.messages(_OLD_SCOPE_SPANS, _SPANS)):
            scope = self._scope(part.raw(1, "the scope"), part.text(3, "the schema"))
            for span in part.all(2):
                n_spans += 1
                yield self._span(span, resource, scope)
        if not n_spans:
            yield LostNote(resource)

    def _resource(self, data: bytes, schema_url: str) -> Resource:
        found = self._resources.get((data, schema_url))
        if found is None:
            resource = Message.within(data, "a resource", self._flaws.append)
            found = Resource(_attributes(resource, 1), schema_url)
            self._resources[data, schema_url] = found
        return found

    def _scope(self, data: bytes, schema_url: str) -> Scope:
        found = self._scopes.get((data, schema_url))
        if found is None:
            scope = Message.within(data, "a scope", self._flaws.append)
            name, version = scope.text(1, "the name"), scope.text(2, "the version")
            found = Scope(name, version, _attributes(scope, 3), schema_url)
            self._scopes[data, schema_url] = found
        return found

    def _span(self, data: object, resource: Resource, scope: Scope) -> SpanRecord | RefusedSpan:
        try:
            return _record(Message(data, "a span", self._flaws.append), resource, scope)
        except ValueError as exc:
            return RefusedSpan(f"a span cannot be read: {exc}")


def _record(span: Message, resource: Resource, scope: Scope) -> SpanRecord:
    trace_id, span_id = _id(span, 1, _TRACE_BYTES), _id(span, 2, _SPAN_BYTES)
    name = span.text(5, "the name")
    if trace_id is None or span_id is None:
        shown = f"trace {span.raw(1, 'the trace')!r}, span {span.raw(2, 'the id')!r}"
        msg = f"span {name!r} has no usable id ({shown})"
        raise ValueError(msg)
    status = Message.within(span.raw(15, "the status"), "the status of a span", span.say)
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=_parent(span),
        name=name,
        start_ns=span.needed(7),
        end_ns=span.fixed(8, "the end") or None,
        attributes=_attributes(span, 9),
        kind=_member(KINDS, span.number(6, "the kind")),
        status=_member(STATUSES, status.number(3, "the code")),
        status_message=status.text(2, "the message"),
        events=tuple(_events(span)),
        links=tuple(map(_link, span.messages(13, "a link"))),
        resource=resource,
        scope=scope,
        trace_state=span.text(3, "the trace state"),
        flags=span.fixed(16, "the flags"),
        n_dropped_attributes=span.number(10, _DROPPED),
        n_dropped_events=span.number(12, _DROPPED),
        n_dropped_links=span.number(14, _DROPPED),
    )


def _parent(span: Message) -> str | None:
    found = _id(span, 4, _SPAN_BYTES)
    if found is None and (found := ids.parent_id(span.raw(4, "the parent").hex())) is not None:
        span.say("the parent's id of a span is none, so its parent is missing")
    return found


def _events(span: Message) -> Iterator[Event]:
    for event in span.messages(11, "an event"):
        try:
            at_ns = event.needed(1)
        except ValueError:
            event.bad("the time")
            continue
        n_dropped = event.number(4, _DROPPED)
        yield Event(event.text(2, "the name"), at_ns, _attributes(event, 3), n_dropped)


def _link(link: Message) -> Link:
    linked = _id(link, 1, _TRACE_BYTES) or "", _id(link, 2, _SPAN_BYTES) or ""
    return Link(*linked, _attributes(link, 4), link.text(3, "the trace state"))


def _attributes(message: Message, index: int) -> dict[str, AttributeValue]:
    found: dict[str, AttributeValue] = {}
    for pair in message.all(index):
        try:
            found |= _pairs([pair])
        except ValueError:
            message.bad("one of the attributes")
    return found


def _pairs(pairs: Sequence[object], depth: int = 0) -> dict[str, AttributeValue]:
    found = {}
    for pair in pairs:
        fields = protobuf.fields_of(protobuf.sized(pair))
        key, value = (protobuf.sized(fields.get(number, (b"",))[-1]) for number in (1, 2))
        found[key.decode(errors="replace")] = _value(value, depth)
    return found


def _value(data: bytes, depth: int) -> AttributeValue:
    for number, values in protobuf.fields_of(data).items():
        decode = _VALUES.get(number)
        if decode is not None:
            return "…" if depth > _MAX_DEPTH else decode(values[-1], depth)
    return None


def _integer(value: Any, _depth: int) -> int:
    number = protobuf.whole(value)
    return number - (1 << 64) if number >= _INT64_END else number


def _double(value: Any, _depth: int) -> float:
    data = protobuf.sized(value)
    if len(data) != 8:  # noqa: PLR2004 - bytes of a double
        msg = f"a number of {len(data)} bytes"
        raise ValueError(msg)
    number: float = struct.unpack("<d", data)[0]
    return number


def _array(value: Any, depth: int) -> tuple[AttributeValue, ...]:
    return tuple(
        _value(protobuf.sized(item), depth + 1)
        for item in protobuf.fields_of(protobuf.sized(value)).get(1, ())
    )


_VALUES: Final[dict[int, Callable[[Any, int], AttributeValue]]] = {
    1: lambda value, _depth: protobuf.sized(value).decode(errors="replace"),
    2: lambda value, _depth: bool(value),
    3: _integer,
    4: _double,
    5: _array,
    6: lambda value, depth: _pairs(protobuf.fields_of(protobuf.sized(value)).get(1, ()), depth + 1),
    7: lambda value, _depth: protobuf.sized(value),
}


def _id(message: Message, index: int, n_bytes: int) -> str | None:
    data = message.raw(index, "an id")
    return data.hex() if len(data) == n_bytes and any(data) else None


def _member(members: tuple[Any, ...], number: int) -> Any:
    return members[number] if number < len(members) else members[0]
