"""Protobuf's wire format, as far as reading needs it: a message as its fields, by number.

A field is a tag (number and wire type) and a varint, 8 or 4 bytes, or a length and that many bytes.  What is
of another type than the caller asks for is a `ValueError`: a fault of the file.
"""

from __future__ import annotations

from typing import Any, Final

Fields = dict[int, list[Any]]  # number -> values: an int for a varint, bytes for the rest

MAX_VARINT_BYTES: Final = 10
_VARINT, _EIGHT, _SIZED, _FOUR = 0, 1, 2, 5


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at a position, and the position behind it."""
    number = shift = 0
    for index in range(at, at + MAX_VARINT_BYTES):
        byte = data[index]
        number |= (byte & 0x7F) << shift
        if byte < 1 << 7:
            return number, index + 1
        shift += 7
    msg = f"a number of more than {MAX_VARINT_BYTES} bytes"
    raise ValueError(msg)


def fields_of(data: bytes) -> Fields:
    """Take a message apart.

    Raises:
        ValueError: It is none, or breaks off.
    """
    found: Fields = {}
    at, end = 0, len(data)
    try:
        while at < end:
            tag, at = varint(data, at)
            wire = tag & 7
            value: Any
            if wire == _VARINT:
                value, at = varint(data, at)
            else:
                size, at = varint(data, at) if wire == _SIZED else (_fixed_size(wire), at)
                value = data[at : at + size]
                at += size
            found.setdefault(tag >> 3, []).append(value)
    except IndexError:
        at = end + 1
    if at > end:
        msg = "it breaks off"
        raise ValueError(msg)
    return found


def _fixed_size(wire: int) -> int:
    if wire == _EIGHT:
        return 8
    if wire == _FOUR:
        return 4
    msg = f"a field of wire type {wire}"
    raise ValueError(msg)


def sized(value: object) -> bytes:
    """Return a value of bytes: a text, a message or a number of fixed size."""
    if not isinstance(value, bytes):
        msg = f"a number ({value}) where a message belongs"
        raise ValueError(msg)  # noqa: TRY004 - a fault of the file, not of a caller
    return value


def whole(value: object) -> int:
    """Return a value that is a varint."""
    if not isinstance(value, int):
        msg = f"{len(sized(value))} bytes where a number belongs"
        raise ValueError(msg)  # noqa: TRY004 - as above
    return value


def last_bytes(fields: Fields, index: int) -> bytes:
    """Return a field of bytes; of several the last, as the format has it, and of none nothing."""
    return sized(fields[index][-1]) if index in fields else b""


def text(fields: Fields, index: int) -> str:
    """Return a field that is a text, empty where there is none."""
    return last_bytes(fields, index).decode(errors="replace")


def number(fields: Fields, index: int) -> int:
    """Return a field that is a number of 32 bits, 0 where there is none."""
    return whole(fields[index][-1]) & 0xFFFF_FFFF if index in fields else 0


def fixed(fields: Fields, index: int) -> int:
    """Return a field that is a number of 8 or 4 bytes, 0 where there is none."""
    return int.from_bytes(last_bytes(fields, index)[:8], "little")


def varint_bytes(number: int) -> bytes:
    """Return a number as a varint."""
    out = bytearray()
    while number >= 1 << 7:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
