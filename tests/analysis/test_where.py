"""A part of a run: which conditions can be written, and what is kept and counted under them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_traces import MS, Call, answer, engine, many, request

from hotspan.analysis import analyse
from hotspan.analysis.calls import NOT_SELECTED
from hotspan.analysis.selection import select
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


def test_what_was_not_selected_still_tells_what_others_are():
    """The client's request below a model call that was left out is no model call of its own."""
    url = {"http.request.method": "POST", "url.full": "http://localhost/v1/chat/completions"}
    chat = Call(None, "chat tiny", 40, 90, {semconv.OPERATION: "chat"})
    trace = request(
        1, 100, Call("tool", "tool", 0, 40), chat, Call(None, "POST", 41, 89, url, inside="chat tiny")
    )

    report = analyse(select([trace], parse_where(["stage=tool"])))

    assert [(row.stage, row.critical_path_ratio) for row in report.stages] == [("tool", pytest.approx(0.4))]
    assert report.selection.other_ratio == pytest.approx(0.5)
    assert report.unattributed.critical_path_ratio == pytest.approx(0.1)
    assert report.generation.n_calls == 0
    assert [item.change for item in report.what_if] == ["tool x0.5", "tool removed"]


def test_an_agent_that_was_not_selected_is_no_call_of_the_agents_row():
    """Its own time stays unattributed, and the row is that of the selected runs."""
    writer = Call("agent", "writer", 0, 40, {semconv.AGENT_NAME: "writer"})
    editor = Call("agent", "editor", 40, 90, {semconv.AGENT_NAME: "editor"})
    trace = request(1, 100, writer, answer(0, 30, inside="writer"), editor)

    report = analyse(select([trace], parse_where(["name=editor"])))

    (row,) = report.stages
    assert (row.stage, row.n_calls, row.busy_ns, row.self_ns) == ("agent", 1, 50 * MS, 50 * MS)
    assert report.unattributed.critical_path_ratio == pytest.approx(0.7)
    assert report.selection.other_ratio == pytest.approx(0.3)


_URL = {"http.request.method": "POST", "url.full": "http://localhost/v1/chat/completions"}
_calls = st.builds(
    lambda stage, name, start, duration, attributes: Call(stage, name, start, start + duration, attributes),
    st.sampled_from([None, "tool", "generation", "embedding", "retrieval", "agent"]),
    st.sampled_from(["a", "b", "POST", "chat tiny"]),
    st.integers(0, 250),
    st.integers(0, 150),
    st.sampled_from([{}, _URL, {semconv.OPERATION: "chat"}, {"openinference.span.kind": "AGENT"}]),
)


@st.composite
def _traces(draw):
    """Requests of calls beside and inside each other, some of which say no stage themselves."""
    traces = []
    for number in range(1, draw(st.integers(2, 4))):
        found = [
            replace(call, name=f"{call.name}{k}") for k, call in enumerate(draw(st.lists(_calls, max_size=6)))
        ]
        placed = [
            replace(call, inside=draw(st.sampled_from([None, *(other.name for other in found[:k])])))
            for k, call in enumerate(found)
        ]
        traces.append(request(number, 300, *placed))
    return traces


@settings(max_examples=150, deadline=None)
@given(
    _traces(), st.sampled_from(["name~a", "name!~b", "duration>50ms", "outcome=ok", "stage!=tool", "stage~e"])
)
def test_rows_unattributed_and_not_selected_are_the_whole(traces, where):
    """Whatever the condition, on spans of any dialect: no time is lost, none is counted twice."""
    report = analyse(select(traces, parse_where([where])))

    if report.request.n:
        shares = [row.critical_path_ratio or 0.0 for row in report.stages]
        rest = report.unattributed.critical_path_ratio + report.selection.other_ratio
        assert sum(shares) + rest == pytest.approx(1)


@settings(max_examples=100, deadline=None)
@given(_traces())
def test_a_selected_stage_has_the_row_it_has_in_the_whole_report(traces):
    """Its calls are found in the whole trace, and selected afterwards."""
    for row in analyse(traces).stages:
        (same,) = analyse(select(traces, parse_where([f"stage={row.stage}"]))).stages

        assert same.stage == row.stage
        for figure in (
            "n_calls",
            "n_errors",
            "busy_ns",
            "wall_ns",
            "self_ns",
            "critical_path_ns",
            "duration_ns",
        ):
            assert getattr(same, figure) == getattr(row, figure), figure


@pytest.mark.parametrize(
    ("where", "at"),
    [
        ("stage==rerank", 6),
        ("stage=tool and request.=x", 23),
        ("outcome=bla", 8),
        ("request.duration>2s|3s", 17),
    ],
)
def test_the_mark_is_below_the_place(where, at):
    """At the first letter that cannot be read, however many conditions stand before it."""
    with pytest.raises(ConfigurationError) as caught:
        parse_where([where])

    assert str(caught.value).splitlines()[2] == " " * (2 + at) + "^"


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("", "a condition is expected"),
        ("stage", "a condition is expected"),
        ("stage=", "a value is expected"),
        ("stage==rerank", "a value is expected"),
        ("request.=x", "a field is expected"),
        ("outcome=bla", "'bla' is no outcome: there are ok, error"),
        ("request.outcome!=ok|bla", "'bla' is no outcome"),
        ("request.duration>2s|3s", "takes one value"),
        ("top_k>=2|3", "takes one value"),
        ("stage=rerank or stage=tool", "'and', ',' or the end is expected"),
        ("stage=rerank and", "a condition is expected"),
        ("duration>5", "'5' is no duration"),
        ("duration>5 parsecs", "'5' is no duration"),
        ("duration=5ms", "compared with >"),
        ("top_k>many", "no number"),
        ("stage='rerank", "a value is expected"),
    ],
)
def test_what_cannot_be_read_is_shown(where, says):
    """The message has the expression, a mark below the place, and what to write."""
    with pytest.raises(ConfigurationError) as caught:
        parse_where([where])

    assert says in str(caught.value)
    assert f"\n  {where}\n" in str(caught.value)
    assert "stage=rerank, duration>500ms" in str(caught.value)
