"""Public defects around retries: attempts, back-off and the call are three things."""

from __future__ import annotations

import contextlib

import httpx
import openai
import pytest
from servers import DONE, AwaitClose, Close, ScriptedServer, answer, delta, event, message, stream

import hotspan
from hotspan.testing import capture
from hotspan.tracer import semconv
from hotspan.tracer.clients.call import Call
from hotspan.tracer.clients.llm import LLMClient
from hotspan.tracer.clients.session import retry_after_s
from hotspan.tracer.clients.urls import endpoint
from hotspan.tracer.context import get_context

MESSAGES = [{"role": "user", "content": "Hi"}]
BUSY = answer({"error": {"message": "busy"}}, "503 Service Unavailable", retry_after="0.05")
LIMITED = answer({"error": {"message": "slow down"}}, "429 Too Many Requests", retry_after="0")


def test_case_047_one_call_three_attempts():
    """503, 503, 200 is one span with three attempts, the back-off apart, and times of the last attempt."""
    good = stream(event(delta("Hi", finish="stop")), DONE)
    with capture() as captured, ScriptedServer([BUSY, BUSY, good]) as server:
        with LLMClient(server.url, model="tiny", max_retries=2) as client:
            list(client.stream(MESSAGES))
    (span,) = captured.spans
    found = span.attributes

    assert span.status == "unset"
    assert (len(server.requests), found[semconv.ATTEMPTS], found[semconv.HTTP_STATUS]) == (3, 3, 200)
    assert found[semconv.BACKOFF_NS] >= 2 * 50_000_000
    assert found[semconv.SEND_OFFSET_NS] >= found[semconv.BACKOFF_NS]
    assert found[semconv.SEND_OFFSET_NS] + found[semconv.LAST_TOKEN_NS] <= span.duration_ns


@pytest.mark.parametrize("reply", [pytest.param(BUSY, id="503"), pytest.param(LIMITED, id="429")])
def test_case_113_nothing_is_retried_by_default(reply):
    """A refused call is one attempt and an error with the server's reason, unless retries are asked for."""
    with (
        capture() as captured,
        ScriptedServer([reply]) as server,
        LLMClient(server.url, model="tiny") as client,
    ):
        with pytest.raises(hotspan.EngineError, match=r"busy|slow down"):
            client.chat(MESSAGES)

    assert len(server.requests) == 1
    assert captured.spans[0].attributes[semconv.ATTEMPTS] == 1
    assert semconv.BACKOFF_NS not in captured.spans[0].attributes


@pytest.mark.parametrize(
    ("reply", "n_requests"),
    [
        pytest.param(LIMITED, 2, id="limited"),
        pytest.param([Close()], 2, id="no-answer"),
        pytest.param(answer({"error": "no"}, "400 Bad Request"), 1, id="our-own-fault"),
        pytest.param(answer({"error": "later"}, "503 Busy", retry_after="3600"), 1, id="wait-too-long"),
        pytest.param(
            answer({"error": "later"}, "503 Busy", retry_after="3600", retry_after_ms="1"),
            2,
            id="milliseconds",
        ),
        pytest.param(
            answer({"error": "later"}, "503 Busy", retry_after="0", retry_after_ms="soon"), 2, id="no-number"
        ),
    ],
)
def test_what_may_be_tried_again(reply, n_requests):
    """Limits and lost connections are tried again; a request that is wrong, or a wait of an hour, is not."""
    with ScriptedServer([reply, answer(message())]) as server:
        with LLMClient(server.url, model="tiny", max_retries=1) as client:
            if n_requests == 1:
                with pytest.raises(hotspan.EngineError):
                    client.chat(MESSAGES)
            else:
                assert client.chat(MESSAGES).text == "Hi"

    assert len(server.requests) == n_requests


def test_a_body_that_has_begun_is_never_asked_for_again():
    """A stream that breaks is raised to its consumer, who has seen a part of it."""
    broken = [*stream(event(delta("Hi")))[:-1], Close()]
    with ScriptedServer([broken]) as server, LLMClient(server.url, model="tiny", max_retries=3) as client:
        with pytest.raises(hotspan.StreamError):
            list(client.stream(MESSAGES))

    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(None, None), ("0", 0), ("1.5", 1.5), ("-3", 0), ("soon", None), ("Thu, 01 Jan 1970 00:00:00 GMT", 0)],
)
def test_retry_after_is_seconds_or_a_date(value, seconds):
    """Both forms of the header are read; what is neither is ignored."""
    assert retry_after_s(value) == seconds


# --- The openai client, which retries silently -------------------------------------------------------------


def ask_openai(server, *, streamed=False, **options):
    """Ask a traced openai client once; it sends again up to twice."""
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", **options) as client:
        hotspan.trace_openai(client)
        answered = client.chat.completions.create(model="tiny", messages=MESSAGES, stream=streamed)
        return list(answered) if streamed else answered


@pytest.mark.parametrize("streamed", [True, False])
def test_case_047_silent_retries_are_attempts(streamed):
    """503, 503, 200 is one call with three attempts, each with its own account, and the back-off apart."""
    good = stream(event(delta("Hi", finish="stop")), DONE) if streamed else answer(message())
    with capture() as captured, ScriptedServer([BUSY, BUSY, good]) as server:
        ask_openai(server, streamed=streamed)
    (span,) = captured.spans
    found, failed = span.attributes, [dict(event.attributes) for event in span.events]

    assert (len(server.requests), found[semconv.ATTEMPTS], found[semconv.HTTP_STATUS]) == (3, 3, 200)
    assert [(f[semconv.ATTEMPT_NUMBER], f[semconv.HTTP_STATUS]) for f in failed] == [(1, 503), (2, 503)]
    in_attempts_ns = sum(f[semconv.ATTEMPT_DURATION_NS] for f in failed)
    assert found[semconv.BACKOFF_NS] - in_attempts_ns >= 2 * 50_000_000
    assert found[semconv.BACKOFF_NS] <= found[semconv.SEND_OFFSET_NS] <= span.duration_ns
    assert (span.status, len({r.headers["traceparent"] for r in server.requests})) == ("unset", 1)


def test_case_047_the_last_attempts_time_is_the_models():
    """Of a call with retries, time to first token counts from the send of the attempt that was answered."""
    good = stream(event(delta("Hi", finish="stop")), DONE)
    with capture() as captured, ScriptedServer([BUSY, BUSY, good]) as server:
        ask_openai(server, streamed=True)
    report = hotspan.analyse([hotspan.Trace(captured.spans[0].trace_id, captured.spans)])

    found = captured.spans[0].attributes
    assert found[semconv.TTFT_NS] < found[semconv.BACKOFF_NS]
    assert (report.generation.n_calls, report.generation.n_attempts) == (1, 3)
    assert report.generation.phases_ns["backoff"] >= 2 * 50_000_000


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        pytest.param([Close()], ("RemoteProtocolError", "ReadError"), id="hung-up"),
        pytest.param([AwaitClose()], ("ReadTimeout",), id="silent"),
    ],
)
def test_case_047_attempts_without_an_answer_count(reply, error):
    """An attempt that met no answer is one, with what it met."""
    with capture() as captured, ScriptedServer([reply, answer(message())]) as server:
        ask_openai(server, timeout=0.3)
    (span,) = captured.spans

    assert (span.attributes[semconv.ATTEMPTS], span.status) == (2, "unset")
    assert span.events[0].attributes[semconv.ERROR_TYPE] in error


@pytest.mark.parametrize("kind", ["openai", "llm"])
def test_case_047_connections_that_the_transport_tries_again_are_attempts(kind):
    """What a transport with retries of its own hides from its client: each an attempt, its wait back-off."""
    nowhere = "http://127.0.0.1:1/v1"
    with capture() as captured, contextlib.suppress(openai.APIConnectionError, hotspan.EngineError):
        # httpcore waits 0 s and then 0.5 s.
        http = httpx.Client(transport=httpx.HTTPTransport(retries=2))
        if kind == "openai":
            client = openai.OpenAI(base_url=nowhere, api_key="none", max_retries=0, http_client=http)
            with hotspan.trace_openai(client):
                client.chat.completions.create(model="tiny", messages=MESSAGES)
        else:
            with http, LLMClient(nowhere, model="tiny", http_client=http) as own:
                own.chat(MESSAGES)
    (span,) = captured.spans
    events = [dict(event.attributes) for event in span.events if event.name == semconv.ATTEMPT_EVENT]

    assert (span.status, span.attributes[semconv.ATTEMPTS]) == ("error", 3)
    assert [found[semconv.ATTEMPT_NUMBER] for found in events] == [1, 2, 3]
    assert {found[semconv.ERROR_TYPE] for found in events} == {"ConnectError"}
    in_attempts_ns = sum(found[semconv.ATTEMPT_DURATION_NS] for found in events)
    assert span.attributes[semconv.BACKOFF_NS] >= 500_000_000 > in_attempts_ns


def test_case_047_an_answer_after_connections_that_failed_counts_from_its_own():
    """The stamps of a call whose transport connected at the second try are those of that try."""
    call = Call(endpoint("http://127.0.0.1"), {"model": "tiny", "messages": MESSAGES}, get_context())
    with capture() as captured:
        call.start(None)
        attempt = call.begin_attempt()
        first_ns = attempt.started_ns
        attempt.trace("connection.connect_tcp.failed", {"exception": httpx.ConnectTimeout("late")})
        attempt.trace("connection.retry.started", {})
        attempt.trace("connection.retry.complete", {})
        attempt.trace("http11.send_request_headers.started", {})
        call.answered(200, {}, 0)
        call.end_ok()
    (span,) = captured.spans

    assert attempt.started_ns > first_ns
    assert span.attributes[semconv.ATTEMPTS] == 2
    assert span.attributes[semconv.BACKOFF_NS] == attempt.started_ns - first_ns
    assert span.attributes[semconv.CONNECT_NS] == attempt.send_ns - attempt.started_ns
    assert [event.attributes[semconv.ERROR_TYPE] for event in span.events] == ["ConnectTimeout"]


def test_case_047_a_call_whose_attempts_all_fail_is_one_error():
    """Three refusals are one failed call with the last one's status."""
    with capture() as captured, ScriptedServer([BUSY]) as server:
        with pytest.raises(openai.InternalServerError):
            ask_openai(server)
    (span,) = captured.spans

    assert (span.status, span.attributes[semconv.ATTEMPTS]) == ("error", 3)
    assert span.attributes[semconv.HTTP_STATUS] == 503
