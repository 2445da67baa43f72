"""Attempts of other writers' calls: HTTP requests below a call, beside each other, and what was answered."""

from __future__ import annotations

from collections import Counter

import pytest
from dialect_spans import MS, translated

import hotspan
from hotspan.analysis.dialects import read
from hotspan.tracer import semconv
from hotspan.tracer.record import Scope, Trace
from hotspan.tracer.testing import build_trace

CHAT = {"gen_ai.operation.name": "chat"}
LLM = {"openinference.span.kind": "LLM"}


def test_several_requests_below_one_call_are_attempts():
    """The first chunk counts from the request that was answered.

    chat |-------------------------------|
    POST  |--|       |--|        |------|
    """
    post = {"http.request.method": "POST", "url.full": "http://h/v1/chat/completions"}
    found = translated(
        ("chat", 0, 1000),
        ("p1", 10, 50, "chat"),
        ("p2", 300, 350, "chat"),
        ("p3", 800, 900, "chat"),
        attributes={
            "chat": CHAT | {"gen_ai.response.time_to_first_chunk": 0.9},
            **dict.fromkeys(("p1", "p2", "p3"), post),
        },
    )["chat"]

    assert found.attributes[semconv.ATTEMPTS] == 3
    assert found.attributes[semconv.BACKOFF_NS] == 790 * MS
    assert found.attributes[semconv.SEND_OFFSET_NS] == 800 * MS
    assert found.attributes[semconv.FIRST_CHUNK_NS] == 100 * MS


def test_one_request_below_a_call_is_the_call():
    """What is sent once says nothing new."""
    post = {"http.request.method": "POST", "url.full": "http://h/v1/chat/completions"}
    found = translated(("chat", 0, 100), ("p1", 10, 50, "chat"), attributes={"chat": CHAT, "p1": post})

    assert found["chat"].attributes == CHAT


@pytest.mark.parametrize("key", ["http.response.status_code", "http.status_code"])
@pytest.mark.parametrize("wrapper", [CHAT, CHAT | {"error.type": "RateLimitError"}])
@pytest.mark.parametrize("statuses", [(503, 503, 200), (429, 429, 429), (503,), (200,), ("503", 200)])
def test_what_the_server_answered_is_read_from_the_requests_below_a_call(key, wrapper, statuses):
    """The call's own span tells of the last one, if any."""
    post = {"http.request.method": "POST", "url.full": "http://h/v1/chat/completions"}
    names = [f"p{number}" for number in range(len(statuses))]
    trace = build_trace(
        ("chat", 0, 1000 * MS),
        *((name, (10 + 100 * at) * MS, (50 + 100 * at) * MS, "chat") for at, name in enumerate(names)),
        attributes={"chat": wrapper}
        | {name: post | {key: status} for name, status in zip(names, statuses, strict=True)},
    )
    report = hotspan.analyse(
        [Trace(trace.trace_id, [span._replace(scope=Scope("app")) for span in trace.spans])]
    )
    failed = Counter(str(status) for status in statuses if int(status) >= 400)

    assert report.generation.n_attempts == len(statuses)
    assert report.patterns.refusals == (failed or ({"429": 1} if "error.type" in wrapper else {}))


def test_a_request_that_got_no_answer_tells_its_error():
    """There is no status, and the exception's name says why."""
    post = {"http.request.method": "POST", "url.full": "http://h/v1/chat/completions"}
    found = translated(
        ("chat", 0, 1000),
        ("p1", 10, 50, "chat"),
        ("p2", 300, 350, "chat"),
        attributes={"chat": CHAT, "p1": post | {"error.type": "httpx.ConnectError"}, "p2": post},
        status={"p1": "error"},
    )["chat"]
    (event,) = found.events

    assert (event.name, event.time_ns) == (semconv.ATTEMPT_EVENT, 50 * MS)
    assert event.attributes == {
        semconv.ATTEMPT_NUMBER: 1,
        semconv.ATTEMPT_DURATION_NS: 40 * MS,
        semconv.ERROR_TYPE: "httpx.ConnectError",
    }


def test_a_call_that_counted_its_attempts_itself_is_left_alone():
    """Hotspan's own client knows more of them than the spans of the transport below it."""
    post = {"http.request.method": "POST", "url.full": "http://h/v1/chat/completions"}
    own = {semconv.STAGE: "generation", semconv.SEND_OFFSET_NS: 300 * MS, semconv.TTFT_NS: 400 * MS}
    found = translated(
        ("chat", 0, 1000),
        ("p1", 10, 50, "chat"),
        ("p2", 300, 900, "chat"),
        attributes={"chat": own, "p1": post, "p2": post},
        status={"p1": "error"},
    )["chat"]

    assert (found.attributes, found.events) == (own, ())


def test_requests_one_behind_another_are_one_call_where_no_client_is_traced():
    """Each that failed is an attempt of the one that was sent instead; the next question is another call.

    POST  |--x      |--x          |--------|      |----|
    """
    post = {"http.request.method": "POST", "url.full": "http://h/v1/chat/completions"}
    found = translated(
        ("ask", 0, 3000),
        ("p1", 10, 50, "ask"),
        ("p2", 500, 550, "ask"),
        ("p3", 1400, 1600, "ask"),
        ("p4", 2000, 2100, "ask"),
        attributes=dict.fromkeys(("p1", "p2", "p3", "p4"), post),
        status={"p1": "error", "p2": "error"},
    )

    assert [name for name, span in found.items() if read(span).stage == "generation"] == ["p3", "p4"]
    assert (found["p3"].start_ns, found["p3"].end_ns) == (10 * MS, 1600 * MS)
    assert found["p3"].attributes[semconv.ATTEMPTS] == 3
    assert found["p3"].attributes[semconv.BACKOFF_NS] == 1390 * MS


@pytest.mark.parametrize(
    ("start", "path"),
    [
        pytest.param(40, "/v1/chat/completions", id="at-once"),
        pytest.param(90, "/v2/completions", id="elsewhere"),
    ],
)
def test_a_request_beside_a_failed_one_or_to_another_address_is_no_retry(start, path):
    """Two calls that were made side by side are two."""
    post = {"http.request.method": "POST", "url.full": "http://h/v1/chat/completions"}
    found = translated(
        ("ask", 0, 3000),
        ("p1", 10, 50, "ask"),
        ("p2", start, 200, "ask"),
        attributes={"p1": post, "p2": post | {"url.full": f"http://h{path}"}},
        status={"p1": "error"},
    )

    assert [name for name, span in found.items() if read(span).stage == "generation"] == ["p1", "p2"]


@pytest.mark.parametrize(
    "address", [["http://h/v1/chat/completions"], {"a": 1}, 7], ids=["list", "map", "number"]
)
def test_an_address_of_any_type_ends_nothing(address):
    """A failed request and its retry, whose writer left out the path."""
    post = {"http.request.method": "POST", "http.url": "http://h/v1/chat/completions", "url.full": address}

    found = translated(
        ("a", 0, 10), ("b", 11, 20), attributes={"a": post, "b": post}, status={"a": "error"}
    )  # fmt: skip

    assert set(found) == {"a", "b"}
