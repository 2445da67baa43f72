"""Lines taken apart as text hold what the decoder reads in them, or are left to the decoder."""

from __future__ import annotations

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotspan.analysis.drafts import spans_of
from hotspan.analysis.readers import otlp_shapes, otlp_text
from hotspan.analysis.readers.otlp_json import Decoder
from hotspan.analysis.readers.otlp_text import TextDecoder
from hotspan.exporters import otlp_lines
from hotspan.tracer import semconv
from hotspan.tracer.record import Event, Link, Resource, Scope, SpanRecord

START_NS = 1_790_000_000_000_000_000
RESOURCES = (Resource({semconv.SERVICE_NAME: "bot"}), Resource({semconv.SERVICE_NAME: "é"}, "schema"))
SCOPES = (Scope(semconv.SCOPE_NAME), Scope("other", "1.0", {"a": 1}, "schema"))

values = st.one_of(
    st.text(string.printable, max_size=12),
    st.text(max_size=4),
    st.integers(-3, 1 << 66),
    st.floats(),
    st.booleans(),
    st.lists(st.integers(0, 1 << 40), max_size=4).map(tuple),
    st.lists(st.text(max_size=3), max_size=2).map(tuple),
    st.none(),
)


@st.composite
def spans(draw):
    """Draw a span: mostly plain, with few keys, so that many are alike."""
    is_plain = draw(st.integers(0, 9)) > 0
    start = START_NS + draw(st.integers(0, 1000))
    return SpanRecord(
        f"{draw(st.integers(1, 4)):032x}",
        f"{draw(st.integers(1, 1 << 63)):016x}",
        draw(st.sampled_from((None, f"{7:016x}"))),
        draw(st.sampled_from(("chat tiny", 'a "name"\\', "é"))),
        start,
        start + draw(st.integers(0, 1000)),
        draw(st.dictionaries(st.sampled_from((semconv.STAGE, "a", "b", "gaps")), values, max_size=4)),
        draw(st.sampled_from(("internal", "client"))),
        draw(st.sampled_from(("unset", "ok", "error"))),
        "" if is_plain else 'it "failed" {',
        () if is_plain else (Event("e", start, {"x": 1}),),
        () if draw(st.integers(0, 9)) else (Link(f"{8:032x}", f"{9:016x}"),),
        draw(st.sampled_from(RESOURCES)),
        draw(st.sampled_from(SCOPES)),
        flags=draw(st.sampled_from((0, 1))),
    )  # fmt: skip


@pytest.fixture(autouse=True)
def _early_shapes(monkeypatch):
    monkeypatch.setattr(otlp_shapes, "_MIN_MISSES", 1)


def _lines(found):
    return [line.encode() for line in otlp_lines.lines(found)]


def _shown(found):
    return [
        (repr(item), list(getattr(item, "attributes", ()))) for item in found
    ]  # NaN is not equal to itself


@given(st.lists(st.lists(spans(), min_size=1, max_size=6), min_size=1, max_size=5))
@settings(max_examples=200)
def test_a_line_as_text_is_the_line_decoded(groups):
    """Whatever is taken apart as text has the spans, the values and the order of the decoder."""
    texts, decoder = TextDecoder(Decoder()), Decoder()
    for group in groups:
        for line in _lines(group):
            drafts = texts.drafts(line)
            if drafts is not None:
                assert _shown(spans_of(drafts)) == _shown(decoder.items(line))
            else:
                assert any(span.links for span in group)


@given(st.data())
@settings(max_examples=300)
def test_a_damaged_line_is_left_to_the_decoder(data):
    """However a line is changed: it is read as the decoder reads it, or is not taken apart."""
    found = data.draw(st.lists(spans(), min_size=1, max_size=4))
    texts = TextDecoder(Decoder())
    for line in _lines(found):
        texts.drafts(line)
    line = data.draw(st.sampled_from(_lines(found)))
    at = data.draw(st.integers(0, len(line) - 1))
    to = data.draw(st.integers(at, min(len(line), at + 40)))
    changed = (
        line[:at]
        + data.draw(st.sampled_from((b"", b"0", b'"', b"}", b",", b"\x01", b"\xff", line[at:to] * 2)))
        + line[to:]
    )

    drafts = texts.drafts(changed)

    if drafts is not None:
        assert _shown(spans_of(drafts)) == _shown(Decoder().items(changed))


def test_spans_that_are_alike_have_a_shape():
    """From the second span of a kind on, nothing but the values is read."""
    found = [
        SpanRecord(
            f"{n:032x}", f"{n:016x}", None, "chat", START_NS, START_NS + n,
            {semconv.STAGE: "chat", "tokens": n, "gaps": (n, n + 1), "id": f"é{n}", "p": n / 4, "x": n > 2}
        )
        for n in range(1, 5)
    ]  # fmt: skip
    texts = TextDecoder(Decoder())

    drafts = [draft for line in _lines(found) for draft in texts.drafts(line)]

    assert spans_of(drafts) == [span._replace(resource=drafts[0][5].template.resource) for span in found]
    assert [draft[5].shape is not None for draft in drafts] == [False, True, True, True]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('"intValue":"007"', id="leading-zeros"),
        pytest.param('"intValue":""', id="no-integer"),
        pytest.param('"intValue":"12345678901234567890123"', id="large"),
        pytest.param('"stringValue":"a\\u0062"', id="escaped"),
        pytest.param('"doubleValue":"NaN"', id="not-a-number"),
        pytest.param('"doubleValue":1e400', id="too-large"),
        pytest.param('"doubleValue":-01.5', id="leading-zero"),
        pytest.param('"boolValue":"true"', id="text-for-bool"),
        pytest.param('"arrayValue":{"values":[{"intValue":"1"},{"intValue":""}]}', id="array-with-nothing"),
        pytest.param('"arrayValue":{"values":[{"intValue":"1"},{"stringValue":"b"}]}', id="mixed-array"),
    ],
)
def test_odd_values_are_read_as_ever(text):
    """A value that its shape does not foresee is the decoder's."""
    made = [
        SpanRecord(
            f"{n:032x}", f"{n:016x}", None, "s", START_NS, START_NS,
            {"a": n, "b": "x", "c": 0.5, "d": True, "e": (n,)},
        )
        for n in (1, 2)
    ]  # fmt: skip
    texts = TextDecoder(Decoder())
    (line,) = _lines(made)
    texts.drafts(line)
    for plain in ('"intValue":"2"', '"stringValue":"x"', '"doubleValue":0.5', '"boolValue":true'):
        odd = line.decode().replace(plain, text, 1).encode()
        drafts = texts.drafts(odd)
        if drafts is not None:
            assert _shown(spans_of(drafts)) == _shown(Decoder().items(odd))


@pytest.mark.parametrize(
    ("value", "other"),
    [
        pytest.param('"intValue":"7"', '"intValue": "7"', id="blank"),
        pytest.param('"intValue":"7"', '"arrayValue":{"values":[ {"intValue":"7"}]}', id="blank-in-an-array"),
        pytest.param(
            '"intValue":"7"', '"arrayValue":{"values":[' * 90 + '{"intValue":"7"}' + "]}" * 90, id="deep"
        ),
    ],
)
def test_spans_without_a_shape_are_read_all_the_same(value, other):
    """Where nothing can be learnt from a text, it goes through the decoder."""
    span = SpanRecord(f"{1:032x}", f"{2:016x}", None, "s", START_NS, START_NS, {"a": 7, "b": 8})
    (line,) = _lines([span])
    lines = [line.replace(value.encode(), other.encode()).replace(b'"8"', b'"%d"' % n) for n in range(9)]
    texts = TextDecoder(Decoder())

    for line in lines:
        drafts = texts.drafts(line)
        if drafts is not None:
            assert _shown(spans_of(drafts)) == _shown(Decoder().items(line))


def test_an_end_of_zero_is_the_decoders():
    """It stands for none."""
    (line,) = _lines([SpanRecord(f"{1:032x}", f"{2:016x}", None, "s", START_NS, START_NS)])

    assert TextDecoder(Decoder()).drafts(line)
    zero = line.replace(f'"endTimeUnixNano":"{START_NS}"'.encode(), b'"endTimeUnixNano":"%s"' % (b"0" * 19))
    assert TextDecoder(Decoder()).drafts(zero) is None


def test_what_is_remembered_is_bounded_over_all_writers(monkeypatch):
    """However many resources a file has."""
    monkeypatch.setattr(otlp_text, "_MAX_BODIES", 10)
    texts = TextDecoder(Decoder())
    for n in range(50):
        resource = Resource({semconv.SERVICE_NAME: f"bot {n % 5}"})
        span = SpanRecord(
            f"{1:032x}", f"{2:016x}", None, "s", START_NS, START_NS, {"a": n}, resource=resource
        )  # fmt: skip
        (line,) = _lines([span])
        assert spans_of(texts.drafts(line))[0].attributes == {"a": n}
        groups = [group for found in texts._groups_of.values() for group in found]  # noqa: SLF001 - the memory
        assert sum(len(group.bodies) for group in groups) <= 10
