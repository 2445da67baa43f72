"""Unpacks gzip and zstd as a stream: all members, all frames, never more than a block at a time.

What can be unpacked of a file that breaks off is kept.  However much a small file unpacks to, no more than a
block of it is in memory.
"""

from __future__ import annotations

import importlib
import io
import sys
import zlib
from typing import TYPE_CHECKING, Any, Final

from hotspan.tracer.errors import MissingDependencyError, TraceFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

BLOCK_BYTES: Final = 1 << 20
MAGIC_BYTES: Final = 8  # what must be seen of a file to tell
LENGTH_BYTES: Final = 4  # of a message, big-endian

_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP: Final = 31  # zlib's number for a gzip header and the largest window
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_SKIPPABLE: Final = b"\x2a\x4d\x18"  # a frame of zstd that holds no data, such as an index; after one byte 5x


class Unpacker:
    """One compressed stream.

    Attributes:
        is_cut: The data broke off, or was damaged, before its end; known when the blocks are exhausted.
    """

    def __init__(self, name: str, method: str, new: Callable[[], Any]) -> None:
        self.is_cut = False
        self._name = name
        self._method = method
        self._new = new  # makes what unpacks one member (gzip) or frame (zstd)

    def blocks(self, packed: Iterator[bytes]) -> Iterator[bytes]:
        """Yield what is packed.

        Raises:
            TraceFileError: Nothing at all could be unpacked.
        """
        n_bytes = 0
        try:
            for block in self._members(packed):
                n_bytes += len(block)
                yield block
        except (zlib.error, OSError, ValueError, _zstd_error()):
            self.is_cut = True
        if self.is_cut and not n_bytes:
            what = f"begins like {self._method}, but cannot be unpacked"
            msg = f"{self._name}: {what}. Compress or copy it again."
            raise TraceFileError(msg)

    def _members(self, packed: Iterator[bytes]) -> Iterator[bytes]:
        member = self._new()
        for block in packed:
            rest = block
            while rest:
                if member.eof:
                    member = self._new()
                yield from _unpacked(member, rest)
                rest = member.unused_data.lstrip(b"\0") if member.eof else b""  # some pad to a block
        self.is_cut = not member.eof


def _unpacked(member: Any, packed: bytes) -> Iterator[bytes]:
    # A bounded output may leave input unread (zlib hands it back, zstd keeps it) or output unwritten.
    while True:
        block = member.decompress(packed, BLOCK_BYTES)
        if block:
            yield block
        packed = getattr(member, "unconsumed_tail", b"")
        if member.eof or (not packed and len(block) < BLOCK_BYTES):
            return


def unpacker_of(head: bytes, name: str) -> Unpacker | None:
    """Return what unpacks a file that begins so, or `None` where it is not compressed.

    Raises:
        MissingDependencyError: It is zstd, and there is no zstd here.
    """
    if head.startswith(_GZIP_MAGIC):
        return Unpacker(name, "gzip", lambda: zlib.decompressobj(_GZIP))
    if head.startswith(_ZSTD_MAGIC) or (head[1:4] == _SKIPPABLE and head[0] >> 4 == 5):  # noqa: PLR2004 - 0x50 to 0x5f
        return Unpacker(name, "zstd", _zstd(name).ZstdDecompressor)
    return None


def is_framed(head: bytes) -> bool:
    """Return whether zstd frames stand behind their lengths, as the Collector's file exporter does it."""
    return head[LENGTH_BYTES:].startswith(_ZSTD_MAGIC)


def unframed(blocks: Iterable[bytes], name: str, max_bytes: int) -> Iterator[bytes]:
    """Unpack frames of zstd behind their lengths, and yield each message as that exporter frames it unpacked.

    Raises:
        ValueError: It breaks off, or a frame is damaged or holds more than `max_bytes`.
    """
    stream = stream_of(blocks)
    while head := stream.read(LENGTH_BYTES):
        n_bytes = int.from_bytes(head, "big")
        if n_bytes > max_bytes:
            msg = f"a frame of {n_bytes} bytes"
            raise ValueError(msg)
        message = _unpacked_frame(stream.read(n_bytes), name, max_bytes)
        # JSON has a line for each message, protobuf its length.
        yield (
            message + b"\n"
            if message.startswith(b"{")
            else len(message).to_bytes(LENGTH_BYTES, "big") + message
        )


def _unpacked_frame(frame: bytes, name: str, max_bytes: int) -> bytes:
    member = _zstd(name).ZstdDecompressor()
    try:
        message: bytes = member.decompress(frame, max_bytes)
    except _zstd_error() as exc:
        raise ValueError(str(exc)) from exc
    if not member.eof:
        msg = "a frame that breaks off or is too large"
        raise ValueError(msg)
    return message


class _Blocks(io.RawIOBase):
    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks = iter(blocks)
        self._block = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._block:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._block = memoryview(block)
        n_bytes = min(len(buffer), len(self._block))
        buffer[:n_bytes] = self._block[:n_bytes]
        self._block = self._block[n_bytes:]
        return n_bytes


def stream_of(blocks: Iterable[bytes]) -> io.BufferedReader:
    """Return blocks as a stream from which any number of bytes can be read."""
    return io.BufferedReader(_Blocks(blocks), BLOCK_BYTES)


def _zstd(name: str) -> Any:
    # Python has it from 3.14 on; the package is the same code for the Pythons before.
    module = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    try:
        return importlib.import_module(module)
    except ImportError as exc:
        msg = f"{name}: is zstd-compressed, and {module} is not installed. pip install backports.zstd"
        raise MissingDependencyError(msg) from exc


def _zstd_error() -> type[Exception]:
    module = sys.modules.get("compression.zstd") or sys.modules.get("backports.zstd")
    error: type[Exception] = getattr(module, "ZstdError", ValueError)
    return error
