"""Protobuf's wire format, as far as reading needs it: a message as its fields, by number.

A field is a tag (number and wire type) and a varint, 8 or 4 bytes, or a length and that many bytes.  What is
of another type than the caller asks for is a `ValueError`: a fault of the file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

_Value = TypeVar("_Value")
Say = Callable[[str], None]
Fields = dict[int, list[Any]]  # number -> values: an int for a varint, bytes for the rest

MAX_VARINT_BYTES: Final = 10
_VARINT, _EIGHT, _SIZED, _FOUR = 0, 1, 2, 5
_FIXED_BYTES: Final = (8, 4)


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


class Message:
    """A message whose fields are asked for one by one: a bad one costs itself only, and is said.

    Args:
        data: Its bytes.
        of: What it is, for what is said.
        say: Told of every field that cannot be read.

    Raises:
        ValueError: It is no message.
    """

    __slots__ = ("_fields", "_of", "say")

    def __init__(self, data: object, of: str, say: Say) -> None:
        self._fields = fields_of(sized(data))
        self._of = of
        self.say = say

    @classmethod
    def within(cls, data: object, of: str, say: Say) -> Message:
        """Return a message inside another; without a field where it is none, which is said."""
        try:
            return cls(data, of, say)
        except ValueError:
            say(f"{of} cannot be read")
            return cls(b"", of, say)

    def bad(self, what: str) -> None:
        """Say that a field, or a part of it, cannot be read."""
        self.say(f"{what} of {self._of} cannot be read")

    def all(self, index: int) -> list[Any]:
        """Return every value of a field, each an int or bytes."""
        return self._fields.get(index, [])

    def messages(self, index: int, of: str) -> list[Message]:
        """Return the messages of a field."""
        return [self.within(data, of, self.say) for data in self.all(index)]

    def raw(self, index: int, what: str) -> bytes:
        """Return a field of bytes; of several the last, as the format has it, and of none nothing."""
        return self._last(index, what, sized, b"")

    def text(self, index: int, what: str) -> str:
        """Return a field that is a text, empty where there is none."""
        return self.raw(index, what).decode(errors="replace")

    def number(self, index: int, what: str) -> int:
        """Return a field that is a number of 32 bits, 0 where there is none."""
        return self._last(index, what, whole, 0) & 0xFFFF_FFFF

    def fixed(self, index: int, what: str) -> int:
        """Return a field that is a number of 8 or 4 bytes, 0 where there is none."""
        return self._last(index, what, _fixed, 0)

    def needed(self, index: int) -> int:
        """Return a number as `fixed` does.

        Raises:
            ValueError: It is none.
        """
        return _fixed(self._fields[index][-1]) if index in self._fields else 0

    def _last(self, index: int, what: str, read: Callable[[object], _Value], default: _Value) -> _Value:
        found = self._fields.get(index)
        if found is None:
            return default
        try:
            return read(found[-1])
        except ValueError:
            self.bad(what)
            return default


def _fixed(value: object) -> int:
    data = sized(value)
    if len(data) not in _FIXED_BYTES:
        msg = f"a number of {len(data)} bytes"
        raise ValueError(msg)
    return int.from_bytes(data, "little")


def varint_bytes(number: int) -> bytes:
    """Return a number as a varint."""
    out = bytearray()
    while number >= 1 << 7:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
