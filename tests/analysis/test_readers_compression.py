"""Compressed files: every member, every frame, in bounded memory, and to the end of what is there."""

from __future__ import annotations

import gzip
import json
import sys
import tracemalloc
import zlib

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from hotspan.analysis import load
from hotspan.analysis.readers import source as sources
from hotspan.tracer.errors import HotspanError, TraceFileError

ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"


def _line(number):
    span = {
        "traceId": "7c1f0e9a52b84d6e9d0b3a4c5e6f7081",
        "spanId": f"{number:016x}",
        "name": f"span {number}",
        "startTimeUnixNano": "1790000000000000000",
        "endTimeUnixNano": "1790000000000001000",
    }
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode() + b"\n"


def _compress(method, data):
    return gzip.compress(data) if method == "gzip" else pytest.importorskip(ZSTD).compress(data)


def _numbers(path):
    reader = load(path)
    return [int(span.name.split()[1]) for trace in reader for span in trace.spans], reader.evidence


@pytest.mark.parametrize("method", ["gzip", "zstd"])
def test_every_member_and_every_frame_is_read(tmp_path, method):
    """What `cat` and a rotating writer make of several: none is lost, whatever pads or parts them."""
    parts = [_compress(method, b"".join(map(_line, range(n, n + 50)))) for n in (1, 51, 101)]
    (tmp_path / "a").write_bytes(b"".join(parts))

    numbers, evidence = _numbers(tmp_path / "a")

    assert numbers == list(range(1, 151))
    assert evidence.warnings == []


def test_frames_of_zstd_that_hold_no_data_are_skipped(tmp_path):
    """An index before or between the frames is no content."""
    index = b"\x50\x2a\x4d\x18\x03\0\0\0abc"
    frames = [_compress("zstd", _line(n)) for n in (1, 2)]
    (tmp_path / "a.zst").write_bytes(index + frames[0] + index + frames[1])

    assert _numbers(tmp_path / "a.zst")[0] == [1, 2]


@pytest.mark.parametrize("is_json", [True, False], ids=["json", "protobuf"])
def test_frames_behind_their_lengths_are_read(tmp_path, is_json):
    """As the Collector's file exporter compresses: 4 bytes of length, then a frame with one message."""
    messages = [_line(n).rstrip() if is_json else _protobuf(n) for n in (1, 2, 3)]
    frames = [_compress("zstd", message) for message in messages]
    (tmp_path / "a.zst").write_bytes(b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames))

    numbers, evidence = _numbers(tmp_path / "a.zst")

    assert numbers == [1, 2, 3]
    assert evidence.warnings == []


def _protobuf(number):
    message = TracesData()
    span = message.resource_spans.add().scope_spans.add().spans.add()
    span.trace_id, span.span_id = bytes(15) + b"\1", number.to_bytes(8, "big")
    span.name = f"span {number}"
    span.start_time_unix_nano = span.end_time_unix_nano = 1_790_000_000_000_000_000
    return message.SerializeToString()


@pytest.mark.parametrize("method", ["gzip", "zstd"])
def test_what_breaks_off_or_is_damaged_is_read_to_there(tmp_path, method):
    """The rest is said to be missing."""
    whole = _compress(method, b"".join(_line(n) for n in range(20_000)))
    first = _compress(method, _line(7))
    (tmp_path / "cut").write_bytes(first + whole[: len(whole) // 2])
    (tmp_path / "damaged").write_bytes(first + b"\0" * 8 + b"garbage")

    for name in ("cut", "damaged"):
        numbers, evidence = _numbers(tmp_path / name)
        assert numbers[0] == 7
        assert any("breaks off before its end" in warning for warning in evidence.warnings)


@pytest.mark.parametrize(
    "head", [b"\x1f\x8b\x08\x00garbage", b"\x28\xb5\x2f\xfdgarbage"], ids=["gzip", "zstd"]
)
def test_what_begins_like_a_compressed_file_and_is_none_is_refused(tmp_path, head):
    """With the file's name and the next step."""
    if head.startswith(b"\x28"):
        pytest.importorskip(ZSTD)
    (tmp_path / "a").write_bytes(head)

    with pytest.raises(TraceFileError, match="cannot be unpacked"):
        list(load(tmp_path / "a"))


def test_zstd_without_its_package_is_a_sentence(tmp_path, monkeypatch):
    """It names the file and the command that helps."""
    monkeypatch.setitem(sys.modules, ZSTD, None)
    (tmp_path / "a").write_bytes(b"\x28\xb5\x2f\xfd\0")

    with pytest.raises(HotspanError, match=r"a: is zstd-compressed.*pip install"):
        list(load(tmp_path / "a"))


BOMBS = [
    pytest.param(b"\0", id="zeros"),
    pytest.param(b"\n", id="blank-lines"),
    pytest.param(b'{"a":"' + b"x" * 90, id="a-text-without-end"),
    pytest.param(b"[", id="brackets"),
    pytest.param(b"[],", id="empty-arrays"),
    pytest.param(b"0,", id="numbers"),
    pytest.param(b"word ", id="words"),
]


@pytest.mark.parametrize("method", ["gzip", "zstd"])
@pytest.mark.parametrize("pattern", BOMBS)
def test_a_file_that_unpacks_to_very_much_is_refused_in_bounded_memory(
    tmp_path, monkeypatch, method, pattern
):
    """A megabyte that unpacks to a gigabyte: a sentence, and never more than a few documents in memory."""
    monkeypatch.setattr("hotspan.analysis.readers.framing.MAX_DOCUMENT_BYTES", 1 << 20)
    monkeypatch.setattr(sources, "MAX_DOCUMENT_BYTES", 1 << 20)
    (tmp_path / "bomb").write_bytes(_bomb(method, pattern, 32 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(TraceFileError):
            list(load(tmp_path / "bomb"))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak_bytes < 24 << 20


def _bomb(method, pattern, n_bytes):
    block = pattern * ((1 << 20) // len(pattern))
    new = zlib.compressobj(wbits=31) if method == "gzip" else pytest.importorskip(ZSTD).ZstdCompressor()
    return b"".join(new.compress(block) for _ in range(n_bytes >> 20)) + new.flush()


def test_a_line_that_is_too_long_costs_itself_only(tmp_path, monkeypatch):
    """The lines around it are read, and it is said."""
    monkeypatch.setattr("hotspan.analysis.readers.framing.MAX_DOCUMENT_BYTES", 1 << 16)
    monkeypatch.setattr(sources, "MAX_DOCUMENT_BYTES", 1 << 16)
    long = b'{"resourceSpans":[],"more":"' + b"x" * (1 << 21) + b'"}\n'
    (tmp_path / "a.jsonl").write_bytes(_line(1) + long + _line(2) + _line(3))

    numbers, evidence = _numbers(tmp_path / "a.jsonl")

    assert numbers == [1, 2, 3]
    assert [":2: the line is longer than 64 MiB" in warning for warning in evidence.warnings] == [True]
