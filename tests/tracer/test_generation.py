"""The token clock: every source's shape, times exact to the nanosecond."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionChunk
from servers import delta, usage

from hotspan.tracer import semconv
from hotspan.tracer.chunk_gaps import MAX_GAPS
from hotspan.tracer.generation import TokenClock

MS = 1_000_000


def play(*items: tuple[float, object], send_ms: float = 0) -> TokenClock:
    """Return the clock after items that came at so many milliseconds."""
    clock = TokenClock(round(send_ms * MS))
    for at_ms, item in items:
        clock.feed(round(at_ms * MS), item)
    clock.finish()
    return clock


def ms_of(clock: TokenClock, key: str) -> float | None:
    """Return one attribute in milliseconds."""
    value = clock.attributes().get(key)
    return None if value is None else value / MS


class Hostile:
    """An object whose every attribute raises."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return object.__getattribute__(self, name)
        msg = "do not touch"
        raise RuntimeError(msg)


def test_text_pieces_of_a_generator_are_tokens():
    """The first string is the first token and answer; gaps and TPOT follow from the stamps."""
    clock = play((110, "Hel"), (130, "lo"), (170, "!"), send_ms=100)

    assert clock.status == "ok"
    assert clock.attributes() == {
        semconv.TTFB_NS: 10 * MS,
        semconv.TIME_TO_FIRST_CHUNK: 0.01,
        semconv.TTFT_NS: 10 * MS,
        semconv.TTFA_NS: 10 * MS,
        semconv.LAST_TOKEN_NS: 70 * MS,
        semconv.TPOT_NS: 30 * MS,
        semconv.CHUNK_GAPS_NS: [20 * MS, 40 * MS],
        semconv.CHUNKS: 3,
        semconv.OUTPUT_TOKENS: 3,
        semconv.TOKENS_ESTIMATED: True,
    }


def test_nothing_fed_is_nothing_known():
    """A stream without an item has no time at all, rather than times of zero."""
    clock = play()

    assert clock.status == "ok"
    assert clock.attributes() == {}


@pytest.mark.parametrize(
    "item",
    [
        pytest.param("", id="empty-text"),
        pytest.param(b"", id="empty-bytes"),
        pytest.param(None, id="none"),
        pytest.param({}, id="empty-dict"),
        pytest.param([], id="empty-list"),
        pytest.param(delta(role="assistant"), id="role"),
        pytest.param(delta("", role="assistant"), id="role-and-empty-content"),
        pytest.param({"choices": [{"delta": {"role": "assistant", "content": None}}]}, id="null-content"),
        pytest.param(delta(tool_calls=[]), id="no-tool-calls"),
        pytest.param(usage(3, 4), id="usage-only"),
        pytest.param({"usage": {"prompt_tokens": 3}}, id="usage-without-choices"),
        pytest.param({"choices": [{"text": "", "finish_reason": "stop"}]}, id="legacy-end"),
        pytest.param(SimpleNamespace(content="", usage_metadata=None), id="empty-message-chunk"),
    ],
)
def test_an_item_without_a_token_is_no_token(item):
    """Roles, empty pieces, usage and keep-alives move neither TTFT nor the count of chunks."""
    clock = play((5, item), (50, delta("x")))

    assert ms_of(clock, semconv.TTFT_NS) == 50
    assert clock.n_chunks == 1
    assert ms_of(clock, semconv.TTFB_NS) == 5


@pytest.mark.parametrize(
    ("item", "is_answer"),
    [
        pytest.param("x", True, id="text"),
        pytest.param(" ", True, id="blank"),
        pytest.param(b"x", True, id="bytes"),
        pytest.param(delta("x"), True, id="content"),
        pytest.param(delta([{"type": "text", "text": "x"}]), True, id="content-parts"),
        pytest.param({"choices": [{"index": 0, "text": "x"}]}, True, id="legacy-text"),
        pytest.param(delta(reasoning="x"), False, id="reasoning"),
        pytest.param(delta(reasoning_content="x"), False, id="reasoning_content"),
        pytest.param(delta(refusal="x"), False, id="refusal"),
        pytest.param(delta(tool_calls=[{"index": 0, "function": {"name": "f"}}]), False, id="tool-call"),
        pytest.param(delta(function_call={"name": "f"}), False, id="function-call"),
        pytest.param({"content": "x", "stop": False}, True, id="llama-completion"),
        pytest.param(SimpleNamespace(content="x"), True, id="message-chunk"),
        pytest.param(
            SimpleNamespace(content="", tool_call_chunks=[{"name": "f"}]), False, id="message-tool-call"
        ),
        pytest.param(0, True, id="token-id-zero"),
        pytest.param(object(), True, id="unknown"),
        pytest.param(("x", {}), True, id="tuple"),
        pytest.param({"whatever": 1}, True, id="unknown-dict"),
        pytest.param(Hostile(), True, id="hostile"),
    ],
)
def test_an_item_with_a_token_is_one_chunk(item, is_answer):
    """Every way to carry a token counts once; only content is the answer."""
    clock = play((7, item))

    assert ms_of(clock, semconv.TTFT_NS) == 7
    assert ms_of(clock, semconv.TTFA_NS) == (7 if is_answer else None)
    assert clock.n_chunks == 1


def test_chunk_objects_of_the_sdk_are_read_like_their_json():
    """The OpenAI SDK's chunk objects give what the same events as dicts give, extra fields included."""
    events = [
        delta("", role="assistant"),
        delta(reasoning_content="hm"),
        delta("a"),
        delta("b", finish="stop"),
        usage(9, 3),
    ]
    objects = [ChatCompletionChunk.model_validate({**e, "created": 1}) for e in events]

    as_dicts = play(*((i * 10, e) for i, e in enumerate(events)))
    as_objects = play(*((i * 10, o) for i, o in enumerate(objects)))

    assert as_objects.attributes() == as_dicts.attributes()
    assert as_objects.status == as_dicts.status == "ok"
    assert as_dicts.attributes()[semconv.TTFT_NS] == 10 * MS
    assert as_dicts.attributes()[semconv.TTFA_NS] == 20 * MS


def test_choices_are_timed_apart():
    """With n > 1, gaps are within an answer, and TPOT is the answers' decode time over their later tokens."""
    clock = play(
        (10, delta("a", index=0)),
        (12, delta("A", index=1)),
        (20, delta("b", index=0, finish="stop")),
        (32, delta("B", index=1, finish="length")),
        (33, usage(5, 4)),
    )
    found = clock.attributes()

    assert found[semconv.CHUNK_GAPS_NS] == [10 * MS, 20 * MS]
    assert found[semconv.TPOT_NS] == (10 + 20) * MS / (4 - 2)
    assert found[semconv.TTFT_NS] == 10 * MS
    assert found[semconv.LAST_TOKEN_NS] == 32 * MS
    assert found[semconv.FINISH_REASONS] == ["stop", "length"]


def test_a_server_cannot_make_unbounded_choices():
    """An absurd index is counted with the first answer: an index is the server's word, memory is ours."""
    clock = play((1, delta("a", index=10**12)), (2, delta("b", index=-1)), (3, delta("c")))

    assert clock.n_chunks == 3
    assert clock.attributes()[semconv.CHUNK_GAPS_NS] == [MS, MS]


@pytest.mark.parametrize(
    ("items", "status"),
    [
        pytest.param([delta("a"), delta(finish="stop")], "ok", id="finish-reason"),
        pytest.param([delta("a")], "truncated", id="neither"),
        pytest.param([delta("a", index=0, finish="stop"), delta("b", index=1)], "truncated", id="one-of-two"),
        pytest.param([delta("a"), {"error": {"message": "no"}}], "error", id="error-object"),
        pytest.param([delta("a"), {"error": "no"}], "error", id="error-text"),
        pytest.param([delta("a"), {"object": "error", "message": "no"}], "error", id="error-kind"),
        pytest.param([delta("a"), delta(finish="abort")], "error", id="engine-gave-up"),
        pytest.param(["a", "b"], "ok", id="text-needs-no-end"),
        pytest.param([object()], "ok", id="unknown-needs-no-end"),
    ],
)
def test_status_is_what_the_stream_says(items, status):
    """A protocol that has an end must show it; an error inside is an error; plain text needs neither."""
    assert play(*((i, item) for i, item in enumerate(items))).status == status


def test_done_completes_a_stream_without_finish_reason():
    """[DONE] is an end of its own."""
    clock = play((1, delta("a")))
    clock.done()

    assert clock.status == "ok"


def test_the_last_usage_wins_field_by_field():
    """Cumulative usage is a total, and a later object that lacks a count does not unsay it."""
    clock = play(
        (1, {**delta("a"), "usage": {"prompt_tokens": 9, "completion_tokens": 1}}),
        (2, {**delta("b"), "usage": {"prompt_tokens": 9, "completion_tokens": 2}}),
        (3, {**delta(finish="stop"), "usage": None}),
        (
            4,
            {"choices": [], "usage": {"completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}},
        ),
    )
    found = clock.attributes()

    assert (found[semconv.INPUT_TOKENS], found[semconv.OUTPUT_TOKENS], found[semconv.CACHED_TOKENS]) == (
        9,
        3,
        4,
    )
    assert semconv.TOKENS_ESTIMATED not in found


@pytest.mark.parametrize(
    "spelling",
    [
        pytest.param(
            {
                "prompt_tokens": 10,
                "completion_tokens": 6,
                "prompt_tokens_details": {"cached_tokens": 8},
                "completion_tokens_details": {"reasoning_tokens": 2},
            },
            id="chat",
        ),
        pytest.param(
            {
                "input_tokens": 10,
                "output_tokens": 6,
                "input_tokens_details": {"cached_tokens": 8},
                "output_tokens_details": {"reasoning_tokens": 2},
            },
            id="responses",
        ),
    ],
)
def test_usage_is_read_in_every_spelling(spelling):
    """Cached tokens are part of the prompt and reasoning tokens part of the output; nothing is added."""
    clock = play((1, delta("a", finish="stop")), (2, {"choices": [], "usage": spelling}))
    found = clock.attributes()

    assert [
        found[key]
        for key in (
            semconv.INPUT_TOKENS,
            semconv.OUTPUT_TOKENS,
            semconv.CACHED_TOKENS,
            semconv.REASONING_TOKENS,
        )
    ] == [10, 6, 8, 2]


@pytest.mark.parametrize("bad", [None, -1, "7", True, float("nan"), [], {}])
def test_an_implausible_count_is_no_count(bad):
    """Null, negative, textual and boolean counts are absent, never zero."""
    clock = play((1, delta("a", finish="stop")), (2, {"choices": [], "usage": {"prompt_tokens": bad}}))

    assert semconv.INPUT_TOKENS not in clock.attributes()


def test_gaps_are_bounded_and_evenly_thinned():
    """A long answer keeps every k-th gap, so that their distribution stays what it is."""
    clock = play(*((i, "x") for i in range(5 * MAX_GAPS)))
    found = clock.attributes()

    assert len(found[semconv.CHUNK_GAPS_NS]) <= MAX_GAPS
    assert set(found[semconv.CHUNK_GAPS_NS]) == {MS}
    assert found[semconv.CHUNKS] == 5 * MAX_GAPS


def test_attributes_may_be_asked_for_at_any_time():
    """Asking in the middle changes nothing of what follows."""
    clock = TokenClock(0)
    clock.feed(1, "a")
    first = clock.attributes()
    clock.feed(3, "b")

    assert first[semconv.CHUNKS] == 1
    assert clock.attributes() == clock.attributes()
    assert clock.attributes()[semconv.CHUNK_GAPS_NS] == [2]


def test_a_whole_answer_has_counts_and_no_token_times():
    """An answer that was not streamed has usage, ids and finish reason, and no TTFT or TPOT."""
    clock = TokenClock(0)
    clock.read_whole(
        {
            "id": "r1",
            "model": "tiny",
            "choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2},
        }
    )

    assert clock.attributes() == {
        semconv.INPUT_TOKENS: 3,
        semconv.OUTPUT_TOKENS: 2,
        semconv.RESPONSE_ID: "r1",
        semconv.RESPONSE_MODEL: "tiny",
        semconv.FINISH_REASONS: ["stop"],
    }


ODD_ITEMS = [
    {"choices": None},
    {"choices": [None, 3, "x"]},
    {"choices": [{"delta": 5}]},
    {"usage": 7},
    {"usage": {"completion_tokens": -4}},
    {"error": None},
    SimpleNamespace(choices=[SimpleNamespace(delta=None, index="x", finish_reason=3)]),
    SimpleNamespace(content=[]),
    Hostile(),
]
PLAIN_ITEMS = ["", "x", b"y", None, 0, {}, {"a": 1}]
CHUNKS = [
    delta(role="assistant"),
    delta("a"),
    delta(reasoning="r"),
    delta("b", index=3),
    delta("c", finish="stop"),
    usage(4, 2),
    usage(4, 0),
]
ITEMS = st.sampled_from(ODD_ITEMS + PLAIN_ITEMS + CHUNKS)


@given(st.lists(st.tuples(st.integers(0, 50), ITEMS)), st.integers(0, 10))
def test_the_times_of_any_stream_are_ordered(steps, send_ns):
    """TTFB <= TTFT <= first answer <= last token, gaps are not negative, and nothing ever raises."""
    clock, now_ns = TokenClock(send_ns), send_ns
    for step_ns, item in steps:
        now_ns += step_ns
        clock.feed(now_ns, item)
    clock.finish()
    found = clock.attributes()

    times = [
        found.get(key) for key in (semconv.TTFB_NS, semconv.TTFT_NS, semconv.TTFA_NS, semconv.LAST_TOKEN_NS)
    ]
    known = [t for t in times if t is not None]
    assert known == sorted(known)
    assert all(0 <= t <= now_ns - send_ns for t in known)
    assert all(gap >= 0 for gap in found.get(semconv.CHUNK_GAPS_NS, []))
    assert found.get(semconv.TPOT_NS, 0) >= 0
    assert (times[1] is None) == (clock.n_chunks == 0)
    assert clock.status in {"ok", "error", "truncated"}


def test_one_chunk_with_its_end_token_is_a_short_answer_not_a_buffered_one():
    """A single chunk and an end token say nothing of buffering, and give no time per token."""
    clock = TokenClock(0)
    clock.feed(5, {"choices": [{"delta": {"content": "Yes"}, "finish_reason": "stop"}]})
    clock.feed(6, {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}})

    attributes = clock.attributes()

    assert semconv.BUFFERED not in attributes
    assert semconv.TPOT_NS not in attributes
    assert attributes[semconv.TTFT_NS] == 5
