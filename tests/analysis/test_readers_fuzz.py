"""Fuzzing: valid files of every format, mutated where their structure is and in their bytes.

What comes of it is records or a `HotspanError`; scripts/fuzz_readers.py runs the same without an end.
"""

from __future__ import annotations

import contextlib
import json

import dialect_files as files
from hypothesis import given, settings
from hypothesis import strategies as st

from hotspan.analysis import load
from hotspan.analysis.readers import framing
from hotspan.tracer.errors import HotspanError
from hotspan.tracer.record import SpanRecord

OTLP = {
    "resourceSpans": [
        {
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "handbook"}}]},
            "scopeSpans": [
                {
                    "scope": {"name": "test"},
                    "spans": [
                        {
                            "traceId": files.TRACE,
                            "spanId": files.CHAT,
                            "parentSpanId": files.ROOT,
                            "name": "chat",
                            "kind": 3,
                            "startTimeUnixNano": "1790000000000000000",
                            "endTimeUnixNano": "1790000000100000000",
                            "attributes": [{"key": "n", "value": {"intValue": "1"}}],
                            "events": [{"name": "e", "timeUnixNano": "1790000000000000001"}],
                            "links": [{"traceId": files.TRACE, "spanId": files.ROOT}],
                            "status": {"code": 2, "message": "no"},
                        }
                    ],
                }
            ],
        }
    ]
}
TEXTS = {name: make() for name, (make, _) in files.FILES.items()} | {"otlp": json.dumps(OTLP)}

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["0x", "-", "2026-01-01", "NaN", "1" * 5000, files.TRACE, "\ud800"])
)
nonsense = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)


def _mutated(draw, value):
    """Return a document with one change somewhere, deep places as likely as shallow ones."""
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 5)) == 0:
        return draw(nonsense)
    copy = value.copy()
    key = (
        draw(st.sampled_from(sorted(copy))) if isinstance(copy, dict) else draw(st.integers(0, len(copy) - 1))
    )
    change = draw(st.sampled_from(["inside", "inside", "inside", "gone", "twice"]))
    if change == "gone":
        del copy[key]
    elif change == "twice" and isinstance(copy, list):
        copy.append(copy[key])
    else:
        copy[key] = _mutated(draw, copy[key])
    return copy


@st.composite
def documents(draw):
    """Draw a file: a valid one, its documents changed, then perhaps its bytes."""
    text = TEXTS[draw(st.sampled_from(sorted(TEXTS)))]
    found = [document.text for document in framing.values(iter([text.encode()])) if not document.problem]
    parsed = [json.loads(each) for each in found if each[:1] == b"{"]
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(parsed) - 1))
        parsed[at] = _mutated(draw, parsed[at])
    indent = draw(st.sampled_from([None, 1]))
    data = (
        draw(st.sampled_from(["\n", ",", ""]))
        .join(json.dumps(each, indent=indent) for each in parsed)
        .encode()
    )
    data = data if draw(st.booleans()) else b'{"data":[' + data + b"]}"
    if draw(st.integers(0, 3)) == 0:
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.binary(max_size=6)) + data[at + draw(st.integers(0, 6)) :]
    return data


@settings(max_examples=400)
@given(data=documents())
def test_a_mutated_file_is_records_or_a_sentence(tmp_path_factory, data):
    """No change of a valid file ends in another exception; what is read is of the types that are promised."""
    path = tmp_path_factory.mktemp("fuzz") / "traces"
    path.write_bytes(data)

    with contextlib.suppress(HotspanError):
        for trace in load(path):
            for span in trace.spans:
                _check(span)


def _check(span):
    assert isinstance(span, SpanRecord)
    assert len(span.trace_id) == 32
    assert len(span.span_id) == 16
    assert type(span.start_ns) is int
    assert span.end_ns is None or type(span.end_ns) is int
    assert all(type(text) is str for text in (span.name, span.kind, span.status, span.status_message))
    assert all(type(event.time_ns) is int and type(event.name) is str for event in span.events)
    repr(span).encode()  # no half of a character that could not be printed


@given(
    data=st.binary(max_size=200),
    head=st.sampled_from([b"", b"{", b"[{", b"\x1f\x8b", b"PAR1", b"\x0a\x10\x0a"]),
)
def test_any_bytes_are_records_or_a_sentence(tmp_path_factory, data, head):
    """Whatever a file holds."""
    path = tmp_path_factory.mktemp("fuzz") / "traces"
    path.write_bytes(head + data)

    with contextlib.suppress(HotspanError):
        list(load(path))


jsons = st.recursive(
    st.text(max_size=6) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=3).filter(lambda key: key != "data"), jsons, max_size=4)


@given(
    found=st.lists(objects, max_size=5),
    indent=st.sampled_from([None, 2]),
    shape=st.sampled_from(["%s", "[%s]", '{"errors":[{"a":1}],"data":[%s],"total":{}}']),
    size=st.integers(1, 40),
)
def test_documents_are_found_whatever_surrounds_them_and_however_they_arrive(found, indent, shape, size):
    """One after the other, in an array or in an answer, in pieces of any size: every one, whole, in order."""
    text = (shape % ",\n".join(json.dumps(each, indent=indent) for each in found)).encode()
    pieces = [text[at : at + size] for at in range(0, len(text), size)]

    documents = list(framing.values(iter(pieces)))

    assert [json.loads(document.text) for document in documents] == found
    lines = text.split(b"\n")
    for document in documents:
        assert document.text.split(b"\n")[0] in lines[document.line - 1]
