"""Attributes in OTLP/JSON: lists of keys and values, each value under the name of its type.

Most lists stand in a file many times, each time on another span: what was decoded once is handed out again.
The usual form is decoded by type; a list that does not fit (numbers in strings that are none, NaN in some
spelling) is decoded again in a form that takes anything.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Final

import msgspec

from hotspan.tracer.record import NO_ATTRIBUTES, Attributes, AttributeValue

_MAX_KNOWN: Final = 4_096  # lists that are remembered
_MAX_KNOWN_BYTES: Final = 1_024  # of each: longer ones hold measures, and do not come twice
_EMPTY: Final = frozenset({b"", b"[]", b"null"})
_Integer = int | str | float  # 64-bit integers are strings in OTLP/JSON; some writers send numbers


class _Value(msgspec.Struct, rename="camel", gc=False):
    string_value: str | None = None
    bool_value: bool | None = None
    int_value: int | None = None
    double_value: float | None = None
    array_value: _Array | None = None
    kvlist_value: _KeyValues | None = None
    bytes_value: str | None = None


class _Array(msgspec.Struct, gc=False):
    values: list[_Value] = []


class _KeyValue(msgspec.Struct, gc=False):
    key: str = ""
    value: _Value | None = None


class _KeyValues(msgspec.Struct, gc=False):
    values: list[_KeyValue] = []


class _LooseValue(msgspec.Struct, rename="camel", gc=False):
    string_value: str | None = None
    bool_value: bool | None = None
    int_value: _Integer | None = None
    double_value: float | str | None = None
    array_value: _LooseArray | None = None
    kvlist_value: _LooseKeyValues | None = None
    bytes_value: str | None = None


class _LooseArray(msgspec.Struct, gc=False):
    values: list[_LooseValue] = []


class _LooseKeyValue(msgspec.Struct, gc=False):
    key: str = ""
    value: _LooseValue | None = None


class _LooseKeyValues(msgspec.Struct, gc=False):
    values: list[_LooseKeyValue] = []


_Pairs = Sequence[_KeyValue] | Sequence[_LooseKeyValue]

# Not strict: integers in strings become integers in the decoder, which is where most of the time would go.
_decode = msgspec.json.Decoder(list[_KeyValue], strict=False).decode
_decode_loosely = msgspec.json.Decoder(list[_LooseKeyValue], strict=False).decode


class KnownAttributes:
    """Decodes lists of attributes, and remembers the short ones."""

    def __init__(self) -> None:
        self._known: dict[bytes, Attributes] = {}

    def read(self, raw: bytes) -> Attributes:
        """Return the attributes in a JSON list; equal lists may give the same object.

        Raises:
            ValueError: It is no list of OTLP's keys and values.
        """
        if len(raw) > _MAX_KNOWN_BYTES:  # not looked up at all: to hash it takes as long as to decode it
            return attributes_of(raw)
        found = self._known.get(raw)
        if found is None:
            found = NO_ATTRIBUTES if raw in _EMPTY else attributes_of(raw)
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[raw] = found
        return found


def attributes_of(raw: bytes) -> Attributes:
    """Return the attributes in a JSON list, not empty.

    Raises:
        ValueError: It is no list of OTLP's keys and values.
    """
    try:
        return _mapping(_decode(raw))
    except msgspec.ValidationError:
        return _mapping(_decode_loosely(raw))


def _mapping(pairs: _Pairs) -> dict[str, AttributeValue]:
    found: dict[str, AttributeValue] = {}
    for pair in pairs:
        value = pair.value
        # The two types of nearly all values first, and without a call.
        if value is None:
            found[pair.key] = None
        elif value.string_value is not None:
            found[pair.key] = value.string_value
        elif type(value.int_value) is int:
            found[pair.key] = value.int_value
        else:
            found[pair.key] = _value(value)
    return found


def _value(value: _Value | _LooseValue | None) -> AttributeValue:
    if value is None:
        return None
    if value.string_value is not None:
        return value.string_value
    if value.int_value is not None:
        return int(value.int_value)
    if value.double_value is not None:
        return float(value.double_value)  # also "NaN", "Infinity", "-Infinity"
    if value.bool_value is not None:
        return value.bool_value
    return _composite(value)


def _composite(value: _Value | _LooseValue) -> AttributeValue:
    if value.array_value is not None:
        return _tuple(value.array_value)
    if value.kvlist_value is not None:
        return _mapping(value.kvlist_value.values)
    if value.bytes_value is not None:
        try:
            return base64.b64decode(value.bytes_value)
        except binascii.Error:
            return value.bytes_value
    return None


def _tuple(array: _Array | _LooseArray) -> tuple[AttributeValue, ...]:
    # Numbers, mostly: the gaps between a stream's chunks, the vector of an embedding.
    if isinstance(array, _Array):
        integers = [item.int_value for item in array.values]
        if None not in integers:
            return tuple(integers)
        floats = [item.double_value for item in array.values]
        if None not in floats:
            return tuple(floats)
    return tuple(_value(item) for item in array.values)
