"""What a report says of stages that were guessed, and of calls that nothing wrote down."""

from hotspan.analysis import analyse
from hotspan.tracer.record import Event, Trace
from hotspan.tracer.testing import build_trace

OPERATION = "gen_ai.operation.name"


def warnings(*spans, **attributes):
    """Return what a report of one trace warns of."""
    return analyse([build_trace(*spans, attributes=attributes)]).evidence.warnings


def test_guesses_are_counted_and_named():
    """A reader can see from what names a stage came, cut where they are long."""
    name = "retrieve " + "x" * 40

    found = warnings(("ask", 0, 100), (name, 0, 50, "ask"), ("m", 50, 90, "ask"), m={OPERATION: "chat"})

    assert found == (f"stages guessed from the name or address of a span: 1 ({name[:30]!r})",)


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


def test_first_tokens_after_the_end_of_their_call_are_counted():
    """A reader who misses the figure is told why it is not there."""
    said = {OPERATION: "chat", "ttft_ms": 1e9}
    found = warnings(("run", 0, 900), ("m", 0, 800, "run"), m=said)

    assert len(found) == 1
    assert found[0].startswith(
        "model calls whose first token came after their end, by what the spans say: 1;"
    )
