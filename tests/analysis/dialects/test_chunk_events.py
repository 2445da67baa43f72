"""What the events of a stream's chunks tell: the last token, the gaps, and whether all came at once."""

from __future__ import annotations

import json

import pytest

from hotspan.analysis import analyse
from hotspan.analysis.dialects import translate
from hotspan.tracer import semconv
from hotspan.tracer.record import Event, Scope, SpanRecord, Trace

MS = 1_000_000
START = 1_700_000_000_000_000_000
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.usage.output_tokens": 11}
PLAIN = "gen_ai.content.completion.chunk"
AFTER = (semconv.LAST_TOKEN_NS, semconv.CHUNK_GAPS_NS, semconv.BUFFERED)


def mlflow(at_ms, content, **more):
    """Return MLflow's event of a chunk."""
    choices = [{"delta": {"content": content}}] if content is not None else []
    chunk = json.dumps({"choices": choices} | more)
    return Event("mlflow.chunk.item.0", START + round(at_ms * MS), {"mlflow.chunk.value": chunk})


def langchain(at_ms, text):
    """Return LangChain's event of a chunk."""
    return Event("new_token", START + round(at_ms * MS), {"token": text, "chunk": "{}"})


def plain(*at_ms):
    """Return events of chunks that do not tell what is in them."""
    return [Event(PLAIN, START + round(at * MS)) for at in at_ms]


def call(events, attributes=CHAT, length_ms=555, **more):
    """Return a model call of another writer."""
    return SpanRecord(
        "1", "2", None, "chat", START, START + length_ms * MS, attributes,
        scope=Scope("app"), events=tuple(events), **more,
    )  # fmt: skip


def after(span):
    """Return what our keys hold of a stream after its first token."""
    (found,) = translate([span])
    return {key: found.attributes[key] for key in AFTER if key in found.attributes}


def a_stream(chunk=mlflow):
    """Return chunks: the role, 11 tokens every 20 ms, and one long after them that bears none."""
    return [chunk(5, ""), *(chunk(100 + 20 * number, "w") for number in range(11)), chunk(550, "")]


@pytest.mark.parametrize("chunk", [mlflow, langchain])
def test_a_stream_ends_with_its_last_token(chunk):
    """What came after it (usage, the end mark) is not decoding; each gap lies between two tokens."""
    found = after(call(a_stream(chunk)))

    assert found == {semconv.LAST_TOKEN_NS: 300 * MS, semconv.CHUNK_GAPS_NS: (20 * MS,) * 10}


def test_its_phases_and_its_time_per_token_rest_on_the_last_token():
    """Decoding ends there, and what follows is the stream's overhead."""
    generation = analyse([Trace("1", [call(a_stream())])]).generation
    known = {name: ns / MS for name, ns in generation.phases_ns.items() if ns}

    assert known == {"first_token_wait": 100, "decode": 200, "stream_overhead": 255}
    assert generation.tpot_ns.p50 == generation.chunk_gap_ns.p50 == 20 * MS


@pytest.mark.parametrize(
    ("events", "attributes", "more"),
    [
        pytest.param(plain(5, 100, 120), CHAT, {}, id="no-event-tells-its-content"),
        pytest.param(a_stream(), CHAT, {"n_dropped_events": 1}, id="events-were-lost"),
        pytest.param(a_stream(), CHAT | {"gen_ai.request.stream": False}, {}, id="no-stream"),
        pytest.param(a_stream(), CHAT | {"ttft_ms": 310}, {}, id="an-attribute-says-a-later-first-token"),
        pytest.param([mlflow(5, ""), mlflow(550, None)], CHAT, {}, id="no-token"),
    ],
)
def test_where_the_last_token_is_not_known_none_is_told(events, attributes, more):
    """A last chunk may bear none, and the last of some events need not be the last."""
    assert after(call(events, attributes, **more)) == {}


def test_an_answer_in_one_chunk_had_its_last_token_with_its_first():
    """All chunks tell what is in them, and one had a token."""
    assert after(call([mlflow(5, ""), mlflow(100, "w"), mlflow(550, None)])) == {
        semconv.LAST_TOKEN_NS: 100 * MS
    }


AT_ONCE = [990 + number / 1000 for number in range(50)]


@pytest.mark.parametrize(
    ("events", "tokens", "is_buffered"),
    [
        pytest.param(plain(*AT_ONCE), 50, True, id="all-at-once"),
        pytest.param(plain(*AT_ONCE), None, True, id="all-at-once-tokens-unknown"),
        pytest.param([mlflow(at, "w") for at in AT_ONCE], None, True, id="tokens-at-once"),
        pytest.param(
            [mlflow(5, ""), *(mlflow(at, "w") for at in AT_ONCE)], 50, True, id="tokens-behind-the-role"
        ),
        pytest.param(plain(5, *AT_ONCE), 50, False, id="chunks-behind-one-that-may-bear-a-token"),
        pytest.param(plain(990, 990.5, 991), 50, False, id="a-millisecond-apart"),
        pytest.param(plain(*AT_ONCE[:4]), None, False, id="as-a-short-answer-has"),
        pytest.param(plain(*AT_ONCE[:4]), 2, False, id="a-short-answer"),
        pytest.param(plain(*AT_ONCE[:4]), 4, True, id="several-tokens"),
        pytest.param(plain(990), 50, False, id="an-event-of-the-first-chunk-alone"),
    ],
)
def test_chunks_that_came_at_once_are_in_one_piece(events, tokens, is_buffered):
    """A proxy collected the answer, whoever stamped it; one token alone tells nothing."""
    said = {"gen_ai.operation.name": "chat"} | (
        {} if tokens is None else {"gen_ai.usage.output_tokens": tokens}
    )
    report = analyse([Trace("1", [call(events, said, length_ms=995)])])

    assert report.generation.n_buffered == is_buffered
    assert report.generation.tpot_ns is None
    assert report.generation.chunk_gap_ns is None


def test_the_outer_span_of_two_tells_the_inner_one_all_of_its_stream():
    """The innermost span, which sent the request, has the tokens from its own start."""
    outer = call(a_stream())
    inner = call([], length_ms=500)._replace(span_id="3", parent_id="2", start_ns=START + 40 * MS)
    generation = analyse([Trace("1", [outer, inner])]).generation

    assert (generation.n_calls, generation.ttft_ns.p50, generation.tpot_ns.p50) == (1, 60 * MS, 20 * MS)
    assert generation.chunk_gap_ns.n == 10
    assert generation.phases_ns["decode"] == 200 * MS


def test_tokens_behind_a_retry_count_from_the_request_that_was_answered():
    """First and last one alike, so that the time between them stays."""
    url = {"http.request.method": "POST", "url.full": "http://h/v1/chat/completions"}
    requests = [
        SpanRecord(
            "1", f"p{at}", "2", "POST", START + at * MS, START + (at + 10) * MS, url, kind="client",
            scope=Scope("httpx"),
        )
        for at in (10, 80)
    ]  # fmt: skip
    found = translate([call(a_stream()), *requests])[0].attributes

    assert (found[semconv.TTFT_NS], found[semconv.LAST_TOKEN_NS]) == (20 * MS, 220 * MS)
