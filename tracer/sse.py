"""Server-sent events from raw bytes, cut anywhere.

The parser knows nothing of time: whoever reads stamps the bytes before it feeds them, and all events that
come out of one `feed` came with that read.

Notes on the hot path: bytes are never decoded here, a body without carriage returns is cut by one `split`
on the empty line, and an event that is one `data:` line (every chunk of a model's answer is) is cut out of
its block by one slice.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_BOM: Final = b"\xef\xbb\xbf"
_SPACE: Final = 0x20


class ServerEvent(NamedTuple):
    """One event: its `data` lines joined by newlines, and its `event:` name (empty where there is none)."""

    data: bytes
    name: bytes = b""


class SSEParser:
    r"""An incremental parser: `feed` bytes as they come, `close` at the end of the body.

    Lines end with `\n`, `\r\n` or `\r`, also when a read ends between the two.  A byte order mark at the
    start, comments, and the fields `id` and `retry` are skipped.  `data:` may or may not be followed by a
    space; one is removed.
    """

    __slots__ = ("_at_start", "_pending", "_skip_newline")

    def __init__(self) -> None:
        self._pending: list[
            bytes
        ] = []  # pieces without an empty line so far; joined when one may be complete
        self._at_start = True
        self._skip_newline = False

    @property
    def is_between_events(self) -> bool:
        """Whether all that was fed has been returned, so that the next byte begins an event."""
        return not self._pending and not self._skip_newline

    def feed(self, data: bytes) -> list[ServerEvent]:
        """Return the events that `data` completes, in order."""
        if b"\r" in data or self._skip_newline:
            data = self._unify(data)
        if b"\n" not in data:
            # No line ends here, so no event does: joining now would make many small reads quadratic.
            if data:
                self._pending.append(data)
            return []
        if self._pending:
            self._pending.append(data)
            data = b"".join(self._pending)
        blocks = data.split(b"\n\n")
        self._pending = [blocks[-1]] if blocks[-1] else []
        del blocks[-1]
        return self._events(blocks)

    def close(self) -> list[ServerEvent]:
        """Return the event that the end of the body completes: many servers omit the last empty line."""
        rest = b"".join(self._pending)
        self._pending = []
        return self._events([rest]) if rest else []

    def _unify(self, data: bytes) -> bytes:
        # "\r" ends its line at once, so the event is not held back; the "\n" of a cut "\r\n" is dropped here.
        if not data:
            return data
        if self._skip_newline and data.startswith(b"\n"):
            data = data[1:]
        self._skip_newline = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _events(self, blocks: list[bytes]) -> list[ServerEvent]:
        if self._at_start and blocks:
            self._at_start = False
            blocks[0] = blocks[0].removeprefix(_BOM)
        events = []
        for block in blocks:
            if block.startswith(b"data:") and b"\n" not in block:
                events.append(ServerEvent(block[6:] if block[5:6] == b" " else block[5:]))
            elif block and (event := _parse(block)) is not None:
                events.append(event)
        return events


def _parse(block: bytes) -> ServerEvent | None:
    """Return the event of one block of lines, or None for a block without data (comments, `retry`)."""
    name, data = b"", []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")  # a comment is a line without a field name
        if value and value[0] == _SPACE:
            value = value[1:]
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
    return ServerEvent(b"\n".join(data), name) if data else None
