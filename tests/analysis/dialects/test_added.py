"""What a program, or a library, writes onto Hotspan's own spans."""

import pytest

from hotspan.analysis.dialects import translate
from hotspan.analysis.dialects.added import has_more
from hotspan.tracer import semconv
from hotspan.tracer.record import Event, Scope
from hotspan.tracer.testing import build_trace

MS = 1_000_000
CHUNK = "gen_ai.response.time_to_first_chunk"


def own(said, *, stage="generation", status="unset", events=()):
    """Return one of our spans, of 300 ms, inside a request."""
    trace = build_trace(
        ("r", 0, 400 * MS),
        ("c", 0, 300 * MS, "r"),
        stages={"r": "request", "c": stage},
        attributes={"c": said},
    )
    spans = [span._replace(scope=Scope("hotspan")) for span in trace.spans]
    return [spans[0], spans[1]._replace(status=status, events=tuple(events))]


@pytest.mark.parametrize(
    ("said", "events", "found"),
    [
        pytest.param({"llm.token_count.prompt": 9}, (), {semconv.INPUT_TOKENS: 9}, id="openinference"),
        pytest.param({"gen_ai.usage.completion_tokens": 2}, (), {semconv.OUTPUT_TOKENS: 2}, id="of-old"),
        pytest.param({"llm.model_name": "m"}, (), {semconv.REQUEST_MODEL: "m"}, id="model"),
        pytest.param({"ttft_ms": 80}, (), {semconv.TTFT_NS: 80 * MS}, id="first-token"),
        pytest.param({CHUNK: 0.08}, (), {semconv.FIRST_CHUNK_NS: 80 * MS}, id="first-chunk-by-hand"),
        pytest.param(
            {}, (Event("gen_ai.content.chunk", 80 * MS),), {semconv.FIRST_CHUNK_NS: 80 * MS}, id="event"
        ),
    ],
)
def test_figures_under_other_names_are_read_on_our_own_calls(said, events, found):
    """A client that Hotspan does not know, in a `hotspan.generation` block that says what it did."""
    call = translate(own(said, events=events))[1]

    assert call.attributes.items() >= found.items()


def test_our_own_stamps_and_counts_come_first():
    """Another library that writes onto the current span knows no better."""
    said = {
        semconv.TTFT_NS: 70 * MS,
        semconv.TTFB_NS: 60 * MS,
        CHUNK: 0.06,
        semconv.INPUT_TOKENS: 9,
        "ttft_ms": 80,
        "gen_ai.usage.prompt_tokens": 8,
    }

    assert translate(own(said))[1].attributes == said | {semconv.STAGE: "generation"}


@pytest.mark.parametrize("stage", ["request", "agent", "retrieval"])
def test_what_a_callback_writes_onto_the_span_around_it_is_no_figure_of_that(stage):
    """LiteLLM's callback writes of a call onto the current span, whichever that is."""
    spans = own({"gen_ai.usage.prompt_tokens": 8, "ttft_ms": 80}, stage=stage)

    assert translate(spans) is spans


@pytest.mark.parametrize(
    ("error", "status", "outcome"),
    [
        pytest.param("asyncio.exceptions.CancelledError", "error", semconv.CANCELLED, id="cancelled"),
        pytest.param("GeneratorExit", "error", semconv.ABANDONED, id="abandoned"),
        pytest.param("ValueError", "error", None, id="failed"),
        pytest.param("asyncio.exceptions.CancelledError", "unset", None, id="handled"),
    ],
)
def test_an_exception_that_the_program_recorded_tells_how_it_ended(error, status, outcome):
    """`record_exception` and a status of its own; an exception without that was handled."""
    events = (Event("exception", 200 * MS, {"exception.type": error}),)
    call = translate(own({}, status=status, events=events, stage="tool"))[1]

    assert call.attributes.get(semconv.OUTCOME) == outcome
    assert call.status == ("unset" if outcome else status)


@pytest.mark.parametrize(
    ("said", "events"),
    [
        pytest.param({semconv.TTFB_NS: 60 * MS, CHUNK: 0.06}, (), id="a-stream"),
        pytest.param({semconv.TTFT_NS: 60 * MS}, (Event("hotspan.attempt", 5),), id="a-retry"),
        pytest.param({semconv.INPUT_TOKENS: 3, "answer": 42}, (), id="a-users-own-attribute"),
    ],
)
def test_what_hotspan_writes_itself_costs_a_look(said, events):
    """Nothing is translated where nothing was added."""
    spans = own(said, events=events)

    assert not any(has_more(span) for span in spans)
    assert translate(spans) is spans
