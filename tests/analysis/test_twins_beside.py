"""One call that two instrumentations wrote side by side in one trace: its time, its tokens, its attempts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotspan.analysis import analyse
from hotspan.tracer.record import Resource, Scope, SpanRecord, Trace

MS = 1_000_000
START = 1_700_000_000_000_000_000
PROCESS = Resource({"service.name": "app", "process.pid": 7})
TOKENS = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")
OUTER, INNER = "opentelemetry.instrumentation.anthropic", "com.anthropic.sdk.python"


def span(name, times, parent="ask", scope="app", **said):
    """Return a span, its times in milliseconds; its trace and status, and attributes."""
    begun, over = (START + int(at * MS) for at in times)
    trace, status = said.pop("trace", "1"), said.pop("status", "unset")
    found = SpanRecord(trace, name, parent, name, begun, over, said, status=status, scope=Scope(scope))
    return found._replace(resource=PROCESS)


def chat(name, times, scope, tokens=(39, 20), operation="chat", **changed):
    """Return a model call's span that tells these numbers of tokens."""
    told = {key: n for key, n in zip(TOKENS, tokens, strict=True) if n is not None}
    said = {"gen_ai.operation.name": operation, "gen_ai.request.model": "m", **told}
    found = span(name, times, scope=scope, **changed)
    return found._replace(attributes={**found.attributes, **said})


def asked(*spans, trace="1"):
    """Return a request of 200 ms with a search, and these spans."""
    root = span("ask", (0, 200), None, trace=trace, **{"hotspan.stage": "request"})
    search = span("search", (0, 4), trace=trace, **{"hotspan.stage": "retrieval"})
    return Trace(trace, [root, search, *spans])


def row(report, stage="generation"):
    """Return the figures of a stage."""
    return next(row for row in report.stages if row.stage == stage)


def counted(*traces):
    """Return calls, attempts, prompt and output tokens of the generation."""
    generation = analyse(traces).generation
    return generation.n_calls, generation.n_attempts, generation.tokens.prompt, generation.tokens.output


@pytest.mark.parametrize("inner", [(6, 194.9), (6, 195.1), (4.9, 195.1)], ids=["within", "later", "around"])
@pytest.mark.parametrize("order", [1, -1])
def test_the_time_of_both_is_the_stages_own(inner, order):
    """Whichever ends last is on the critical path: the request waited for its model."""
    calls = [chat("outer", (5, 195), OUTER), chat("inner", inner, INNER)]
    report = analyse([asked(*calls[::order])])
    path = row(report).critical_path_ns

    assert (report.generation.n_calls, report.generation.n_attempts) == (1, 1)
    assert report.evidence.n_twin_spans == 1
    assert row(report).critical_path_ratio > 0.94
    assert path + row(report, "retrieval").critical_path_ns + report.unattributed.critical_path_ns == 200 * MS
    assert path <= row(report).wall_ns <= row(report).busy_ns
    assert abs(sum(phase.critical_path_ratio or 0 for phase in row(report).phases) - path / (200 * MS)) < 1e-9


def test_the_longer_one_stays():
    """It is what the caller waited for; the other one lies within it."""
    report = analyse([asked(chat("inner", (7, 194), INNER), chat("outer", (5, 195), OUTER))])

    assert row(report).duration_ns.p50 == 190 * MS


@pytest.mark.parametrize(
    ("inner", "n_calls"),
    [
        pytest.param({}, 1, id="beside"),
        pytest.param({"times": (5, 170)}, 2, id="much-shorter"),
        pytest.param({"times": (6, 196)}, 2, id="not-within"),
        pytest.param({"parent": "search"}, 2, id="elsewhere"),
        pytest.param({"parent": "step"}, 1, id="below"),
        pytest.param({"scope": OUTER}, 2, id="the-same-writer"),
    ],
)
def test_two_that_tell_different_tokens_are_one_only_if_they_are_related(inner, n_calls):
    """Writers count differently; of a stream one writes 21 for 20."""
    said = {"times": (6, 194.8), "scope": INNER} | inner
    step = span("step", (5.5, 194.9), "outer", **{"hotspan.stage": "step"})
    trace = asked(chat("outer", (5, 195), OUTER, (39, 21)), step, chat("inner", **said))

    assert analyse([trace]).generation.n_calls == n_calls


def test_two_that_tell_different_tokens_in_two_traces_are_two():
    """Nothing but the time speaks for one call."""
    alone = Trace("2", [chat("inner", (6, 194.8), INNER, trace="2", parent=None)])

    assert counted(asked(chat("outer", (5, 195), OUTER, (39, 21))), alone)[0] == 2


@pytest.mark.parametrize("tokens", [(0, 20), (39, 0), (39, None)])
@pytest.mark.parametrize("is_alone", [True, False])
def test_what_one_does_not_tell_the_other_one_does(tokens, is_alone):
    """Some writers know no prompt tokens of a stream, and write 0."""
    where = {"trace": "2", "parent": None} if is_alone else {}
    inner = chat("inner", (6, 190), INNER, **where)
    outer = chat("outer", (5, 195), OUTER, tokens)
    traces = [asked(outer), Trace("2", [inner])] if is_alone else [asked(outer, inner)]

    assert counted(*traces) == counted(*traces[::-1]) == (1, 1, 39, 20)


def test_the_tokens_that_both_tell_stay_the_kept_ones():
    """They are not added up."""
    trace = asked(chat("outer", (5, 195), OUTER, (39, 21)), chat("inner", (6, 194.8), INNER))

    assert counted(trace) == (1, 1, 39, 21)


@pytest.mark.parametrize(("is_alone", "n_calls"), [(True, 2), (False, 1)])
def test_one_that_tells_no_tokens_needs_the_same_parent(is_alone, n_calls):
    """In another trace, another call at the same time would look the same."""
    where = {"trace": "2", "parent": None} if is_alone else {}
    inner = chat("inner", (6, 190), INNER, (None, None), **where)
    outer = chat("outer", (5, 195), OUTER)
    traces = [asked(outer), Trace("2", [inner])] if is_alone else [asked(outer, inner)]

    assert counted(*traces)[0] == n_calls


def test_an_embedding_of_which_one_tells_its_tokens():
    """The first one takes longer by the client's imports, which only the outer span sees."""
    outer = chat("outer", (5, 32), "opentelemetry.instrumentation.mistralai", (None, None), "embeddings")
    inner = chat("inner", (13, 31), "mistralai_sdk_tracer", (3, 0), "embeddings")

    assert row(analyse([asked(outer, inner)]), "embedding").n_calls == 1


def test_a_run_of_embeddings_is_as_long_whoever_wrote_them():
    """Calls one after the other, each of which has its twin beside it."""
    outer = [chat(f"outer {n}", (n * 20 + 5, n * 20 + 24), OUTER, operation="embeddings") for n in range(5)]
    inner = [chat(f"inner {n}", (n * 20 + 6, n * 20 + 23), INNER, operation="embeddings") for n in range(5)]
    (run,) = analyse([asked(*outer, *inner)]).patterns.runs

    assert (run.n_calls, run.n_longest, run.total_ns) == (5, 5, 5 * 19 * MS)


@pytest.mark.parametrize("tokens", [(39, 20), (39, 21), (0, 20), (None, None)])
@pytest.mark.parametrize("scopes", [(OUTER, INNER), (OUTER,)])
def test_a_fan_out_of_ten_is_ten_calls(scopes, tokens):
    """Each is written by one, or by two: nearly at one time, all alike."""
    calls = [
        chat(f"{scope} {n}", (5 + n + 0.5 * at, 195 - n - 0.5 * at), scope, (39, 20) if at else tokens)
        for n in range(10)
        for at, scope in enumerate(scopes)
    ]
    found = counted(asked(*calls))

    assert found[:2] == (10, 10)


def test_two_writers_calls_one_after_the_other_are_two():
    """A retry by another client, or two steps of one pipeline."""
    trace = asked(chat("first", (5, 95), OUTER), chat("second", (96, 186), INNER))

    assert counted(trace) == (2, 2, 78, 40)


def test_a_twin_of_another_traces_call_keeps_its_time():
    """The other request waited for the model too, whoever counts the call."""
    traces = [
        asked(chat("outer", (5, 195), OUTER)),
        asked(chat("inner", (6, 195), INNER, trace="2"), trace="2"),
    ]
    report = analyse(traces)

    assert (report.generation.n_calls, report.request.n, report.evidence.n_twin_spans) == (1, 2, 1)
    assert row(report).critical_path_ns == (190 + 189) * MS


FRAMEWORK = chat("framework", (5, 195), "framework")


def test_innermost_spans_of_two_writers_are_one_attempt():
    """A framework's span, and in it two siblings for one request to the model."""
    inside = [
        chat("stream", (50, 194), "openinference.instrumentation.anthropic", (0, 20), parent="framework"),
        chat("create", (51, 193), INNER, parent="framework"),
    ]

    assert counted(asked(FRAMEWORK, *inside)) == (1, 1, 39, 20)


@pytest.mark.parametrize("scopes", [("a", "b"), ("a",)])
def test_a_retry_is_an_attempt_of_its_own(scopes):
    """Both writers see both: the one that failed at once, and the one that answered."""
    inside = [
        chat(f"{scope} {start}", (start + at, end - at), scope, tokens, parent="framework", status=status)
        for start, end, tokens, status in ((10, 20, (None, None), "error"), (60, 190, (39, 20), "unset"))
        for at, scope in enumerate(scopes)
    ]

    assert counted(asked(FRAMEWORK, *inside)) == (1, 2, 39, 20)


def test_attempts_of_one_writer_at_one_time_are_two():
    """A framework that hedges asks twice."""
    inside = [chat(name, (10, 190), "a", parent="framework") for name in ("first", "second")]

    assert counted(asked(FRAMEWORK, *inside)) == (1, 2, 78, 40)


@st.composite
def calls(draw):
    """Draw a model call anywhere in the request, by one of two writers."""
    start, end = sorted((draw(st.integers(0, 40)), draw(st.integers(0, 40))))
    tokens = draw(st.sampled_from([(39, 20), (39, 21), (0, 20), (None, None)]))
    return (start * 5, end * 5), draw(st.sampled_from([OUTER, INNER])), tokens


@given(st.lists(calls(), max_size=7))
@settings(max_examples=60)
def test_shares_add_up_whoever_wrote_the_calls(found):
    """Law 3 holds for twins as well, and every span is a call or the twin of one."""
    trace = asked(*(chat(f"c{n}", *call) for n, call in enumerate(found)))
    report = analyse([trace])
    rows = [row for row in report.stages if row.stage == "generation"]
    path_ns = sum(row.critical_path_ns or 0 for row in report.stages)

    assert path_ns + report.unattributed.critical_path_ns == 200 * MS
    assert sum(row.n_calls for row in rows) + report.evidence.n_twin_spans == len(found)
    assert all(0 <= (row.critical_path_ns or 0) <= row.wall_ns <= row.busy_ns for row in rows)


@pytest.mark.parametrize("between", ["tool", "agent"])
@pytest.mark.parametrize("tokens", [(300, 50), (None, None)])
def test_a_call_below_a_tool_or_an_agent_is_another_call(between, tokens):
    """However long it takes of the call that the tool is of, and whoever wrote it."""
    outer, inner = chat("outer", (5, 195), OUTER, (500, 20)), chat("inner", (6, 194), INNER, tokens)
    tool = span("look up", (5.5, 194.5), "outer", **{"hotspan.stage": between})

    report = analyse([asked(outer, tool, inner._replace(parent_id="look up"))])

    assert (report.generation.n_calls, report.evidence.n_twin_spans) == (2, 0)


def test_calls_at_once_that_agree_in_no_number_are_two():
    """Neither what opens a message nor what was cached makes such a difference in both."""
    calls = [chat("one", (10, 90), OUTER, (500, 20)), chat("other", (11, 86), INNER, (9, 300))]

    assert analyse([asked(*calls)]).generation.n_calls == 2
