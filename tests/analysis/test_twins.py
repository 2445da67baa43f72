"""One call that two instrumentations wrote, in two traces or side by side in one."""

import pytest

from hotspan.analysis import analyse
from hotspan.tracer.record import Resource, Scope, SpanRecord, Trace

MS = 1_000_000
START = 1_700_000_000_000_000_000
PROCESS = Resource({"service.name": "app", "process.pid": 7})
COMMON = {"at": 0, "length": 200, "tokens": (46, 20), "model": "m", "resource": PROCESS}


def chat(trace, span_id, scope, parent=None, **changed):
    """Return a model call's span."""
    at, length, tokens, model, resource = ({**COMMON, **changed}[key] for key in COMMON)
    said = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model}
    if tokens:
        said |= {"gen_ai.usage.input_tokens": tokens[0], "gen_ai.usage.output_tokens": tokens[1]}
    start = START + at * MS
    return SpanRecord(
        trace,
        span_id,
        parent,
        "chat",
        start,
        start + length * MS,
        said,
        resource=resource,
        scope=Scope(scope),
    )


def request(trace, *spans):
    """Return a trace with a root of a second around the spans."""
    root = SpanRecord(trace, "root", None, "ask", START, START + 1000 * MS, resource=PROCESS)
    return Trace(trace, [root, *spans])


def figures(*traces):
    """Return calls, twins, requests and prompt tokens of a report."""
    report = analyse(traces)
    evidence = report.evidence
    return report.generation.n_calls, evidence.n_twin_spans, report.request.n, report.generation.tokens.prompt


IN_A_REQUEST = request("1", chat("1", "c", "openai_v2", "root", at=100))
ALONE = Trace("2", [chat("2", "d", "langfuse", at=101, length=198)])


@pytest.mark.parametrize("traces", [(IN_A_REQUEST, ALONE), (ALONE, IN_A_REQUEST)], ids=["behind", "before"])
def test_the_one_with_a_parent_stays(traces):
    """Whichever comes first: one call, one request, its tokens once."""
    assert figures(*traces) == (1, 1, 1, 46)


def test_two_that_have_parents_are_one_too():
    """The first one stays; a second tree in which nothing else happened is no request of its own."""
    other = request("2", chat("2", "d", "langfuse", "root", at=101))

    assert figures(IN_A_REQUEST, other) == (1, 1, 1, 46)


def test_siblings_in_one_trace_are_one():
    """Where one of two instrumentations lost the parent, both spans hang below the request."""
    trace = request("1", chat("1", "c", "openai_v2", "root"), chat("1", "d", "langfuse", "root", at=1))

    assert figures(trace) == (1, 1, 1, 46)


def test_each_call_has_one_twin():
    """Two calls at once, each written twice, are two."""
    first = request("1", chat("1", "c", "a", "root"), chat("1", "d", "a", "root", at=2))
    second = [Trace("2", [chat("2", "e", "b", at=1)]), Trace("3", [chat("3", "f", "b", at=3)])]

    assert figures(first, *second) == (2, 2, 1, 92)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"scope": "openai_v2"}, id="the-same-writer"),
        pytest.param({"tokens": (46, 21)}, id="other-tokens"),
        pytest.param({"tokens": None}, id="no-tokens"),
        pytest.param({"model": "n"}, id="another-model"),
        pytest.param({"at": 160}, id="another-time"),
        pytest.param({"length": 90}, id="another-end"),
        pytest.param({"resource": Resource({"process.pid": 8})}, id="another-process"),
    ],
)
def test_what_differs_is_another_call(changed):
    """Writer, tokens, model, interval and process must all fit."""
    said = {"scope": "langfuse", "at": 101} | changed
    other = Trace("2", [chat("2", "d", **said)])

    assert figures(IN_A_REQUEST, other)[:3] == (2, 0, 2)


@pytest.mark.parametrize("model", ["openai/m", "m-2026-01-01"])
def test_a_models_name_may_have_a_provider_before_it_and_a_version_behind(model):
    """LiteLLM names the provider, a response the version."""
    other = Trace("2", [chat("2", "d", "langfuse", at=101, model=model)])

    assert figures(IN_A_REQUEST, other) == (1, 1, 1, 46)


@pytest.mark.parametrize(
    ("tokens", "length", "n_calls"),
    [((46, 20), 110, 1), ((46, 20), 90, 2), (None, 170, 1), (None, 150, 2)],
    ids=["most-of-it", "too-little", "without-tokens", "without-tokens-and-too-little"],
)
def test_a_span_within_the_other_is_its_twin_if_it_takes_most_of_it(tokens, length, n_calls):
    """A framework's span begins some time before its client's: 30 ms of 200 here."""
    first = request("1", chat("1", "c", "langchain", "root", at=100, tokens=tokens))
    inner = Trace("2", [chat("2", "d", "openai", at=130, length=length, tokens=tokens)])

    assert figures(first, inner)[0] == n_calls


@pytest.mark.parametrize(("status", "n_calls"), [("error", 1), ("unset", 2)])
def test_two_that_failed_need_no_model_and_no_length_in_common(status, n_calls):
    """A call that could not connect has no answer that names the model, and its wrapper tried for a while."""
    outer = chat("1", "c", "langchain", "root", at=100, tokens=None)._replace(status="error")
    inner = chat("2", "d", "openai", at=130, length=5, tokens=None, model="")._replace(status=status)

    assert figures(request("1", outer), Trace("2", [inner]))[0] == n_calls


def test_no_trace_is_lost_and_none_comes_twice():
    """Traces of one call wait for a twin; what finds none is counted as ever."""
    lone = [Trace(str(n), [chat(str(n), "c", f"s{n % 3}", at=1000 * n)]) for n in range(3000)]
    bare = [Trace(f"b{n}", [chat(f"b{n}", "c", "s", at=1000 * n, tokens=None)]) for n in range(5)]

    assert figures(*lone, *bare)[:3] == (3005, 0, 3005)
