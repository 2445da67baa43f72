"""The reader of bodies that pass by: the same figures however the bytes are cut, and whatever they are."""

from __future__ import annotations

import json
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from servers import DONE, delta, event, usage

from hotspan.tracer import semconv
from hotspan.tracer.clients.openai_body import Body
from hotspan.tracer.generation import TokenClock

texts = st.text(min_size=0, max_size=6) | st.sampled_from(['"', "\\", '\\"', "\n\n", "data: {", "é😀", "\r"])
chunks = st.one_of(
    texts.map(delta),
    texts.map(lambda t: delta(t, index=1)),
    texts.map(lambda t: delta(reasoning_content=t)),
    st.just(delta(tool_calls=[{"index": 0, "id": "c", "function": {"name": "f", "arguments": ""}}])),
    st.just(delta("", role="assistant")),
    st.just({**delta("x"), "usage": {"prompt_tokens": 3, "completion_tokens": 1}}),
    st.just({**delta("x"), "obfuscation": "abc"}),
)


def read(
    pieces: list[tuple[int, bytes]], content_type: str = "text/event-stream", **options: Any
) -> TokenClock:
    """Return the token clock after these pieces and the end of the body."""
    tokens = TokenClock(0)
    body = Body(tokens, content_type, **{"has_vectors": False, "keep_text": False, **options})
    for stamp_ns, piece in pieces:
        body.feed(stamp_ns, piece)
    body.end(10**9)
    return tokens


def reference(stamped: list[tuple[int, dict[str, Any]]], *, done: bool) -> dict[str, Any]:
    """Return the attributes that follow from the chunks themselves."""
    tokens = TokenClock(0, framed=True)
    if stamped or done:
        tokens.first_byte_ns = 1
    for stamp_ns, chunk in stamped:
        tokens.feed(stamp_ns, chunk)
    if done:
        tokens.done()
    return figures(tokens)


def figures(tokens: TokenClock) -> dict[str, Any]:
    """Return what a clock says; the gaps of several answers are in no order among each other."""
    found = {**tokens.attributes(), "status": tokens.status}
    return {**found, semconv.CHUNK_GAPS_NS: sorted(found.get(semconv.CHUNK_GAPS_NS, []))}


def written(chunk: dict[str, Any], style: str, newline: bytes) -> bytes:
    """Return one event as servers write it: compact or spaced, escaped or not."""
    separators = (",", ":") if style == "compact" else None
    data = json.dumps(chunk, separators=separators, ensure_ascii=style == "spaced").encode()
    return event(data, newline=newline)


@given(st.lists(chunks, max_size=12), st.booleans(), st.booleans(), st.data())
def test_the_figures_do_not_depend_on_how_the_body_is_cut(items, finishes, done, data):
    """Any chunks in any spelling, cut anywhere: each counts at the piece that completes it."""
    if finishes:
        items = [*items, delta(finish="stop"), usage(5, len(items))]
    style, newline = (
        data.draw(st.sampled_from(["compact", "spaced"])),
        data.draw(st.sampled_from([b"\n", b"\r\n", b"\r"])),
    )
    events = [written(item, style, newline) for item in items] + ([DONE] if done else [])
    body = b"".join(events)
    inner = data.draw(st.sets(st.integers(0, len(body)), max_size=8))
    cuts = sorted({0, len(body)} | inner)
    pieces = [(n, body[a:b]) for n, (a, b) in enumerate(pairwise(cuts), 1)]
    # With "\r\n" an event is complete with its last "\r"; its "\n" may come later.
    complete = [end - len(newline) + 1 for end in accumulate(map(len, events))]
    stamps = [next(n for n, cut in enumerate(cuts[1:], 1) if cut >= end) for end in complete]

    tokens = read(pieces)

    expected = reference(list(zip(stamps, items, strict=False)), done=done)
    assert figures(tokens) == expected


def test_plain_chunks_are_counted_without_being_parsed():
    """A long run of alike chunks in one piece gives the same figures as one by one."""
    run = [delta("", role="assistant"), *(delta(f"w{n}") for n in range(500)), delta(finish="stop")]
    many = read([(1, b"".join(map(event, run)) + DONE)])
    single = read([*((1, event(item)) for item in run), (1, DONE)])

    assert many.attributes() == single.attributes()
    assert many.n_chunks == 500
    assert (many.status, many.attributes()[semconv.FINISH_REASONS]) == ("ok", ["stop"])


@pytest.mark.parametrize(
    "hidden",
    [
        pytest.param({"usage": {"prompt_tokens": 1, "completion_tokens": 9}}, id="usage"),
        pytest.param({"error": {"message": "no"}}, id="error"),
    ],
)
def test_what_hides_behind_a_plain_chunk_is_seen(hidden):
    """A chunk that begins as all the others and carries more is read whole."""
    plain = [event(delta("a")) for _ in range(5)]
    tokens = read([(n, e) for n, e in enumerate([*plain, event({**delta("b"), **hidden}), *plain, DONE])])

    assert tokens.n_chunks == 11
    assert (tokens.usage.output_tokens, tokens.status) == (
        (9, "ok") if "usage" in hidden else (None, "error")
    )


@pytest.mark.parametrize("prefix", [b"data:", b"data: ", b"id: 7\ndata:"])
def test_case_053_the_space_after_data_is_optional(prefix):
    """Chunks count whatever stands before their JSON, and text that looks like a field is text."""
    items = [delta("", role="assistant"), *(delta("data: x") for _ in range(5)), delta(finish="stop")]
    pieces = [event(item, prefix=prefix) for item in items] + [event(b"[DONE]", prefix=prefix)]

    for read_as in (pieces, [b"".join(pieces)]):
        tokens = read(list(enumerate(read_as)))
        assert (tokens.n_chunks, tokens.status, tokens.done_seen) == (5, "ok", True)


def test_case_050_characters_cut_at_a_border_are_kept_whole():
    """Text that is kept is exact, also when every byte comes alone."""
    tokens = TokenClock(0)
    body = Body(tokens, "text/event-stream", has_vectors=False, keep_text=True)
    words = "你好 🙂 naïve"
    for at, byte in enumerate(b"".join(event(delta(c)) for c in words) + event(delta(finish="stop")) + DONE):
        body.feed(at, bytes([byte]))

    assert "".join(body.text) == words
    assert tokens.n_chunks == len(words)


def test_an_empty_text_is_no_token():
    """A chunk that matches in all but having no text does not count."""
    pieces = [event(delta("a")), event(delta("b")), event(delta("")), event(delta("c")), DONE]

    assert read(list(enumerate(pieces))).n_chunks == 3


def test_nothing_after_the_end_counts():
    """Events after [DONE] belong to nobody, also those that look like all the others."""
    pieces = [event(delta("a")), event(delta("b")), DONE, event(delta("c")), event(delta("d"))]

    assert read(list(enumerate(pieces))).n_chunks == 2
    assert read([(1, b"".join(pieces))]).n_chunks == 2


@pytest.mark.parametrize("body", [b"", b"[1, 2]", b"{broken", b"\xff\xfe", b"null"])
@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("has_vectors", [True, False])
def test_any_body_is_survived(body, content_type, has_vectors):
    """Nonsense gives no figures, and no exception."""
    found = read([(1, body)], content_type, has_vectors=has_vectors).attributes()

    assert not {semconv.TTFT_NS, semconv.OUTPUT_TOKENS} & set(found)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(b'{"data": [{"embedding": [0.5]}]}', "ok", id="whole"),
        pytest.param(b'{"data": [{"embedding": [NaN]}]}', "ok", id="odd-numbers"),
        pytest.param(b'{"data": [{"embedding": [0.5', "truncated", id="cut"),
        pytest.param(b"", "truncated", id="empty"),
    ],
)
@pytest.mark.parametrize("has_vectors", [True, False])
def test_one_json_object_is_whole_when_it_is_one(body, status, has_vectors):
    """What is cut, or nothing, is truncated; numbers that strict parsers refuse cut nothing."""
    assert read([(1, body)], "application/json", has_vectors=has_vectors).status == status
