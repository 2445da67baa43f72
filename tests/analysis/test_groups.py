"""One report a value: which value a request has, how many there are at most, and how lengths differ."""

from __future__ import annotations

from collections import Counter

import pytest
from made_traces import MS, answer, many, request

from hotspan.analysis import analyse
from hotspan.analysis.groups import MAX_GROUPS
from hotspan.analysis.parts import OTHER
from hotspan.testing import build_trace
from hotspan.tracer import semconv
from hotspan.tracer.errors import ConfigurationError, UnusableTraceError
from hotspan.tracer.record import SpanRecord, Trace


def test_each_value_has_the_report_of_its_requests():
    """Most requests first, those without a value last; together they are the whole."""
    tenants = ("a", "b", "b", None)
    traces = many(
        4,
        lambda k: request(
            k, 100 * k, answer(0, 100 * k), attributes={"tenant": tenants[k - 1]} if tenants[k - 1] else {}
        ),
    )

    report = analyse(traces, by="tenant")

    requests = {value: part.request for value, part in report.groups.reports}
    found = {value: (part.n, part.duration_ns.p50 / 1e6) for value, part in requests.items()}
    assert list(found) == ["b", "a", None]
    assert found == {"b": (2, 250), "a": (1, 100), None: (1, 400)}
    assert report.request.n == 4
    assert all(part == analyse([traces[0]]) for value, part in report.groups.reports if value == "a")


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("name", {"answer"}),
        ("outcome", {"ok", "error"}),
        ("service", {"made"}),
        ("gen_ai.request.model", {"m"}),
    ],
)
def test_the_value_may_be_the_root_s_a_call_s_or_the_process_s(by, expected):
    """Of the root; else of the first span that has the attribute; else of the process."""
    call = {"gen_ai.request.model": "m"}
    traces = [
        request(1, 100, answer(0, 100, attributes=call)),
        request(2, 100, answer(0, 100, attributes=call), status="error"),
    ]

    assert {value for value, _ in analyse(traces, by=by).groups.reports} == expected


def test_a_user_id_makes_no_thousand_reports():
    """Beyond the first twenty values the requests are one group, and it is said how many that are."""
    traces = many(100, lambda k: request(k, 100, answer(0, 100), attributes={"user": f"u{k}"}))

    groups = analyse(traces, by="user").groups

    assert len(groups.reports) == MAX_GROUPS + 1
    assert groups.n_other_values == 80
    assert dict(groups.reports)[OTHER].request.n == 80


def test_calls_outside_every_request_are_in_a_group():
    """What built the index has no request, and is in a row: the groups' calls are the whole's."""
    index = build_trace(("texts", 0, 50 * MS), trace_id="9")
    index = Trace("9", [span._replace(attributes={semconv.OPERATION: "embeddings"}) for span in index.spans])

    report = analyse([request(1, 100, answer(0, 100)), index], by="name")

    calls = Counter()
    for _, part in report.groups.reports:
        calls.update({row.stage: row.n_calls for row in part.stages})
    assert calls == {row.stage: row.n_calls for row in report.stages}
    assert calls["embedding"] == 1
    assert [value for value, _ in report.groups.reports] == ["answer", "texts"]


def test_an_attribute_that_nobody_has_is_refused_with_some_that_there_are():
    """A misspelt key is no report of one group."""
    with pytest.raises(UnusableTraceError, match=r"tennant.*tenant"):
        analyse(many(2, lambda k: request(k, 100, attributes={"tenant": "a"})), by="tennant")


def test_a_misspelt_attribute_gets_the_nearest_named():
    """First of all that there are, also of the writer's own."""
    traces = many(2, lambda k: request(k, 100, attributes={"zone": "a", "tenant": "b", semconv.ENTRY: False}))

    with pytest.raises(UnusableTraceError, match=r"Did you mean tenant\? Others are: name, .*, zone\.$"):
        analyse(traces, by="tenent")
    with pytest.raises(UnusableTraceError, match=r"There are: name, outcome, service, zone, tenant\.$"):
        analyse(traces, by="???")


def test_values_of_two_kinds_are_two_groups():
    """A boolean, and texts that would be taken for it; a text is in quotes where it has to be told apart."""
    values = [True, True, "True", "true", (1, "a"), "[1]", 5, 5.0, "5", False]
    traces = many(len(values), lambda k: request(k, 100, attributes={"x": values[k - 1]}))

    groups = analyse(traces, by="x").groups

    assert {value: part.request.n for value, part in groups.reports} == {
        "true": 2,
        '"True"': 1,
        '"true"': 1,
        '[1, "a"]': 1,
        "[1]": 1,
        "5": 2,
        '"5"': 1,
        "false": 1,
    }


def test_a_text_that_reads_like_another_value_stays_as_it_is_alone():
    """No quotes where nothing has to be told apart."""
    traces = many(2, lambda k: request(k, 100, attributes={"x": ("5", "true")[k - 1]}))

    assert {value for value, _ in analyse(traces, by="x").groups.reports} == {"5", "true"}


def test_a_value_that_is_called_as_the_others_together_is_one_of_its_own():
    """The names that a report has of its own are in quotes where they are somebody's values."""
    names = [OTHER, "(none)", "(all)", *map(str, range(30))]
    traces = many(len(names), lambda k: request(k, 100, attributes={"x": names[k - 1]}))

    groups = analyse([*traces, request(99, 100)], by="x").groups

    found = {value: part.request.n for value, part in groups.reports}
    assert (found[f'"{OTHER}"'], found['"(none)"'], found['"(all)"']) == (1, 1, 1)
    assert (found[OTHER], groups.n_other_values, found[None]) == (13, 13, 1)
    assert list(found)[-2:] == [OTHER, None]


def test_nothing_has_no_groups():
    """What was not there cannot lack an attribute."""
    assert analyse([], by="tenant").groups.reports == ()


def test_stages_are_no_groups():
    """They are the rows already."""
    with pytest.raises(ConfigurationError, match="row is a stage"):
        analyse([], by="stage")


def served(number, queue_s):
    """What an engine says of a request, in a trace of its own without a word of the tenant."""
    said = {
        semconv.ENGINE_QUEUE_S: queue_s,
        semconv.ENGINE_PREFILL_S: 0.001,
        semconv.ENGINE_DECODE_S: 0.01,
        semconv.ENGINE_REQUEST_ID: f"chatcmpl-{number}",
    }
    start = 10**15 + number
    return Trace(
        f"e{number}", [SpanRecord(f"e{number}", "a", None, "llm_request", start, start + 60 * MS, said)]
    )


def asked(number, tenant, answer_id=None):
    """A request of a tenant with one streamed model call."""
    said = {semconv.RESPONSE_ID: f"chatcmpl-{answer_id or number}"}
    call = answer(0, 100, ttft=40, last=90, output=5, attributes=said)
    return request(number, 100, call, attributes={"tenant": tenant})


def queue_of(report):
    """The mean queue of the model calls in ms, where it is known."""
    ns = report.generation.phases_ns.get("queue")
    return None if ns is None else ns / MS


@pytest.mark.parametrize("engines_first", [True, False])
def test_what_an_engine_says_in_another_trace_is_joined_in_the_group_of_the_call(engines_first):
    """By the request's id; and counted there, so that no group has more joined than there are."""
    engines, requests = [served(1, 0.004), served(2, 0.030)], [asked(1, "a"), asked(2, "b")]

    report = analyse(engines + requests if engines_first else requests + engines, by="tenant")

    groups = dict(report.groups.reports)
    assert {tenant: queue_of(groups[tenant]) for tenant in "ab"} == {"a": 4, "b": 30}
    for part in groups.values():
        assert (part.evidence.n_engine_spans, part.evidence.n_engine_joined) == (1, 1)


def test_an_id_that_calls_of_two_groups_have_joins_neither():
    """As in the report on the whole: whose account it is cannot be told."""
    report = analyse([served(7, 0.004), asked(1, "a", 7), asked(2, "b", 7)], by="tenant")

    assert [queue_of(part) for part in (report, *(part for _, part in report.groups.reports))] == [None] * 3
