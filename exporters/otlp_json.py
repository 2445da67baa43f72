"""One span record as OTLP/JSON text.

The form is that of the OpenTelemetry Collector's file exporter: camelCase names, ids in hex, enums as
numbers, 64-bit integers as strings, fields that hold nothing left out.  What JSON or OTLP cannot hold is
written so that it can be read again: NaN and the infinities as strings (as protobuf's JSON does), a lone
surrogate as U+FFFD, an integer beyond 64 bits as a `stringValue` with all its digits.

Why it is written by hand: nearly all of a span's JSON is the same from span to span (field names, attribute
keys, stage and model names), so text that was quoted once is looked up the next time.  Building the same
objects as dicts and encoding those takes 1.5 times as long; the quoting itself is msgspec's.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from hotspan.tracer.record import KINDS, STATUSES, Attributes, Event, Link, SpanRecord

MAX_DEPTH: Final = 16  # lists and maps nested deeper are cut: a list may hold itself

_MAX_CACHED = 4096
_MAX_CACHED_CHARS = 64
_MAX_UINT32, _MAX_UINT64 = (1 << 32) - 1, (1 << 64) - 1
_MIN_INT64, _MAX_INT64 = -(1 << 63), (1 << 63) - 1

_KIND_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}
_STATUS_NUMBERS = {status: number for number, status in enumerate(STATUSES)}

_encode = msgspec.json.Encoder().encode
_texts: dict[str, str] = {}  # short text -> the same as a JSON string
_heads: dict[str, str] = {}  # attribute key -> '{"key":"…","value":'
_pairs: dict[tuple[str, str], str] = {}  # (attribute key, short text) -> the whole pair


def clean_text(text: str) -> str:
    """Return the text with surrogate pairs joined and lone surrogates replaced by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def in_int64(value: int) -> bool:
    """Return whether the integer fits OTLP's only integer type."""
    return _MIN_INT64 <= value <= _MAX_INT64


# --- One span -----------------------------------------------------------------------------------------
def span_json(span: SpanRecord) -> str:
    """Return one span as an OTLP/JSON object."""
    # Hot: the record is unpacked in one step, which is cheaper than looking nineteen fields up.
    (
        trace_id, span_id, parent_id, name, start_ns, end_ns, attributes, kind, status, message, events,
        links, _resource, _scope, trace_state, flags, n_attributes, n_events, n_links,
    ) = span  # fmt: skip
    parent = f',"parentSpanId":"{parent_id}"' if parent_id else ""
    state = f',"traceState":{quoted(trace_state)}' if trace_state else ""
    flag = f',"flags":{flags & _MAX_UINT32}' if flags else ""
    end = f',"endTimeUnixNano":"{end_ns if 0 < end_ns <= _MAX_UINT64 else 0}"' if end_ns else ""
    found = f',"attributes":{attributes_json(attributes)}' if attributes else ""
    event = f',"events":[{",".join(map(_event_json, events))}]' if events else ""
    link = f',"links":[{",".join(map(_link_json, links))}]' if links else ""
    dropped = _dropped(span) if n_attributes or n_events or n_links else ""
    said = "{}" if status == "unset" and not message else _status_json(span)
    return (
        f'{{"traceId":"{trace_id}","spanId":"{span_id}"{state}{parent}{flag},'
        f'"name":{_texts.get(name) or quoted(name)},"kind":{_KIND_NUMBERS[kind]},'
        f'"startTimeUnixNano":"{start_ns if 0 <= start_ns <= _MAX_UINT64 else 0}"{end}{found}'
        f'{event}{link}{dropped},"status":{said}}}'
    )


def _dropped(span: SpanRecord) -> str:
    return (
        _count("droppedAttributesCount", span.n_dropped_attributes)
        + _count("droppedEventsCount", span.n_dropped_events)
        + _count("droppedLinksCount", span.n_dropped_links)
    )


def _status_json(span: SpanRecord) -> str:
    message = f'"message":{quoted(span.status_message)}' if span.status_message else ""
    code = f'"code":{_STATUS_NUMBERS[span.status]}' if span.status != "unset" else ""
    return f"{{{message}{',' if message and code else ''}{code}}}"


def _event_json(event: Event) -> str:
    attributes = f',"attributes":{attributes_json(event.attributes)}' if event.attributes else ""
    dropped = _count("droppedAttributesCount", event.n_dropped_attributes)
    return f'{{"timeUnixNano":"{_time(event.time_ns)}","name":{quoted(event.name)}{attributes}{dropped}}}'


def _link_json(link: Link) -> str:
    state = f',"traceState":{quoted(link.trace_state)}' if link.trace_state else ""
    attributes = f',"attributes":{attributes_json(link.attributes)}' if link.attributes else ""
    return f'{{"traceId":"{link.trace_id}","spanId":"{link.span_id}"{state}{attributes}}}'


def _count(name: str, number: int) -> str:
    # An unsigned field: a negative count (seen in other writers' files) makes a whole file unreadable.
    return f',"{name}":{min(number, _MAX_UINT32)}' if number > 0 else ""


def _time(time_ns: int) -> int:
    return time_ns if 0 <= time_ns <= _MAX_UINT64 else 0


# --- Attributes ---------------------------------------------------------------------------------------
def attributes_json(attributes: Attributes) -> str:
    """Return attributes as OTLP's list of key-value objects."""
    pieces = []
    items: Iterable[tuple[str, Any]] = attributes.items()  # Any: narrowed below by the exact type
    for key, value in items:
        # The exact type first: it is one comparison, and four types are nearly all that there is.
        kind = type(value)
        if kind is str:
            pieces.append(_pairs.get((key, value)) or _pair(key, value))
            continue
        head = _heads.get(key) or _head(key)
        if kind is int and _MIN_INT64 <= value <= _MAX_INT64:
            pieces.append(f'{head}{{"intValue":"{value}"}}}}')
        elif kind is bool:
            pieces.append(f'{head}{{"boolValue":true}}}}' if value else f'{head}{{"boolValue":false}}}}')
        elif kind is float:
            # Not a number and the infinities are what times zero is not zero.
            text = f'{{"doubleValue":{value!r}}}' if value * 0.0 == 0.0 else _float_json(value, 0)
            pieces.append(f"{head}{text}}}")
        else:
            pieces.append(f"{head}{value_json(value)}}}")
    return f"[{','.join(pieces)}]"


def _pair(key: str, text: str) -> str:
    pair = f'{_heads.get(key) or _head(key)}{{"stringValue":{quoted(text)}}}}}'
    if len(text) <= _MAX_CACHED_CHARS:
        if len(_pairs) >= _MAX_CACHED:
            _pairs.clear()
        _pairs[key, text] = pair
    return pair


def value_json(value: object, depth: int = 0) -> str:
    """Return any value as an OTLP `AnyValue` object; what OTLP has no type for, as its text."""
    if depth > MAX_DEPTH:
        return '{"stringValue":"…"}'
    if value is None:
        return "{}"
    for kind, write in _WRITERS:
        if isinstance(value, kind):
            return write(value, depth)
    # numpy's scalars and arrays, without importing numpy
    as_python = getattr(value, "tolist", None)
    return value_json(as_python(), depth + 1) if callable(as_python) else _str_json(_text_of(value), depth)


def _bool_json(value: bool, _depth: int) -> str:  # noqa: FBT001 -- the value itself
    return '{"boolValue":true}' if value else '{"boolValue":false}'


def _int_json(value: int, _depth: int) -> str:
    return f'{{"intValue":"{int(value)}"}}' if in_int64(value) else f'{{"stringValue":"{int(value)}"}}'


def _float_json(value: float, _depth: int) -> str:
    if math.isfinite(value):
        return f'{{"doubleValue":{float(value)!r}}}'
    return (
        '{"doubleValue":"NaN"}' if math.isnan(value) else f'{{"doubleValue":"{"-" * (value < 0)}Infinity"}}'
    )


def _str_json(value: str, _depth: int) -> str:
    return f'{{"stringValue":{quoted(str(value))}}}'


def _bytes_json(value: bytes | bytearray | memoryview, _depth: int) -> str:
    return f'{{"bytesValue":"{base64.b64encode(value).decode("ascii")}"}}'


def _map_json(value: Mapping[object, object], depth: int) -> str:
    pairs = (f"{_head(_text_of(key))}{value_json(item, depth + 1)}}}" for key, item in value.items())
    return f'{{"kvlistValue":{{"values":[{",".join(pairs)}]}}}}'


def _sequence_json(value: Sequence[object], depth: int) -> str:
    if set(map(type, value)) == {int} and all(map(in_int64, cast("Sequence[int]", value))):
        # The gaps of a long stream: hundreds of numbers at once.
        numbers = '"},{"intValue":"'.join(map(str, value))
        return f'{{"arrayValue":{{"values":[{{"intValue":"{numbers}"}}]}}}}'
    items = ",".join([value_json(item, depth + 1) for item in value])
    return f'{{"arrayValue":{{"values":[{items}]}}}}'


# In this order: a bool is an int, and text and bytes are sequences.
_WRITERS: tuple[tuple[type | tuple[type, ...], Callable[..., str]], ...] = (
    (bool, _bool_json),
    (int, _int_json),
    (float, _float_json),
    (str, _str_json),
    ((bytes, bytearray, memoryview), _bytes_json),
    (Mapping, _map_json),
    (Sequence, _sequence_json),
)


def _text_of(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 -- any object's own __str__; its fault must not cost the span
        return f"<{type(value).__name__}>"


def _head(key: str) -> str:
    head = f'{{"key":{quoted(_text_of(key))},"value":'
    if len(head) <= _MAX_CACHED_CHARS:
        if len(_heads) >= _MAX_CACHED:
            _heads.clear()
        _heads[key] = head
    return head


def quoted(text: str) -> str:
    """Return the text as a JSON string, quotes included."""
    found = _texts.get(text)
    if found is not None:
        return found
    try:
        made = _encode(text).decode()
    except UnicodeEncodeError:
        made = _encode(clean_text(text)).decode()
    if len(text) <= _MAX_CACHED_CHARS:
        if len(_texts) >= _MAX_CACHED:
            _texts.clear()
        _texts[text] = made
    return made
