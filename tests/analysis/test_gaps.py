"""What a report says of stages that were guessed, and of calls that nothing wrote down."""

import pytest

from hotspan.analysis import analyse
from hotspan.tracer import semconv
from hotspan.tracer.record import Event, Scope, Trace
from hotspan.tracer.testing import build_trace

OPERATION = "gen_ai.operation.name"
MS = 1_000_000
CHAT = {OPERATION: "chat"}


def warnings(*spans, **attributes):
    """Return what a report of one trace warns of."""
    return analyse([build_trace(*spans, attributes=attributes)]).evidence.warnings


def test_guesses_are_counted_and_named():
    """A reader can see from what names a stage came, cut where they are long."""
    name = "retrieve " + "x" * 40

    found = warnings(("ask", 0, 100), (name, 0, 50, "ask"), ("m", 50, 90, "ask"), m={OPERATION: "chat"})

    assert found == (f"stages guessed from the name or address of a span: 1 ({name[:30]!r})",)


def test_a_clients_own_request_is_no_guess():
    """Below a traced call its address tells nothing new."""
    post = {"http.request.method": "POST", "url.full": "http://h/v1/embeddings"}
    spans = [("ask", 0, 100), ("e", 0, 50, "ask"), ("POST", 10, 40, "e"), ("m", 50, 90, "ask")]

    assert not warnings(*spans, e={OPERATION: "embeddings"}, m={OPERATION: "chat"}, POST=post)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param({}, 1, id="nothing-of-the-answer"),
        pytest.param({"gen_ai.usage.output_tokens": 5}, 0, id="its-tokens"),
        pytest.param({"url.full": "http://h/v1/embeddings"}, 0, id="no-model-call"),
        pytest.param({"error.type": "500"}, 0, id="a-failure"),
    ],
)
def test_a_model_call_of_which_only_its_request_is_known_may_be_too_short(said, expected):
    """An HTTP client's span ends when the headers come, and the stream is read after that."""
    post = {"http.request.method": "POST", "url.full": "http://h/v1/chat/completions"} | said
    trace = build_trace(
        ("ask", 0, 100), ("POST", 10, 40, "ask"), ("m", 50, 90, "ask"), attributes={"POST": post, "m": CHAT}
    )
    spans = [span._replace(kind="client") if span.name == "POST" else span for span in trace.spans]

    found = [line for line in analyse([Trace("1", spans)]).evidence.warnings if "requests alone" in line]

    assert [line.split(";")[0] for line in found] == [
        "model calls known from their HTTP requests alone: 1"
    ] * expected


def test_the_number_of_a_run_is_left_out_of_its_name():
    """CrewAI names each run of a flow after its id: one name is enough for all."""
    names = [f"Flow_2e7772bb-72e1-475b-bbd3-a5c37cc5255{number}.retrieve" for number in range(3)]
    steps = [(name, 10 * at, 10 * at + 10, "ask") for at, name in enumerate(names)]

    found = warnings(("ask", 0, 100), *steps, ("m", 50, 90, "ask"), m={OPERATION: "chat"})

    assert found == ("stages guessed from the name or address of a span: 3 ('Flow_….retrieve')",)


def test_agents_without_model_calls_are_a_gap():
    """AutoGen leaves the model calls to others: without them the time looks like nobody's."""
    found = warnings(
        ("run", 0, 100), ("t", 0, 50, "run"), run={OPERATION: "invoke_agent"}, t={OPERATION: "execute_tool"}
    )

    assert len(found) == 1
    assert found[0].startswith("agent runs without a single model call: 1;")


def test_what_is_said_needs_no_word():
    """A trace in which every stage is said and the models have spans is quiet."""
    assert (
        warnings(("run", 0, 100), ("m", 0, 50, "run"), run={OPERATION: "invoke_agent"}, m={OPERATION: "chat"})
        == ()
    )


def test_calls_that_end_before_their_first_chunk_are_counted_once():
    """Their durations are too short, which a reader has to know; a span around the call is the same call."""
    trace = build_trace(
        ("run", 0, 900),
        ("outer", 0, 15, "run"),
        ("m", 5, 10, "outer"),
        attributes={name: {"openinference.span.kind": "LLM"} for name in ("outer", "m")},
    )
    chunk = Event("First Token Stream Event", 90)
    spans = [span._replace(events=(chunk,)) if span.name == "m" else span for span in trace.spans]
    report = analyse([Trace("1", spans)])
    (row,) = (row for row in report.stages if row.stage == "generation")

    assert (row.n_calls, row.duration_ns.p50, report.generation.first_chunk_ns.p50) == (1, 90, 85)
    assert report.evidence.warnings[0].startswith(
        "model calls whose spans ended before their first chunk came: 1;"
    )


@pytest.mark.parametrize(
    ("length", "scope", "is_said"),
    [
        pytest.param(3, "app", True, id="it-ended-before-it-was-read"),
        pytest.param(30, "app", False, id="as-fast-as-a-model-may-be"),
        pytest.param(3, "hotspan", False, id="ours-that-waits"),
    ],
)
def test_calls_that_were_too_fast_for_their_tokens_are_counted(length, scope, is_said):
    """Nothing else tells it where the events of the chunks were dropped; a span around it counts too."""
    said = {OPERATION: "chat", "gen_ai.usage.output_tokens": 20}
    trace = build_trace(
        ("r", 0, 100 * MS),
        ("around", 0, length * MS, "r"),
        ("m", 0, 1 * MS, "around"),
        attributes={"around": {OPERATION: "chat"}, "m": said},
    )
    found = analyse([Trace("1", [span._replace(scope=Scope(scope)) for span in trace.spans])])

    assert any("than any model writes in their time: 1;" in s for s in found.evidence.warnings) is is_said


def test_model_spans_that_made_no_call_are_counted():
    """Either nothing was asked, or a collector lost how it ended; around another call it is a wrapper."""
    scope = Scope("openinference.instrumentation.openai")
    trace = build_trace(
        ("r", 0, 100 * MS),
        ("empty", 0, 20 * MS, "r"),
        ("around", 20 * MS, 90 * MS, "r"),
        ("m", 30 * MS, 80 * MS, "around"),
        attributes={
            "empty": {"openinference.span.kind": "LLM"},
            "around": {"openinference.span.kind": "LLM"},
            "m": {"openinference.span.kind": "LLM", "llm.token_count.completion": 3},
        },
    )
    report = analyse([Trace("1", [span._replace(scope=scope) for span in trace.spans])])

    assert report.generation.n_calls == 1
    assert report.evidence.warnings == (
        "model spans that tell of no answer and of no failure: 1; they are not counted as calls",
    )


@pytest.mark.parametrize(
    ("status", "scope", "is_said"),
    [
        pytest.param("unset", "app", True, id="no-word-of-a-failure"),
        pytest.param("error", "app", False, id="a-failure"),
        pytest.param("unset", "hotspan", False, id="ours-that-knows"),
    ],
)
def test_exceptions_of_calls_that_say_no_failure_are_counted(status, scope, is_said):
    """A collector may have lost the status; else the exception was handled."""
    trace = build_trace(("r", 0, 100), ("m", 0, 50, "r"), attributes={"m": {OPERATION: "execute_tool"}})
    happened = Event("exception", 20, {"exception.type": "TimeoutError"})
    spans = [
        span._replace(events=(happened,), status=status, scope=Scope(scope)) if span.name == "m" else span
        for span in trace.spans
    ]
    found = analyse([Trace("1", spans)]).evidence.warnings

    assert (
        any("recorded an exception and do not say that they failed: 1;" in said for said in found) is is_said
    )


@pytest.mark.parametrize("ttft_ms", [0, 1e9])
def test_first_tokens_at_once_or_after_the_end_of_their_call_are_counted(ttft_ms):
    """A reader who misses the figure is told why it is not there."""
    said = {OPERATION: "chat", "ttft_ms": ttft_ms}
    found = warnings(("run", 0, 900), ("m", 0, 800, "run"), m=said)

    assert len(found) == 1
    assert found[0].startswith(
        "model calls whose first token came after 0 ms, or after their end, by what the spans say: 1;"
    )


@pytest.mark.parametrize(
    ("said", "is_told"),
    [
        ({semconv.TTFT_NS: 10}, True),
        ({semconv.TTFT_NS: 10, semconv.LAST_TOKEN_NS: 40}, False),
        ({semconv.TTFT_NS: 10, semconv.ACCOUNT_SOURCE: "metrics", semconv.ACCOUNT_DECODE_NS: 30}, False),
        ({semconv.TTFT_NS: 10, semconv.OUTCOME: "cancelled"}, False),
        ({}, False),
    ],
)
def test_calls_whose_last_token_is_not_known_are_counted(said, is_told):
    """Their decode looks like measured in a table, and is until their end."""
    found = warnings(("run", 0, 100), ("m", 0, 50, "run"), m={semconv.STAGE: "generation"} | said)

    assert [warning.partition(";")[0] for warning in found] == [
        "model calls whose first token's time is known and not the last one's: 1"
    ] * is_told


def test_an_agent_written_by_two_is_one_run_without_model_calls():
    """Google ADK's run and OpenInference's around it."""
    found = warnings(
        ("agent_run [a]", 0, 100),
        ("invoke_agent a", 0, 90, "agent_run [a]"),
        **{name: {OPERATION: "invoke_agent"} for name in ("agent_run [a]", "invoke_agent a")},
    )

    assert found[0].startswith("agent runs without a single model call: 1;")


@pytest.mark.parametrize(
    ("n_searches", "n_answers", "is_said"),
    [
        pytest.param(2, 3, True, id="as-many"),
        pytest.param(1, 3, False, id="a-few-that-failed-before-the-model"),
        pytest.param(3, 1, False, id="a-few-calls-of-something-else"),
        pytest.param(0, 3, False, id="no-search"),
    ],
)
def test_questions_in_pieces_are_a_gap(n_searches, n_answers, is_said):
    """A library that opens no span around a chain: each of its retrievals and model calls is a trace."""
    search, answer = {OPERATION: "retrieval"}, {OPERATION: "chat"}
    traces = [
        Trace(str(number), build_trace(("x", 0, 100), attributes={"x": said}).spans)
        for number, said in enumerate([search] * n_searches + [answer] * n_answers)
    ]
    found = analyse(traces).evidence.warnings

    assert any(f"one model call and nothing else: {n_answers}" in warning for warning in found) is is_said


def test_agents_whose_calls_lie_beside_them_are_counted():
    """An instrumentation that ends the agent's span when its stream is made, or does not make it current."""
    run = {OPERATION: "invoke_agent"}
    found = warnings(
        ("ask", 0, 100),
        ("a", 0, 1, "ask"),
        ("m", 1, 90, "ask"),
        ("b", 90, 100, "ask"),
        ("m2", 90, 99, "b"),
        a=run,
        b=run,
        m={OPERATION: "chat"},
        m2={OPERATION: "chat"},
    )

    assert len(found) == 1
    assert found[0].startswith("agent runs in which no model call lies, out of 2: 1;")
