"""Plain spans as OTLP's protobuf bytes, straight from what capture keeps.

As `otlp_json_plain`: what spans share is found by their constants, and of an own attribute all that stands
before the value's bytes is made once for each key.  A span that does not fit is left to
`otlp_wire.span_bytes`.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hotspan.exporters.otlp_wire import attribute_bytes, key_bytes, name_bytes, varint
from hotspan.tracer.record import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hotspan.tracer.record import PlainSpan

_MAX_PLANS: Final = 4_096
_MAX_HEADS: Final = 1_024  # of one plan
_MAX_TEXTS: Final = 256  # of one key
_MAX_TEXT_CHARS: Final = 64  # longer text is hardly ever the same twice
_LONG_TEXT_CHARS: Final = 100_000  # below the bound at which capture cuts a text
_MAX_UINT64: Final = (1 << 64) - 1
_MIN_INT64, _MAX_INT64 = -(1 << 63), (1 << 63) - 1
_TIMES: Final = Struct("<cQcQ").pack
_FLAGS: Final = Struct("<2sI").pack
_DOUBLE: Final = Struct("<d").pack
_ATTRIBUTES: Final = b"\x4a"  # field 9 of a span
_VARINTS: Final = [varint(number) for number in range(1 << 14)]  # of one and two bytes


class _Head(NamedTuple):
    """What stands before a value under one key, by the value's kind; whole attributes where values repeat."""

    byte: bytes  # before an integer of one byte
    two_bytes: bytes
    number: bytes  # before a float
    true: bytes
    false: bytes
    texts: dict[str, bytes]


class _Plan(NamedTuple):
    """What all spans with the same constants have in common.

    Attributes:
        constants: The shared attributes, held so that their id stays theirs.
        kind: The kind that `kind_field` says.
        flags: The flags that `flags_field` says.
        kind_field: The kind.
        flags_field: The flags.
        shared: The constants.
        heads: For an own key what stands before its value.
    """

    constants: Mapping[str, Any]
    kind: str
    flags: int
    kind_field: bytes
    flags_field: bytes
    shared: bytes
    heads: dict[Any, _Head]


class _NotPlainError(Exception):
    """Capture has put something off that has to be done first."""


_plans: dict[int, _Plan] = {}  # by the id of the constants


def plain_bytes(span: PlainSpan, anchor_ns: int, trace_id: bytes) -> bytes | None:
    """Return the span as a field of its scope, or None for one that is to be made a record first.

    Args:
        span: A finished span.
        anchor_ns: Unix time of zero on the process's clock.
        trace_id: The span's trace id, 16 bytes.
    """
    # Hot, as `otlp_json_plain.plain_json`.
    if not span.constants:  # as every stage has
        return None
    plan = _plans.get(id(span.constants)) or _remember(span)
    if span.kind != plan.kind or span.flags != plan.flags:
        plan = _remember(span)
    end_ns = span.end_ns + anchor_ns
    if not 0 < end_ns <= _MAX_UINT64 or len(span.name) > _LONG_TEXT_CHARS:
        return None
    try:
        own = _own(span.own, plan) if span.own else b""
    except (_NotPlainError, RuntimeError):  # the latter: a thread was setting one more when the span ended
        return None
    data = b"\x0a\x10%b\x12\x08%b%b%b%b%b%b%b%b" % (
        trace_id,
        span.span_id.to_bytes(8),
        b"\x22\x08" + span.parent_id.to_bytes(8) if span.parent_id else b"",
        name_bytes(span.name),
        plan.kind_field,
        _TIMES(b"\x39", span.start_ns + anchor_ns, b"\x41", end_ns),
        plan.shared,
        own,
        plan.flags_field,
    )
    return b"\x12" + varint(len(data)) + data


def _own(own: Mapping[str, Any], plan: _Plan) -> bytes:
    heads = plan.heads
    pieces = []
    for key, value in own.items():
        try:
            byte, two_bytes, number, true, false, texts = heads[key]
        except KeyError:
            byte, two_bytes, number, true, false, texts = _new_head(heads, key, plan.constants)
        kind = type(value)
        if kind is str:
            pieces.append(texts.get(value) or _text(texts, key, value))
        elif kind is int and 0 <= value < 1 << 14:
            pieces.append((byte if value < 1 << 7 else two_bytes) + _VARINTS[value])
        elif kind is float:
            pieces.append(number + _DOUBLE(value))
        elif kind is bool:
            pieces.append(true if value else false)
        elif kind is int and not _MIN_INT64 <= value <= _MAX_INT64:
            raise _NotPlainError
        else:
            pieces.append(_whole(key, value))
    return b"".join(pieces)


def _whole(key: str, value: object) -> bytes:
    return attribute_bytes(_ATTRIBUTES, key, value)


def _text(texts: dict[str, bytes], key: str, value: str) -> bytes:
    if len(value) > _LONG_TEXT_CHARS:
        raise _NotPlainError
    made = _whole(key, value)
    if len(value) <= _MAX_TEXT_CHARS:
        if len(texts) >= _MAX_TEXTS:
            texts.clear()
        texts[value] = made
    return made


def _new_head(heads: dict[Any, _Head], key: Any, constants: Mapping[str, Any]) -> _Head:
    if type(key) is not str or key in constants or len(key) > _LONG_TEXT_CHARS:
        raise _NotPlainError
    field = key_bytes(key)
    # Field 2 of the pair is the value: of 2 bytes (field 3, one more), of 3, of 9 (field 4, a double).
    byte, two_bytes, number = (
        _ATTRIBUTES + varint(len(field) + 2 + n_bytes) + field + start
        for n_bytes, start in ((2, b"\x12\x02\x18"), (3, b"\x12\x03\x18"), (9, b"\x12\x09\x21"))
    )
    head = _Head(byte, two_bytes, number, _whole(key, True), _whole(key, False), {})
    if len(heads) < _MAX_HEADS:
        heads[key] = head
    return head


def _remember(span: PlainSpan) -> _Plan:
    if len(_plans) >= _MAX_PLANS:
        _plans.clear()
    plan = _plans[id(span.constants)] = _Plan(
        span.constants,
        span.kind,
        span.flags,
        b"\x30" + varint(KINDS.index(span.kind)),
        _FLAGS(b"\x85\x01", span.flags) if span.flags else b"",
        b"".join(_whole(key, value) for key, value in span.constants.items()),
        {},
    )
    return plan
