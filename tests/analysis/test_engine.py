"""Each model call gets its server's account: by trace, by request id, or out of the answer."""

from __future__ import annotations

import numpy as np
import pytest

from hotspan.analysis import analyse
from hotspan.analysis.call_table import CallTable
from hotspan.analysis.calls import calls_of
from hotspan.analysis.engine import BY_HEADERS, BY_REQUEST_ID, BY_RESPONSE, BY_TRACE, EngineJoin
from hotspan.analysis.generation import ModelCall
from hotspan.analysis.repair import repair
from hotspan.tracer import semconv
from hotspan.tracer.engines import response_attributes
from hotspan.tracer.record import Scope, SpanRecord, Trace

MS = 1_000_000
SERVER_CLOCK_NS = 10**15  # the server's clock is far from the client's


def call(name="chat", start_ms=0, end_ms=100, *, parent=None, **attributes):
    """Return a client's span of one model call, in trace `name` unless it has a parent."""
    said = {
        semconv.STAGE: semconv.GENERATION,
        semconv.TTFT_NS: 40 * MS,
        semconv.LAST_TOKEN_NS: 90 * MS,
        **{key.replace("__", "."): value for key, value in attributes.items()},
    }
    return SpanRecord("t", name, parent, name, start_ms * MS, end_ms * MS, said)


def served(span_id="e", parent=None, *, queue_ms=5, start_ms=0, length_ms=60, request_id=None):  # noqa: PLR0913 - each is what one test is about
    """Return vLLM's span of one request."""
    said = {
        semconv.ENGINE_QUEUE_S: queue_ms / 1e3,
        semconv.ENGINE_PREFILL_S: 0.010,
        semconv.ENGINE_DECODE_S: 0.030,
        **({semconv.ENGINE_REQUEST_ID: request_id} if request_id else {}),
    }
    start = SERVER_CLOCK_NS + start_ms * MS
    return SpanRecord("t", span_id, parent, "llm_request", start, start + length_ms * MS, said)


def report_of(*traces):
    """Return the report of traces, each given as its spans."""
    named = [
        Trace(str(n), [span._replace(trace_id=str(n)) for span in spans]) for n, spans in enumerate(traces, 1)
    ]
    return analyse(named)


def queues_ms(report):
    """Return the mean queue of the calls that have one, how many they are, and where it was read."""
    row = next(row for row in report.stages if row.stage == "generation")
    phase = next((phase for phase in row.phases if phase.name == "queue"), None)
    return None if phase is None else (phase.p50_ns / MS, phase.n_calls, dict(phase.sources))


@pytest.mark.parametrize(
    ("client", "request_id"),
    [
        pytest.param({semconv.RESPONSE_ID: "chatcmpl-a1"}, "chatcmpl-a1", id="the-answer's-id"),
        pytest.param({semconv.RESPONSE_ID: "cmpl-a1"}, "cmpl-a1-0", id="one-prompt-of-a-completion"),
        pytest.param({semconv.RESPONSE_ID: "resp_a1"}, "resp_a1_0", id="one-turn-of-a-response"),
        pytest.param({semconv.REQUEST_ID_HEADER: ("a1",)}, "chatcmpl-a1", id="the-client's-header"),
        pytest.param({semconv.REQUEST_ID_HEADER: "a1"}, "cmpl-a1-0", id="the-header-of-a-completion"),
        pytest.param({semconv.REQUEST_ID_HEADER: "q-7"}, "q-7", id="an-id-of-the-client's-own"),
    ],
)
def test_a_request_id_joins_across_traces(client, request_id):
    """The engine's span is the root of another trace, or below a gateway that does not know the client's."""
    own = call(**{key.replace(".", "__"): value for key, value in client.items()})
    gateway = SpanRecord("t", "gw", None, "POST /v1", 5, 6 * MS)
    for engine in ([served(request_id=request_id)], [gateway, served(parent="gw", request_id=request_id)]):
        report = report_of(engine, [own])

        assert queues_ms(report) == (5.0, 1, {BY_REQUEST_ID: 1})
        assert (report.evidence.n_engine_spans, report.evidence.n_engine_joined) == (1, 1)


@pytest.mark.parametrize(
    ("response_id", "request_id"),
    [
        pytest.param("chatcmpl-7", "chatcmpl-8", id="alike"),
        pytest.param("7", "chatcmpl-7", id="an-answer's-id-is-whole"),
        pytest.param("chatcmpl-7-0", "chatcmpl-7", id="longer"),
        pytest.param("chatcmpl-7", None, id="none"),
    ],
)
def test_other_ids_join_nothing(response_id, request_id):
    """A near miss is no join: a wrong account is worse than none."""
    report = report_of([served(request_id=request_id)], [call(gen_ai__response__id=response_id)])

    assert queues_ms(report) is None
    assert (report.evidence.n_engine_spans, report.evidence.n_engine_joined) == (1, 0)


def test_an_id_of_several_calls_joins_none_of_them():
    """A gateway that sends one X-Request-Id on for all calls of a request: whose account is whose is open."""
    calls = [call(f"c{n}", http__request__header__x_request_id="a1") for n in range(2)]
    calls = [one._replace(attributes={**one.attributes, semconv.REQUEST_ID_HEADER: "a1"}) for one in calls]
    engines = [served(f"e{n}", request_id="chatcmpl-a1", start_ms=200 * n) for n in range(2)]

    report = report_of(calls[:1], calls[1:], engines)

    assert queues_ms(report) is None
    assert report.evidence.n_engine_joined == 0


@pytest.mark.parametrize(
    ("said", "joined"),
    [
        pytest.param(["a1", "a2", "a3"], [0, 1], id="names"),
        pytest.param(["a1", "", "a2"], [0, 2], id="one-without"),
        pytest.param(["a1", None, ("a2", "a9")], [0, 2], id="several-names-of-one"),
        pytest.param(["a2", "a1", "a2"], [1], id="one-name-of-two"),
    ],
)
def test_the_names_of_many_calls_join_as_those_of_each(said, joined):
    """Calls that are taken in together, whatever is under their key: the rows that get an account."""
    table, join = CallTable(), EngineJoin()
    for name in ("first", *("chat" for _ in said)):
        table.add(ModelCall(span := call(name), [span]), 0)
    join.add_names(1, semconv.REQUEST_ID_HEADER, said)
    for request_id in ("chatcmpl-a1", "chatcmpl-a2"):
        tree, _ = repair(Trace("t", [served(request_id=request_id)]))
        join.add(tree, calls_of(tree), {}, {})
    join.finish(table)

    assert np.flatnonzero(table.rows()["queue_ns"] >= 0).tolist() == [1 + row for row in joined]


def test_of_several_accounts_of_one_call_the_last_to_end_counts():
    """Several answers to one prompt run side by side in the engine; a retry comes after what it retries."""
    #  e1  |--------------------|          started first, and the client's last token is its
    #  e2     |-------|
    engines = [served("e1", "chat", queue_ms=7, length_ms=90), served("e2", "chat", start_ms=5, length_ms=40)]

    assert queues_ms(report_of([call(), *engines])) == (7.0, 1, {BY_TRACE: 1})
    assert report_of([call(), *engines]).evidence.n_engine_joined == 2


def test_by_trace_beats_by_request_id_and_the_answer():
    """One account is used as a whole: nothing of a second route is put beside it."""
    said = response_attributes({"metrics": {"queue_time_ms": 9.0, "time_to_first_token_ms": 10.0}})
    own = call(gen_ai__response__id="chatcmpl-1", **{k.replace(".", "__"): v for k, v in said.items()})
    other = served("e2", queue_ms=6, request_id="chatcmpl-1")

    assert queues_ms(report_of([own, served("e1", "chat")], [other])) == (5.0, 1, {BY_TRACE: 1})
    assert queues_ms(report_of([own], [other])) == (6.0, 1, {BY_REQUEST_ID: 1})
    assert queues_ms(report_of([own])) == (9.0, 1, {BY_RESPONSE + "metrics": 1})


def test_a_span_that_says_no_time_leaves_it_to_the_answer():
    """The span of another version, without latencies, is joined and empty."""
    said = response_attributes({"metrics": {"queue_time_ms": 9.0, "time_to_first_token_ms": 10.0}})
    own = call(**{k.replace(".", "__"): v for k, v in said.items()})
    bare = served("e1", "chat")._replace(attributes={semconv.ENGINE_REQUEST_ID: "chatcmpl-1"})

    report = report_of([own, bare])

    assert queues_ms(report) == (9.0, 1, {BY_RESPONSE + "metrics": 1})
    assert report.evidence.n_engine_joined == 1


def test_the_account_in_an_answer_divides_the_call():
    """VLLM's `metrics`: its first token is counted from the moment of scheduling, so it is the prefill."""
    said = response_attributes(
        {"metrics": {"queue_time_ms": 12.0, "time_to_first_token_ms": 20.0, "generation_time_ms": 48.0}}
    )
    report = report_of([call(**{k.replace(".", "__"): v for k, v in said.items()})])
    phases = {name: ns / MS for name, ns in report.generation.phases_ns.items() if ns is not None}

    assert phases == {
        "server_before_engine": 8,
        "queue": 12,
        "prefill": 20,
        "decode": 48,
        "stream_overhead": 12,
        "unattributed": 0,
    }
    assert report.generation.phase_sources["prefill"] == {BY_RESPONSE + "metrics": 1}


def test_llamacpps_queue_names_the_headers_as_its_source():
    """`timings` hold no queue; the client's stamp of the headers tells it."""
    said = response_attributes({"timings": {"prompt_ms": 8.0, "predicted_ms": 48.0}})
    stamps = {semconv.HEADERS_NS: 31 * MS, semconv.REQUEST_WRITE_NS: 1 * MS, semconv.REQUEST_STREAM: True}
    report = report_of([call(**{k.replace(".", "__"): v for k, v in (said | stamps).items()})])

    assert queues_ms(report) == (10.0, 1, {BY_HEADERS: 1})
    assert report.generation.phases_ns["prefill"] == 8 * MS
    assert report.generation.phases_ns["server_before_engine"] == 21 * MS


def test_sglangs_stages_below_its_span_are_the_account():
    """The tree of stage spans hangs below the call's transport span, and none of it is a call or late."""
    scope = Scope("sglang server")
    post = SpanRecord("t", "post", "chat", "POST", 1 * MS, 30 * MS)
    root = SpanRecord("t", "r", "post", " Req q-0", SERVER_CLOCK_NS, SERVER_CLOCK_NS + 90 * MS, scope=scope)
    scheduler = root._replace(span_id="s", parent_id="r", name="Scheduler [TP 0] ")
    stages = [
        scheduler._replace(span_id=name, parent_id="s", name=name, end_ns=SERVER_CLOCK_NS + length * MS)
        for name, length in (("prefill_waiting", 15), ("prefill_forward", 9), ("decode_forward", 50))
    ]

    report = report_of([call(), post, root, scheduler, *stages])

    assert queues_ms(report) == (15.0, 1, {BY_TRACE: 1})
    assert report.generation.phases_ns["prefill"] == 9 * MS
    assert (report.evidence.n_engine_spans, report.evidence.n_late_spans) == (1, 0)
    assert report.generation.n_calls == 1


def test_an_engines_span_of_an_embedding_is_joined_and_divides_nothing():
    """A pooling request has a span too; embeddings have no phases, and nothing is reported as missing."""
    embedding = call("embed")._replace(attributes={semconv.STAGE: semconv.EMBEDDING})

    report = report_of([embedding, served(parent="embed")])

    assert (report.evidence.n_engine_spans, report.evidence.n_engine_joined) == (1, 1)
    assert report.generation.n_calls == 0
