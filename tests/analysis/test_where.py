"""A part of a run: which conditions can be written, and what is kept and counted under them."""

from __future__ import annotations

import pytest
from made_traces import Call, answer, engine, many, request

from hotspan.analysis import analyse
from hotspan.analysis.selection import NOT_SELECTED, select
from hotspan.analysis.where import parse_where
from hotspan.tracer import semconv
from hotspan.tracer.errors import ConfigurationError


def run(number):
    """Odd requests are acme's and take 300 ms, even ones are zoo's and take 600: a search and two answers."""
    is_odd = number % 2
    short = answer(100, 150, attributes={semconv.REQUEST_MODEL: "small"}, name="small")
    long = answer(150, 300 if is_odd else 600, attributes={semconv.REQUEST_MODEL: "large"}, name="large")
    search = Call("retrieval", "search", 0, 100, {"top_k": 20, "cached": number == 1})
    attributes = {"tenant": "acme" if is_odd else "the zoo"}
    return request(number, 300 if is_odd else 600, search, short, long, attributes=attributes)


def kept(*where):
    """The report on ten such requests under conditions."""
    return analyse(select(many(10, run), parse_where(where)))


@pytest.mark.parametrize(
    ("where", "n_requests"),
    [
        ("request.tenant=acme", 5),
        ("request.tenant='the zoo'", 5),
        ("request.tenant!=acme", 5),
        ("request.tenant=acme|'the zoo'", 10),
        ("request.duration>500ms", 5),
        ("request.duration>=0.6s", 5),
        ("request.duration < 1min", 10),
        ("request.tenant ~ ZOO", 5),
        ("request.tenant!~zoo and request.duration>200ms", 5),
        ("request.tenant=acme, request.duration>200ms", 5),
        ("request.outcome=error", 0),
        ("request.nothing!=1", 10),
        ("request.nothing=1", 0),
        ("service=made", 10),
        ("stage=retrieval", 10),
        ("stage=rerank", 0),
        ("name=large,duration>200ms", 5),
        ("top_k=20", 10),
        ("top_k>20", 0),
        ("cached=true", 1),
        ("stage=generation and gen_ai.request.model=large and duration>200ms", 5),
    ],
)
def test_what_can_be_asked(where, n_requests):
    """Fields, operators, values and their alternatives."""
    assert kept(where).request.n == n_requests


def test_several_expressions_hold_together():
    """A repeated option narrows further."""
    assert kept("request.tenant=acme", "request.duration>500ms").request.n == 0


def test_conditions_on_requests_keep_them_whole():
    """All stages, and shares that add up, of the requests that are left; with findings."""
    report = kept("request.tenant='the zoo'")

    assert [row.stage for row in report.stages] == ["request", "generation", "retrieval"]
    assert sum(row.critical_path_ratio or 0 for row in report.stages) == pytest.approx(1)
    assert (report.selection.n_read, report.selection.n_kept, report.selection.has_calls) == (10, 5, False)
    assert report.findings


def test_conditions_on_calls_select_them_and_shares_are_of_the_whole_request():
    """Rows, tokens and percentiles are those of the selected calls; the others are one share beside them."""
    report = kept("gen_ai.request.model=large and duration>200ms")

    (row,) = report.stages
    assert (row.stage, row.n_calls, report.generation.n_calls) == ("generation", 5, 5)
    assert row.critical_path_ratio == pytest.approx(450 / 600)
    assert report.selection.other_ratio == pytest.approx(150 / 600)
    assert report.unattributed.critical_path_ratio == 0
    assert report.findings == ()
    assert all(NOT_SELECTED not in change.change for change in report.what_if)


def test_a_call_is_its_spans_together():
    """A condition may hold for the client's span inside the framework's: they are one call."""
    traces = many(
        3,
        lambda k: request(
            k,
            100,
            answer(0, 100, name="chain"),
            answer(1, 99, name="chat", inside="chain", attributes={semconv.REQUEST_MODEL: "m"}),
            engine(1, 2, 90),
        ),
    )

    report = analyse(select(traces, parse_where(["gen_ai.request.model=m"])))

    assert [(row.stage, row.n_calls) for row in report.stages] == [("generation", 3)]
    assert report.evidence.n_engine_joined == 3


def test_an_engine_s_account_goes_with_its_call():
    """The account of a call that was not selected is not one without a call."""
    rerank = Call("rerank", "rerank", 0, 100)
    traces = many(3, lambda k: request(k, 200, rerank, answer(100, 200), engine(1, 2, 3)))

    report = analyse(select(traces, parse_where(["stage=rerank"])))

    assert (report.evidence.n_engine_spans, report.generation.n_calls) == (0, 0)


def test_what_was_repaired_is_still_said():
    """Conditions change no count of what was wrong with the spans that are left."""
    trace = request(1, 100, Call("tool", "late", 50, 150), Call("rerank", "rerank", 0, 10))

    report = analyse(select([trace], parse_where(["stage=rerank"])))

    assert report.evidence.n_late_spans == 1


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("", "a condition is expected"),
        ("stage", "a condition is expected"),
        ("stage=", "a condition is expected"),
        ("stage=rerank or stage=tool", "'and', ',' or the end is expected"),
        ("stage=rerank and", "a condition is expected"),
        ("duration>5", "'5' is no duration"),
        ("duration>5 parsecs", "'5' is no duration"),
        ("duration=5ms", "compared with >"),
        ("top_k>many", "no number"),
        ("stage='rerank", "a condition is expected"),
    ],
)
def test_what_cannot_be_read_is_shown(where, says):
    """The message has the expression, a mark below the place, and what to write."""
    with pytest.raises(ConfigurationError) as caught:
        parse_where([where])

    assert says in str(caught.value)
    assert f"\n  {where}\n" in str(caught.value)
    assert "stage=rerank, duration>500ms" in str(caught.value)
