"""Both clients over real sockets: every way out of a call, and whose fault it was."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading

import pytest
from drivers import ENDLESS, HELLO, MESSAGES, texts
from servers import (
    DONE,
    END,
    AwaitClose,
    Close,
    Pause,
    Reset,
    ScriptedServer,
    Wait,
    answer,
    delta,
    event,
    head,
    message,
    piece,
    stream,
)

import hotspan
from hotspan.testing import capture
from hotspan.tracer import semconv
from hotspan.tracer.clients.llm import AsyncLLMClient, LLMClient

# --- Ways out ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["close", "drop"])
def test_a_stream_left_early_is_abandoned_and_hung_up(connect, end):
    """Closing or dropping an unfinished stream ends its span once, and the server sees it at once."""
    with capture() as captured, ScriptedServer([ENDLESS, HELLO]) as server:
        driver = connect(server.url)
        deltas, left = driver.take(1, end=end)
        assert texts(deltas) == ["a"]
        assert left.status == "abandoned"
        driver.take()
        assert server.requests[0].hung_up.wait(5)
    abandoned, good = captured.spans

    assert abandoned.attributes[semconv.OUTCOME] == "abandoned"
    assert (abandoned.status, good.status) == ("unset", "unset")
    assert abandoned.attributes[semconv.STREAM_ITEMS] == 1


def test_leaving_after_the_finish_reason_is_no_abandonment(connect):
    """Who stops at the finish reason has the whole answer: the call is ok."""
    held = threading.Event()
    reply = [head(), piece(event(delta("a", finish="stop"))), Wait(held), piece(DONE), END]
    with capture() as captured, ScriptedServer([reply]) as server:
        _, answered = connect(server.url).take(1)
        held.set()

    assert answered.status == "ok"
    assert semconv.OUTCOME not in captured.spans[0].attributes


@pytest.mark.parametrize(
    ("exc", "status"),
    [
        pytest.param(None, "abandoned", id="left"),
        pytest.param(ValueError("mine"), "abandoned", id="the-consumer-s-own-fault"),
        pytest.param(asyncio.CancelledError(), "cancelled", id="cancelled"),
        pytest.param(KeyboardInterrupt(), "interrupted", id="interrupted"),
    ],
)
def test_a_with_statement_ends_the_call(connect, exc, status):
    """However the block is left, the span ends with the way out; the consumer's fault is not the model's."""
    with capture() as captured, ScriptedServer([ENDLESS]) as server:
        answered = connect(server.url).within(exc)
        assert answered.status == status
        assert server.requests[0].hung_up.wait(5)

    assert [span.status for span in captured.spans] == ["unset"]


def test_a_stream_that_is_never_used_sends_nothing(connect):
    """No request, no span, no error for a stream that was only made."""
    with capture() as captured, ScriptedServer([HELLO]) as server:
        driver = connect(server.url)
        answered = driver.client.stream(MESSAGES)
        assert answered.status == "open"
        del answered
        gc.collect()

    assert (server.requests, captured.spans) == ([], [])


async def test_a_cancelled_task_ends_its_stream():
    """Cancelling a read is `cancelled`, no error and no success; the server is hung up on."""
    with capture() as captured, ScriptedServer([[head(), piece(event(delta("a"))), AwaitClose()]]) as server:
        async with AsyncLLMClient(server.url, model="tiny") as client:
            answered = client.stream(MESSAGES)
            await anext(answered)
            waiting = asyncio.ensure_future(anext(answered))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert answered.status == "cancelled"
        assert server.requests[0].hung_up.wait(5)
    (span,) = captured.spans

    assert (span.status, span.attributes[semconv.OUTCOME]) == ("unset", "cancelled")


async def test_a_cancelled_whole_answer_is_cancelled():
    """The same for `chat`, also before the headers came."""
    with capture() as captured, ScriptedServer([[AwaitClose()]]) as server:
        async with AsyncLLMClient(server.url, model="tiny") as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await client.chat(MESSAGES)

    assert [s.attributes[semconv.OUTCOME] for s in captured.spans] == ["cancelled"]


async def test_many_streams_at_once():
    """Concurrent streams of one client keep their answers and their spans apart."""
    replies = [stream(event(delta(f"{i}a")), event(delta("b", finish="stop")), DONE) for i in range(20)]
    with capture() as captured, ScriptedServer(replies) as server:
        async with AsyncLLMClient(server.url, model="tiny") as client:

            async def ask() -> str:
                answered = client.stream(MESSAGES)
                async for _ in answered:
                    pass
                return answered.text

            found = await asyncio.gather(*(ask() for _ in replies))

    assert sorted(found) == sorted(f"{i}ab" for i in range(20))
    assert len({s.span_id for s in captured.spans}) == 20


# --- Connections -------------------------------------------------------------------------------------------


def test_a_connection_serves_many_calls(connect):
    """Answers that were read to their end give their connection back, streamed or not."""
    with capture() as captured, ScriptedServer([HELLO, answer(message()), HELLO]) as server:
        driver = connect(server.url)
        driver.take()
        driver.chat()
        driver.take()

    assert server.n_connections == 1
    connects = [s.attributes[semconv.CONNECT_NS] for s in captured.spans]
    assert connects[0] > connects[1]


def test_a_body_that_stays_open_after_done_does_not_hang(connect):
    """[DONE] is the end for the consumer; a server that keeps the connection open costs it, not the time."""
    reply = [head(), piece(event(delta("a", finish="stop")) + DONE), AwaitClose()]
    with capture() as captured, ScriptedServer([reply]) as server:
        _, answered = connect(server.url, timeout=None).take()
        assert answered.status == "ok"
        assert server.requests[0].hung_up.wait(5)

    assert captured.spans[0].status == "unset"


# --- Faults ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        pytest.param(
            answer({"error": {"message": "no such model"}}, "404 Not Found"), "404.*no such model", id="404"
        ),
        pytest.param(answer({"detail": "bad field"}, "422 No"), "422.*bad field", id="detail"),
        pytest.param(answer(b"<h1>Bad gateway</h1>", "502 Bad Gateway"), "502.*Bad gateway", id="html"),
        pytest.param(answer(b"", "500 Oops"), "500.*no reason", id="silent"),
        pytest.param([Close()], "closed the connection", id="closed"),
        pytest.param([Reset()], "closed the connection", id="reset"),
        pytest.param([b"HTTP/1.1 200"], "in time", id="half-a-head"),
        pytest.param([b"nonsense\r\n\r\n"], "closed the connection", id="no-http"),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_refused_call_is_one_clear_error(connect, reply, said, streamed):
    """Whatever a server does instead of answering is an `EngineError` that names it, and an error span."""
    with capture() as captured, ScriptedServer([reply]) as server:
        driver = connect(server.url, timeout=0.5)
        with pytest.raises(hotspan.EngineError, match=f"(?s){server.url}.*{said}"):
            driver.take() if streamed else driver.chat()

    assert [(s.status, s.attributes[semconv.ERROR_TYPE]) for s in captured.spans] == [
        ("error", "EngineError")
    ]
    assert captured.spans[0].attributes[semconv.ATTEMPTS] == 1


def test_no_server_is_one_clear_error(connect):
    """Nothing listening is said as such."""
    with (
        capture() as captured,
        pytest.raises(hotspan.EngineError, match=r"no connection to .*Is the server running"),
    ):
        connect("http://127.0.0.1:1").chat()

    assert captured.spans[0].status == "error"
    assert semconv.SEND_OFFSET_NS not in captured.spans[0].attributes


def test_a_whole_answer_that_breaks_off_is_an_error(connect):
    """Half a JSON body is an `EngineError`."""
    with ScriptedServer([[head(content_type="application/json", length=500) + b'{"id"', Close()]]) as server:
        with pytest.raises(hotspan.EngineError, match="broke off"):
            connect(server.url).chat()


def test_a_stream_that_stalls_is_an_error(connect):
    """A server that stops sending is given up after the timeout, with the deltas before it delivered."""
    with capture() as captured, ScriptedServer([[head(), piece(event(delta("a"))), AwaitClose()]]) as server:
        with pytest.raises(hotspan.StreamError, match="stopped sending"):
            connect(server.url, timeout=2.0).take()

    assert captured.spans[0].attributes[semconv.STREAM_ITEMS] == 1
    assert captured.spans[0].status == "error"


def test_engines_that_give_up_are_no_success(connect):
    """A finish reason of "abort" is an error status without an exception: the text so far was delivered."""
    with (
        capture() as captured,
        ScriptedServer([stream(event(delta("a")), event(delta(finish="abort")), DONE)]) as server,
    ):
        deltas, answered = connect(server.url).take()

    assert (texts(deltas), answered.status) == (["a", ""], "error")
    assert captured.spans[0].status == "error"


# --- A slow consumer ---------------------------------------------------------------------------------------


def test_a_slow_consumer_makes_hold_grow_not_ttft():
    """The time between deltas is hold; TTFT and busy stay the server's."""
    gate = threading.Event()
    reply = [head(), piece(event(delta("", role="assistant"))), piece(event(delta("a"))), Wait(gate)]
    reply += [piece(event(delta("b", finish="stop"))), piece(DONE), END]
    with (
        capture() as captured,
        ScriptedServer([reply]) as server,
        LLMClient(server.url, model="tiny") as client,
    ):
        answered = client.stream(MESSAGES)
        next(answered)
        gate.wait(0.3)  # the consumer's own work
        gate.set()
        list(answered)
    found = captured.spans[0].attributes

    assert found[semconv.STREAM_HOLD_NS] >= 300_000_000
    assert found[semconv.TTFT_NS] < 300_000_000
    assert found[semconv.STREAM_BUSY_NS] + found[semconv.STREAM_HOLD_NS] <= captured.spans[0].duration_ns


def test_tokens_that_wait_for_a_slow_consumer_are_stamped_when_they_came():
    """A consumer ten times slower than the server stretches the call, not the time per token."""
    words = [
        step
        for i in range(20)
        for step in (Pause(0.005), event(delta("w", finish="stop" if i == 19 else None)))
    ]
    with capture() as captured, ScriptedServer([stream(*words, DONE)]) as server:
        with LLMClient(server.url, model="tiny") as client:
            idle = threading.Event()
            for _ in client.stream(MESSAGES):
                idle.wait(0.05)
    span = captured.spans[0]

    assert span.duration_ns >= 20 * 50_000_000
    assert 95_000_000 <= span.attributes[semconv.LAST_TOKEN_NS] < span.duration_ns / 2


# --- The end of the process -------------------------------------------------------------------------------


PROGRAM = """
import os, sys
import hotspan
from hotspan.tracer.clients.llm import LLMClient

url, path, how = sys.argv[1:]
hotspan.configure(file=path)
stream = LLMClient(url, model="tiny").stream([{"role": "user", "content": "Hi"}])
print(next(stream).text, flush=True)
if how == "fork":
    child = os.fork()
    if not child:
        sys.exit(0)
    os.waitpid(child, 0)
if how == "raise":
    raise SystemExit(3)
"""


@pytest.mark.parametrize(("how", "code"), [("end", 0), ("raise", 3), ("fork", 0)])
def test_a_stream_that_is_open_at_exit_is_written_once(tmp_path, how, code):
    """The end of the program ends an open stream as abandoned, once, also with a forked child."""
    path = tmp_path / "run.jsonl"
    with ScriptedServer([ENDLESS]) as server:
        arguments = [
            sys.executable,
            "-W",
            "ignore::DeprecationWarning",
            "-c",
            PROGRAM,
            server.url,
            str(path),
            how,
        ]
        ended = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)

    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "a\n", "")
    assert path.read_text().count('"chat tiny"') == 1
    assert "abandoned" in path.read_text()
