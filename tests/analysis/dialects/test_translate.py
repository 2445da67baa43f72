"""One pass over a trace: other writers' figures, attempts, endings and failures under our keys."""

from __future__ import annotations

import pytest
from dialect_spans import MS, translated

from hotspan.analysis.dialects import translate
from hotspan.tracer import semconv
from hotspan.tracer.record import Event, Scope
from hotspan.tracer.testing import build_trace

CHAT = {"gen_ai.operation.name": "chat"}
LLM = {"openinference.span.kind": "LLM"}
CHUNK = "gen_ai.response.time_to_first_chunk"


def test_our_own_spans_are_handed_on_as_they_are():
    """A trace of Hotspan's costs a look at each span, and nothing is copied."""
    trace = build_trace(("r", 0, 10), ("g", 0, 5, "r"), stages={"r": "request", "g": "generation"})

    assert translate(trace.spans) is trace.spans


def test_figures_are_written_beside_what_was_there():
    """The writer's own attributes stay."""
    said = LLM | {"llm.token_count.prompt": 9, "llm.model_name": "m"}
    found = translated(("c", 0, 100), attributes={"c": said})["c"]

    assert found.attributes == said | {semconv.INPUT_TOKENS: 9, semconv.REQUEST_MODEL: "m"}


def test_sums_on_an_agent_are_no_figures_of_a_call():
    """Tokens that an agent's span repeats are left where they are."""
    said = {"openinference.span.kind": "AGENT", "llm.token_count.prompt": 9}

    assert translated(("a", 0, 100), attributes={"a": said})["a"].attributes == said


def log(at, seconds, tokens):
    """Return a log of Logfire's that ends a stream."""
    said = {"logfire.span_type": "log", "duration": seconds, "gen_ai.usage.output_tokens": tokens}
    return (at, CHAT | {"gen_ai.request.model": "m"} | said)


def test_a_stream_ends_with_its_log_and_knows_its_answer():
    """Two calls at once: each log goes to the call whose headers came when its reading began.

    a      |--|...........|log
    b       |----|....................|log
    """
    chat = CHAT | {"gen_ai.request.model": "m"}
    (end_a, said_a), (end_b, said_b) = log(200, 0.17, 20), log(300, 0.25, 30)
    found = translated(
        ("root", 0, 310),
        ("a", 0, 30, "root"),
        ("b", 2, 50, "root"),
        ("log b", end_b, end_b, "root"),
        ("log a", end_a, end_a, "root"),
        attributes={"a": chat, "b": chat, "log a": said_a, "log b": said_b},
        scopes=dict.fromkeys(("a", "b", "log a", "log b"), "logfire.openai"),
    )

    assert [(found[name].end_ns, found[name].attributes[semconv.OUTPUT_TOKENS]) for name in "ab"] == [
        (200 * MS, 20),
        (300 * MS, 30),
    ]


def test_a_log_whose_numbers_are_texts_ends_a_stream_too():
    """Some collectors keep every attribute as a text."""
    said = {"logfire.span_type": "log", "duration": "0.17", "gen_ai.usage.output_tokens": "20"}
    chat = CHAT | {"gen_ai.request.model": "m"}
    found = translated(
        ("root", 0, 310),
        ("a", 0, 30, "root"),
        ("log", 200, 200, "root"),
        attributes={"a": chat, "log": chat | said},
        scopes=dict.fromkeys(("a", "log"), "logfire.openai"),
    )["a"]

    assert (found.end_ns, found.attributes[semconv.OUTPUT_TOKENS]) == (200 * MS, 20)


CHUNK_EVENT = "First Token Stream Event"


@pytest.mark.parametrize(
    ("said", "times", "end", "is_cut_short"),
    [
        pytest.param(LLM, (90,), 90, True, id="the-first-chunk-after-the-end"),
        pytest.param(LLM, (20, 90), 90, False, id="the-last-one"),
        pytest.param(LLM, (20,), 30, False, id="none"),
        pytest.param(LLM, (-5,), 30, False, id="before-the-start"),
        pytest.param({"openinference.span.kind": "CHAIN"}, (90,), 30, False, id="no-model-call"),
    ],
)
def test_a_span_that_ends_when_its_stream_is_made_goes_on_to_the_last_chunk(said, times, end, is_cut_short):
    """LlamaIndex's spans are over before anything came; where the stream ended nothing tells."""
    events = [Event(CHUNK_EVENT, at * MS) for at in times]
    found = translated(("c", 0, 30), attributes={"c": said}, events={"c": events})["c"]

    assert found.end_ns == end * MS
    assert (semconv.CUT_SHORT in found.attributes) is is_cut_short


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), "long", None])
def test_a_log_without_a_duration_ends_nothing(seconds):
    """Any value may stand under the key."""
    at, said = log(200, seconds, 20)
    found = translated(
        ("root", 0, 310),
        ("a", 0, 30, "root"),
        ("log", at, at, "root"),
        attributes={"a": CHAT | {"gen_ai.request.model": "m"}, "log": said},
        scopes=dict.fromkeys(("a", "log"), "logfire.openai"),
    )

    assert found["a"].end_ns == 30 * MS


@pytest.mark.parametrize(
    ("scope", "said", "events", "status"),
    [
        pytest.param("app", {"error.type": "TimeoutError"}, [], "error", id="error-type"),
        pytest.param("langfuse-sdk", {"langfuse.observation.level": "ERROR"}, [], "error", id="level"),
        pytest.param("x", {"gen_ai.task.status": "failure"}, [], "error", id="openllmetry-task"),
        pytest.param("langsmith", {}, [Event("exception", 60 * MS)], "error", id="langsmith-exception"),
        pytest.param("app", {}, [Event("exception", 5 * MS)], "ok", id="an-exception-that-was-handled"),
        pytest.param("langfuse-sdk", {"langfuse.observation.level": "WARNING"}, [], "ok", id="a-warning"),
    ],
)
def test_an_error_that_the_status_hides(scope, said, events, status):
    """Each writer has its own place for it; an event alone is not one in general."""
    found = translated(
        ("c", 0, 50), attributes={"c": said}, scopes={"c": scope}, status={"c": "ok"}, events={"c": events}
    )

    assert found["c"].status == status


SAYING_GENERATION = [
    pytest.param(CHAT, id="operation"),
    pytest.param(LLM, id="openinference"),
    pytest.param({"traceloop.span.kind": "llm"}, id="traceloop"),
    pytest.param({semconv.STAGE: semconv.GENERATION}, id="ours"),
    pytest.param({semconv.STAGE: semconv.GENERATION} | CHAT, id="ours-and-operation"),
]


@pytest.mark.parametrize("stage", SAYING_GENERATION)
@pytest.mark.parametrize(
    ("said", "key"),
    [
        ({CHUNK: 0.08}, semconv.FIRST_CHUNK_NS),
        ({"ttft_ms": 80}, semconv.TTFT_NS),
        ({"gen_ai.server.time_to_first_token": 0.08}, semconv.TTFT_NS),
        ({"gen_ai.response.time_to_first_token": 0.08}, semconv.TTFT_NS),
    ],
)
def test_first_tokens_are_read_whatever_says_that_it_is_a_model_call(stage, said, key):
    """The figure does not depend on the attribute that decided the stage."""
    found = translated(("c", 0, 300), attributes={"c": stage | said})["c"]

    assert found.attributes[key] == 80 * MS


def test_our_own_first_token_comes_before_any_other():
    """Who has measured it from the send knows better."""
    said = {semconv.STAGE: semconv.GENERATION, semconv.TTFT_NS: 70 * MS, "ttft_ms": 80, CHUNK: 0.06}

    assert translated(("c", 0, 300), attributes={"c": said})["c"].attributes == said


def test_a_stage_that_is_no_model_call_has_no_first_token():
    """An agent may repeat what its call measured."""
    said = {semconv.STAGE: semconv.AGENT, "ttft_ms": 80}

    assert translated(("a", 0, 300), attributes={"a": said})["a"].attributes == said


AGENTS = "openinference.instrumentation.openai_agents"


@pytest.mark.parametrize(
    ("kind", "starts", "root_fails"),
    [
        pytest.param("LLM", 50, True, id="the-last-thing"),
        pytest.param("LLM", 10, False, id="not-the-last-thing"),
        pytest.param("TOOL", 50, False, id="a-tool"),
    ],
)
def test_of_a_writer_whose_outer_spans_stay_ok_the_last_failure_goes_up(kind, starts, root_fails):
    """A run of the Agents SDK is OK whatever happened inside; an agent survives a tool's failure."""
    found = translated(
        ("trace", 0, 100),
        ("turn", 0, 90, "trace"),
        ("other", 30, 40, "turn"),
        ("call", starts, 80, "turn"),
        attributes={"call": {"openinference.span.kind": kind}},
        scopes=dict.fromkeys(("trace", "turn", "other", "call"), AGENTS),
        status={"call": "error"},
    )

    assert (found["trace"].status == "error") is root_fails


@pytest.mark.parametrize(
    ("said", "parent", "fails"),
    [
        pytest.param({}, "error", True, id="no-answer"),
        pytest.param({"gen_ai.usage.output_tokens": 3}, "error", False, id="an-answer"),
        pytest.param({}, "unset", False, id="nothing-failed"),
    ],
)
def test_a_call_without_an_answer_below_a_failed_run_is_what_failed(said, parent, fails):
    """Pydantic AI writes no status on a model call that could not connect."""
    found = translated(
        ("run", 0, 100),
        ("chat", 0, 90, "run"),
        attributes={"chat": CHAT | said},
        scopes=dict.fromkeys(("run", "chat"), "pydantic-ai"),
        status={"run": parent},
    )

    assert (found["chat"].status == "error") is fails


def nat(kind, name):
    """Return the attributes of a step of NeMo Agent Toolkit."""
    return {"nat.span.kind": kind, "nat.subspan.name": name}


def test_a_step_belongs_to_what_ran_when_it_began():
    """A later turn names the first one, which is over, and the second of two tools names the first.

    workflow |-----------------------------------------|
    agent     |----|
    tool a           |-----------|
    tool b              |---|
    agent                          |-------|
    """
    found = translated(
        ("w", 0, 1000),
        ("g", 1, 990, "w"),
        ("agent1", 10, 200, "g"),
        ("a", 300, 600, "agent1"),
        ("b", 400, 500, "a"),
        ("agent2", 700, 900, "agent1"),
        attributes={
            "w": nat("WORKFLOW", "react_agent"),
            **dict.fromkeys(("g", "agent1", "agent2"), nat("FUNCTION", "x")),
            **dict.fromkeys("ab", nat("TOOL", "calculate")),
        },
        scopes=dict.fromkeys(("w", "g", "agent1", "agent2", "a", "b"), "nat"),
    )

    assert {name: span.parent_id for name, span in found.items()} == {
        "w": None,
        "g": "w",
        "agent1": "g",
        "a": "g",
        "b": "g",
        "agent2": "g",
    }


def test_a_step_without_an_end_has_failed():
    """The toolkit writes an end when all went well; the last thing known of the run is when it was over."""
    trace = build_trace(("w", 0, 1000), ("m", 10, 20, "w"), ("f", 10, 900, "w"))
    said = {"w": nat("WORKFLOW", "rag"), "m": nat("LLM", "tiny"), "f": nat("FUNCTION", "f")}
    written = [
        span._replace(
            end_ns=span.end_ns if span.name == "f" else None, attributes=said[span.name], scope=Scope("nat")
        )
        for span in trace.spans
    ]

    found = {span.name: span for span in translate(written)}

    assert [(found[name].end_ns, found[name].status) for name in "wmf"] == [
        (900, "error"),
        (900, "error"),
        (900, "unset"),
    ]


def test_loops_of_parents_are_no_danger():
    """The pass comes before the repair cuts them."""
    found = translated(
        ("a", 0, 100, "b"),
        ("b", 0, 90, "a"),
        ("c", 0, 90, "c"),
        ("d", 0, 90, "e"),
        ("e", 0, 0, "d"),
        scopes=dict.fromkeys("abc", AGENTS) | dict.fromkeys("de", "nat"),
        status={"a": "error"},
    )

    assert set(found) == set("abcde")
