"""The first chunk of a call that two libraries wrote, when the outer one alone knows it."""

from __future__ import annotations

import pytest

import hotspan
from hotspan.analysis.dialects import translate
from hotspan.tracer import semconv
from hotspan.tracer.record import Scope, Trace
from hotspan.tracer.testing import build_trace

MS = 1_000_000
CHAT = {"gen_ai.operation.name": "chat"}
CHUNK = CHAT | {"gen_ai.client.operation.time_to_first_chunk": 0.09}


def trace_of(*spans, attributes):
    """Return a trace that others wrote; times are in milliseconds."""
    timed = [(name, start * MS, end * MS, *parent) for name, start, end, *parent in spans]
    trace = build_trace(*timed, attributes=attributes)
    return Trace(trace.trace_id, [span._replace(scope=Scope("app")) for span in trace.spans])


def firsts(trace):
    """Return the first chunk and token of each span in milliseconds, by name."""
    keys = (semconv.FIRST_CHUNK_NS, semconv.TTFT_NS)
    return {
        span.name: tuple(span.attributes[key] / MS if key in span.attributes else None for key in keys)
        for span in translate(trace.spans)
    }


def test_the_innermost_span_has_it_from_its_own_start():
    """Pydantic AI's span tells the first chunk; that of the client below it sent the request later.

    chat    |--------*-------|
    client      |------------|
    """
    trace = trace_of(
        ("root", 0, 300),
        ("chat", 10, 200, "root"),
        ("client", 40, 200, "chat"),
        attributes={"chat": CHUNK, "client": CHAT},
    )
    report = hotspan.analyse([trace])

    assert firsts(trace)["client"] == (60.0, None)
    assert report.generation.first_chunk_ns.p50 == 60 * MS


def test_what_the_inner_span_knows_stays():
    """Only what it lacks is told."""
    said = {
        "chat": CHUNK | {"ttft_ms": 100},
        "client": CHAT | {"gen_ai.response.time_to_first_chunk": 0.005},
    }
    trace = trace_of(("chat", 0, 200), ("client", 10, 200, "chat"), attributes=said)

    assert firsts(trace)["client"] == (5.0, 90.0)


@pytest.mark.parametrize(
    ("middle", "expected"),
    [
        pytest.param({}, 70.0, id="nothing-between"),
        pytest.param({"gen_ai.operation.name": "execute_tool"}, None, id="a-call-of-its-own"),
        pytest.param(CHAT, 70.0, id="three-spans-of-one-call"),
    ],
)
def test_spans_between(middle, expected):
    """A model call below a tool is another one."""
    trace = trace_of(
        ("chat", 0, 200),
        ("middle", 10, 200, "chat"),
        ("client", 20, 200, "middle"),
        attributes={"chat": CHUNK, "middle": middle, "client": CHAT},
    )

    assert firsts(trace)["client"][0] == expected


def test_of_several_attempts_the_last_one_was_answered():
    """The chunk came after the first had failed."""
    trace = trace_of(
        ("chat", 0, 200),
        ("second", 50, 200, "chat"),
        ("first", 10, 30, "chat"),
        attributes={"chat": CHUNK, "first": CHAT, "second": CHAT},
    )
    found = firsts(trace)

    assert (found["first"][0], found["second"][0]) == (None, 40.0)


def test_a_chunk_before_the_request_was_sent_is_not_told():
    """The two do not fit together."""
    said = {"chat": CHUNK, "client": CHAT}
    trace = trace_of(("chat", 0, 200), ("client", 100, 200, "chat"), attributes=said)

    assert firsts(trace)["client"] == (None, None)


@pytest.mark.parametrize("parents", [("b", "a"), ("b", "b")], ids=["loop", "self"])
def test_a_loop_of_parents_ends(parents):
    """Nothing is outermost there."""
    above = dict(zip(("a", "b"), parents, strict=True))
    trace = trace_of(("a", 0, 200), ("b", 10, 200), attributes={"a": CHUNK, "b": CHUNK})
    ids = {span.name: span.span_id for span in trace.spans}
    looped = [span._replace(parent_id=ids[above[span.name]]) for span in trace.spans]

    assert len(translate(looped)) == 2
