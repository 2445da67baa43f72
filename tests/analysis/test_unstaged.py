"""Traces without a stage: requests where others begin as they do and have one, nobody's otherwise."""

from __future__ import annotations

import pytest

from hotspan.analysis import analyse, unstaged
from hotspan.analysis.selection import select
from hotspan.analysis.where import parse_where
from hotspan.tracer.record import Resource, Scope, SpanRecord, Trace

MS = 1_000_000
SERVER = Scope("opentelemetry.instrumentation.fastapi")
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "tiny"}


def root(number, name="POST /ask", *, status="unset", route="/ask", scope=SERVER):
    """The span of a server, of a request that comes each second; one that fails takes a fifth of the time."""
    start, trace_id = number * 1000 * MS, f"{number:032x}"
    end = start + (20 if status == "error" else 100) * MS
    found = SpanRecord(trace_id, "00000000000000a1", None, name, start, end, {"http.route": route})
    return found._replace(status=status, kind="server", scope=scope)


def trace(top, *, asks):
    """A trace of a server's span, with a query of a database, and a model call where it got so far."""
    below = top._replace(parent_id=top.span_id, kind="client", scope=Scope("app"), attributes={})
    spans = [top, below._replace(span_id="00000000000000b2", name="SELECT", end_ns=top.start_ns + 5 * MS)]
    if asks:
        call = below._replace(span_id="00000000000000c3", name="chat tiny", start_ns=top.start_ns + 10 * MS)
        spans.append(call._replace(attributes=CHAT, status="unset"))
    return Trace(top.trace_id, spans)


def run(order):
    """Twenty requests that ask the model, ten that failed before; which come first is asked."""
    asking = [trace(root(n), asks=True) for n in range(1, 21)]
    failed = [trace(root(n, status="error"), asks=False) for n in range(21, 31)]
    return asking + failed if order == "asking-first" else failed + asking


@pytest.mark.parametrize("order", ["asking-first", "failed-first"])
def test_a_request_that_failed_before_its_first_stage_is_a_failed_request(order):
    """It counts as one, with all of its time in no stage; the sums hold."""
    report = analyse(run(order))

    assert (report.request.n, report.request.n_errors, report.request.error_ratio) == (30, 10, 10 / 30)
    assert (report.evidence.n_traces, report.evidence.n_unstaged_traces) == (30, 0)
    requests = next(row for row in report.stages if row.stage == "request")
    assert (requests.n_calls, requests.n_errors) == (30, 10)
    generation = next(row for row in report.stages if row.stage == "generation")
    assert generation.critical_path_ns == 20 * 90 * MS
    assert report.unattributed.critical_path_ns == (20 * 10 + 10 * 20) * MS


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"name": "GET /health", "route": "/health"}, id="another-name"),
        pytest.param({"route": "/other"}, id="another-route"),
        pytest.param({"scope": Scope("other")}, id="another-writer"),
    ],
)
def test_what_begins_otherwise_is_no_request(other):
    """A probe of the server's health is in no figure."""
    probes = [trace(root(n, **other), asks=False) for n in range(40, 60)]

    report = analyse(run("asking-first") + probes)

    assert (report.request.n, report.evidence.n_unstaged_traces) == (30, 20)


def test_a_servers_own_trace_is_no_request_of_its_clients():
    """An engine behind the same route as the application's, by the same writer: its span tells of a call."""
    engines = [
        Trace(one.trace_id, [one, one._replace(span_id="00000000000000b2", parent_id=one.span_id,
                                               name="llm_request", scope=Scope("vllm.llm_engine"))])
        for one in (root(n) for n in range(40, 50))
    ]  # fmt: skip

    report = analyse(run("asking-first") + engines)
    selected = analyse(select(run("asking-first") + engines, parse_where(["request.duration>50ms"])))

    assert (report.request.n, report.evidence.n_engine_spans) == (30, 10)
    assert selected.request.n == 20


def test_another_services_request_is_not_told_by_its_name():
    """What begins alike elsewhere may be anything."""
    probes = [trace(root(n), asks=False) for n in range(40, 50)]
    elsewhere = Resource({"service.name": "other"})
    others = [Trace(t.trace_id, [span._replace(resource=elsewhere) for span in t.spans]) for t in probes]

    assert analyse(run("asking-first") + others).request.n == 30


def test_a_call_alone_makes_no_request_of_others():
    """An HTTP client's span is a model call by its address; one to another address is no request for it."""
    calls = [
        Trace(
            one.trace_id,
            [one._replace(kind="client", attributes={"url.full": url, "http.request.method": "POST"})],
        )
        for n in range(1, 11)
        for url in ("https://api.openai.com/v1/chat/completions", "https://example.com/v1/log")
        for one in [root(n + 10 * len(url), "POST")]
    ]

    report = analyse(calls)

    assert (report.generation.n_calls, report.request.n) == (10, 10)
    assert report.evidence.n_unstaged_traces == 10


def test_each_group_knows_how_the_others_begin():
    """Of the requests that failed none has a stage."""
    report = analyse(run("failed-first"), by="outcome")

    assert {value: group.request.n for value, group in report.groups.reports} == {"ok": 20, "error": 10}


@pytest.mark.parametrize("order", ["asking-first", "failed-first"])
@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("request.outcome=error", (10, 10)),
        ("request.duration>50ms", (20, 0)),
        ("request.name='POST /ask'", (30, 10)),
    ],
)
def test_conditions_on_requests_select_them_too(order, condition, kept):
    """The advice on failed requests is to look at these, of which none has a stage."""
    probes = [trace(root(n, "GET /health", route="/health"), asks=False) for n in range(40, 43)]

    report = analyse(select([*probes, *run(order)], parse_where([condition])))

    assert (report.request.n, report.request.n_errors) == kept
    assert (report.selection.n_read, report.selection.n_kept) == (30, kept[0])


def test_there_is_room_for_so_many(monkeypatch):
    """What cannot wait until all are read is in no figure, which is said; probes are not spoken of."""
    monkeypatch.setattr(unstaged, "_MAX_WAITING", 12)
    probes = [trace(root(n, "GET /health", route="/health"), asks=False) for n in range(40, 43)]

    report = analyse([*probes, *run("failed-first")])

    assert report.request.n == 20 + 3
    (warning,) = (text for text in report.evidence.warnings if "without a stage" in text)
    assert warning.startswith("7 traces without a stage begin as requests do ('POST /ask')")
