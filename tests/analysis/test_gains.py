"""What only the twin of a call measured is the call's, and whose measure it is is said."""

import pytest

from hotspan.analysis import analyse
from hotspan.tracer import semconv
from hotspan.tracer.record import Resource, Scope, SpanRecord, Trace

MS = 1_000_000
START = 1_700_000_000_000_000_000
PROCESS = Resource({"service.name": "app", "process.pid": 7})
CHUNK = "gen_ai.response.time_to_first_chunk"
SAID = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "m",
    "gen_ai.usage.input_tokens": 46,
    "gen_ai.usage.output_tokens": 11,
}
OWN = {semconv.STAGE: semconv.GENERATION}


def span(trace, name, scope, times, **said):
    """Return a span, in milliseconds; a call says what all calls here say."""
    common, parent = ({}, None) if name == "ask" else (SAID, "ask" if trace == "1" else None)
    begun, over = (START + at * MS for at in times)
    attributes = {**common, **{key.replace("__", "."): value for key, value in said.items()}}
    return SpanRecord(
        trace, name, parent, name, begun, over, attributes, resource=PROCESS, scope=Scope(scope)
    )


def asked(*calls):
    """Return a request's trace with the calls in it."""
    return Trace("1", [span("1", "ask", "app", (0, 1000)), *calls])


def with_own(call, attributes):
    """Return the call with attributes of Hotspan's, and under its scope."""
    return call._replace(attributes={**call.attributes, **OWN, **attributes}, scope=Scope("hotspan"))


KEPT = span("1", "chat", "openai_v2", (100, 300))
ALONE = Trace("2", [span("2", "llm", "langfuse", (102, 299), gen_ai__response__time_to_first_chunk=0.08)])


@pytest.mark.parametrize("order", [1, -1], ids=["behind", "before"])
def test_the_kept_call_gains_its_twins_first_chunk(order):
    """Whichever came first: counted from the kept call's own start, and said."""
    report = analyse([asked(KEPT), ALONE][::order])

    assert (report.generation.n_calls, report.request.n) == (1, 1)
    assert report.generation.first_chunk_ns.p50 == 82 * MS
    (warning,) = report.evidence.warnings
    assert "only the span that was left out tells: 1; it is shown as langfuse measured it" in warning


def test_a_sibling_is_a_twin_too():
    """Side by side in one trace, where a library lost the parent."""
    other = span("1", "llm", "langfuse", (102, 299), gen_ai__response__time_to_first_chunk=0.08)
    report = analyse([asked(KEPT, other)])

    assert (report.generation.n_calls, report.generation.first_chunk_ns.p50) == (1, 82 * MS)


def test_first_and_last_token_divide_the_call_into_phases():
    """Hotspan's span lost its parent, another library's did not: the stream is the same.

    kept   |--------------------|      100 to 300
    twin    |---------x------x-|       102 to 299: sent at 112, first token 182, last 282
    """
    stamps = {semconv.SEND_OFFSET_NS: 10 * MS, semconv.TTFT_NS: 70 * MS, semconv.LAST_TOKEN_NS: 170 * MS}
    twin = with_own(span("2", "llm", "", (102, 299)), stamps)
    report = analyse([asked(KEPT), Trace("2", [twin])])
    (row,) = (row for row in report.stages if row.stage == "generation")

    assert {phase.name: phase.mean_ns / MS for phase in row.phases if phase.mean_ns} == {
        "first_token_wait": 82,
        "decode": 100,
        "stream_overhead": 18,
    }
    assert (report.generation.ttft_ns.p50, report.generation.tpot_ns.p50) == (82 * MS, 10 * MS)


@pytest.mark.parametrize(
    ("kept", "twin"),
    [
        pytest.param({"ttft_ms": 90}, {CHUNK: 0.08}, id="it-knows-its-first-token"),
        pytest.param({CHUNK: 0.09}, {CHUNK: 0.08}, id="it-knows-its-first-chunk"),
        pytest.param({}, {}, id="nobody-knows"),
    ],
)
def test_what_the_call_says_itself_stays(kept, twin):
    """Two measures of one thing are not mixed."""
    call = KEPT._replace(attributes={**KEPT.attributes, **kept})
    other = span("2", "llm", "langfuse", (102, 299))
    report = analyse([asked(call), Trace("2", [other._replace(attributes={**other.attributes, **twin})])])
    found = report.generation.ttft_ns or report.generation.first_chunk_ns

    assert (found and found.p50) == (90 * MS if kept else None)
    assert report.evidence.n_twin_spans == 1
    assert not [said for said in report.evidence.warnings if "written twice" in said]


def test_a_moment_outside_the_call_is_not_gained():
    """The span that was left out began first, and its headers came before the kept one's start."""
    early = span("2", "llm", "langfuse", (90, 310), gen_ai__response__time_to_first_chunk=0.005)
    report = analyse([asked(KEPT), Trace("2", [early])])

    assert (report.generation.n_calls, report.generation.first_chunk_ns) == (1, None)
    assert not report.evidence.warnings


def test_every_call_gains_its_own():
    """Two calls at once, of one start, are told apart by their ends."""
    second = span("1", "chat 2", "openai_v2", (100, 400))
    alone = [
        Trace(
            str(end),
            [span(str(end), "llm", "langfuse", (101, end), gen_ai__response__time_to_first_chunk=at)],
        )
        for end, at in ((399, 0.2), (299, 0.1))
    ]
    chunks = analyse([asked(KEPT, second), *alone]).generation.first_chunk_ns

    assert (chunks.n, chunks.min / MS, chunks.max / MS) == (2, 101, 201)
