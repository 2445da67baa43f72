"""The server-sent events parser, on bytes cut anywhere."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotspan.tracer.sse import ServerEvent, SSEParser


def parse(*reads: bytes) -> list[ServerEvent]:
    """Return the events of a body that came in these reads."""
    parser = SSEParser()
    return [event for data in reads for event in parser.feed(data)] + parser.close()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(b"data: a\n\n", [(b"a", b"")], id="space"),
        pytest.param(b"data:a\n\n", [(b"a", b"")], id="no-space"),
        pytest.param(b"data:  a\n\n", [(b" a", b"")], id="only-one-space-goes"),
        pytest.param(b"data: data\n\n", [(b"data", b"")], id="content-named-like-the-field"),
        pytest.param(b"data: a\ndata: b\n\n", [(b"a\nb", b"")], id="lines-are-joined"),
        pytest.param(b"data\n\n", [(b"", b"")], id="field-without-colon"),
        pytest.param(b"data:\n\n", [(b"", b"")], id="empty-data"),
        pytest.param(b"event: error\ndata: no\n\n", [(b"no", b"error")], id="named"),
        pytest.param(b"event: ping\n\ndata: a\n\n", [(b"a", b"")], id="no-data-no-event"),
        pytest.param(b": keep-alive\n\ndata: a\n\n", [(b"a", b"")], id="comment"),
        pytest.param(b"id: 7\nretry: 10\ndata: a\n\n", [(b"a", b"")], id="id-and-retry"),
        pytest.param(b"\xef\xbb\xbfdata: a\n\n", [(b"a", b"")], id="byte-order-mark"),
        pytest.param(b"\n\n\ndata: a\n\n\n\ndata: b\n\n", [(b"a", b""), (b"b", b"")], id="many-empty-lines"),
        pytest.param(
            b"data: a\n\ndata: [DONE]", [(b"a", b""), (b"[DONE]", b"")], id="end-without-empty-line"
        ),
        pytest.param(b"dataset: a\n\n", [], id="longer-field-name"),
        pytest.param(b"", [], id="nothing"),
        pytest.param(b"data: a\r\n\r\n", [(b"a", b"")], id="crlf"),
        pytest.param(b"data: a\r\rdata: b\r\r", [(b"a", b""), (b"b", b"")], id="cr"),
        pytest.param(b"data: a\n\r\n", [(b"a", b"")], id="mixed"),
    ],
)
def test_fields_are_read_as_the_standard_says(body, expected):
    """Each form of a field, a line end and a body's end gives the events that the standard gives."""
    assert parse(body) == expected


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_every_single_cut_gives_the_same_events(newline):
    """Where the network cuts a body changes nothing, not even between the two bytes of a line end."""
    lines = [
        b"\xef\xbb\xbf: hi",
        b"data: one",
        b"",
        b"event: x",
        b"data:two",
        b"data: 2\xe2\x82\xac",
        b"",
        b"data: [DONE]",
        b"",
        b"",
    ]
    body = newline.join(lines)
    whole = parse(body)

    assert whole == [(b"one", b""), (b"two\n2\xe2\x82\xac", b"x"), (b"[DONE]", b"")]
    for cut in range(len(body) + 1):
        assert parse(body[:cut], body[cut:]) == whole, cut
    assert parse(*(body[i : i + 1] for i in range(len(body)))) == whole


@given(
    st.lists(st.sampled_from([b"data: a", b"data:b", b": c", b"event: e", b"", b"x", b"\xf0\x9f\x99\x82"])),
    st.lists(st.sampled_from([b"\n", b"\r", b"\r\n"]), min_size=1),
    st.lists(st.integers(0, 200)),
)
def test_any_cuts_of_any_body_give_the_same_events(lines, newlines, cuts):
    """The events of a body are a function of its bytes alone, for any mixture of lines, ends and cuts."""
    body = b"".join(line + newlines[i % len(newlines)] for i, line in enumerate(lines))
    bounds = [0, *sorted(min(c, len(body)) for c in cuts), len(body)]

    assert parse(*(body[a:b] for a, b in pairwise(bounds))) == parse(body)


def test_an_event_comes_out_with_the_read_that_completes_it():
    """The empty line completes an event; a carriage return completes it without waiting for what follows."""
    parser = SSEParser()

    assert parser.feed(b"data: a\n") == []
    assert parser.feed(b"\ndata: b\r\n\r") == [(b"a", b""), (b"b", b"")]
    assert parser.feed(b"\n") == []
    assert parser.close() == []


def test_many_events_of_one_read_come_out_together():
    """One read may hold any number of events; all are returned by that one call."""
    assert len(SSEParser().feed(b"data: x\n\n" * 1000)) == 1000
