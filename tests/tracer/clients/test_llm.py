"""Both clients over real sockets: what they send, what they return, and every way out of a stream.

The two clients share their logic; each test here runs on both.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from servers import (
    DONE,
    END,
    AwaitClose,
    Close,
    Pause,
    Reset,
    ScriptedServer,
    Step,
    Wait,
    answer,
    delta,
    event,
    head,
    message,
    piece,
    stream,
    usage,
)

import hotspan
from hotspan.testing import capture
from hotspan.tracer import semconv
from hotspan.tracer.clients.llm import AsyncLLMClient, LLMClient

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hotspan.tracer.clients.answer import Completion, Delta

MESSAGES = [{"role": "user", "content": "Hi"}]
HELLO = stream(
    event(delta("", role="assistant")),
    event(delta("Hel")),
    event(delta("lo", finish="stop")),
    event(usage(5, 2)),
    DONE,
)
ENDLESS: list[Step] = [head(), piece(event(delta("a")) + event(delta("b"))), AwaitClose()]


class Blocking:
    """Drives `LLMClient` as a blocking program does."""

    def __init__(self, url: str, **options: Any) -> None:
        self.client = LLMClient(url, **{"model": "tiny", **options})

    def chat(self, **body: Any) -> Completion:
        """Return a whole answer."""
        return self.client.chat(MESSAGES, **body)

    def take(self, n: int | None = None, *, end: str = "close", **body: Any) -> tuple[list[Delta], Any]:
        """Return the first `n` deltas (None: all) and the stream, left in the given way."""
        answered, seen = self.client.stream(MESSAGES, **body), []
        for piece_ in answered:
            seen.append(piece_)
            if len(seen) == n:
                break
        if end == "close":
            answered.close()
        elif end == "drop":
            exchange = answered._exchange  # noqa: SLF001 - its end is looked at after the stream is gone
            del answered
            gc.collect()
            return seen, exchange.call
        return seen, answered

    def within(self, exc: BaseException | None) -> Any:
        """Enter a stream, take one delta, and leave it, by `exc` if there is one."""
        with contextlib.suppress(BaseException), self.client.stream(MESSAGES) as answered:
            next(answered)
            if exc is not None:
                raise exc
        return answered

    def close(self) -> None:
        """Close the client."""
        self.client.close()


class Awaiting:
    """Drives `AsyncLLMClient` in an event loop of its own; the same operations."""

    def __init__(self, url: str, **options: Any) -> None:
        self.runner = asyncio.Runner()
        self.client = AsyncLLMClient(url, **{"model": "tiny", **options})

    def chat(self, **body: Any) -> Completion:
        """Return a whole answer."""
        return self.runner.run(self.client.chat(MESSAGES, **body))

    def take(self, n: int | None = None, *, end: str = "close", **body: Any) -> tuple[list[Delta], Any]:
        """Return the first `n` deltas and the stream, left in the given way."""
        return self.runner.run(self._take(n, end, body))

    async def _take(self, n: int | None, end: str, body: dict[str, Any]) -> tuple[list[Delta], Any]:
        answered, seen = self.client.stream(MESSAGES, **body), []
        async for piece_ in answered:
            seen.append(piece_)
            if len(seen) == n:
                break
        if end == "close":
            await answered.close()
        elif end == "drop":
            exchange = answered._exchange  # noqa: SLF001 - its end is looked at after the stream is gone
            del answered
            gc.collect()
            return seen, exchange.call
        return seen, answered

    def within(self, exc: BaseException | None) -> Any:
        """Enter a stream, take one delta, and leave it, by `exc` if there is one."""
        return self.runner.run(self._within(exc))

    async def _within(self, exc: BaseException | None) -> Any:
        with contextlib.suppress(BaseException):
            async with self.client.stream(MESSAGES) as answered:
                await anext(answered)
                if exc is not None:
                    raise exc
        return answered

    def close(self) -> None:
        """Close the client."""
        self.runner.run(self.client.close())
        self.runner.close()


@pytest.fixture(params=[Blocking, Awaiting])
def connect(request):
    """A maker of drivers of either client, which are closed after the test."""
    opened: list[Any] = []

    def make(url: str, **options: Any) -> Any:
        opened.append(request.param(url, **options))
        return opened[-1]

    yield make
    for driver in opened:
        driver.close()


def texts(deltas: Iterable[Delta]) -> list[str]:
    """Return the text of each delta."""
    return [d.text for d in deltas]


# --- Answers -----------------------------------------------------------------------------------------------


def test_a_stream_gives_deltas_and_then_the_whole(connect):
    """Deltas come in order without the empty ones; text, usage, finish reason and status follow."""
    with ScriptedServer([HELLO]) as server:
        deltas, answered = connect(server.url).take(max_tokens=7, temperature=0.5)

    assert texts(deltas) == ["Hel", "lo"]
    assert (answered.text, answered.finish_reason, answered.status) == ("Hello", "stop", "ok")
    assert answered.usage["completion_tokens"] == 2
    assert server.requests[0].target == "/v1/chat/completions"
    assert server.requests[0].json == {
        "model": "tiny",
        "messages": MESSAGES,
        "max_tokens": 7,
        "temperature": 0.5,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_whole_answer(connect):
    """`chat` returns the answer's parts."""
    with ScriptedServer([answer(message())]) as server:
        found = connect(server.url, api_key="k", headers={"X-Team": "a"}).chat(stop=["\n"])

    assert (found.text, found.finish_reason, found.status) == ("Hi", "stop", "ok")
    assert found.usage["prompt_tokens"] == 5
    assert server.requests[0].json == {"model": "tiny", "messages": MESSAGES, "stop": ["\n"]}
    assert server.requests[0].headers["authorization"] == "Bearer k"
    assert server.requests[0].headers["x-team"] == "a"


def test_a_server_that_does_not_stream_is_read_all_the_same(connect):
    """One JSON object in answer to a streamed request is one delta."""
    with ScriptedServer([answer(message("Hello"))]) as server:
        deltas, answered = connect(server.url).take()

    assert (texts(deltas), answered.status) == (["Hello"], "ok")


def test_a_compressed_stream_is_read(connect):
    """A server that compresses although nobody asked is understood."""
    import gzip  # noqa: PLC0415 - only here

    body = gzip.compress(event(delta("Hi", finish="stop")) + DONE)
    reply = [head(length=len(body), content_encoding="gzip") + body]
    with ScriptedServer([reply]) as server:
        deltas, _ = connect(server.url).take()

    assert texts(deltas) == ["Hi"]


def test_the_model_is_asked_for_once(connect):
    """Without a model the server's first one is used, and what serves it is known from then on."""
    models = answer({"data": [{"id": "first", "owned_by": "vllm"}, {"id": "second"}]})
    with capture() as captured, ScriptedServer([models, HELLO]) as server:
        driver = connect(server.url, model=None)
        driver.take()
        driver.take()

    assert [r.target for r in server.requests] == [
        "/v1/models",
        "/v1/chat/completions",
        "/v1/chat/completions",
    ]
    assert server.requests[1].json["model"] == "first"
    assert [s.name for s in captured.spans] == ["chat first", "chat first"]
    assert captured.spans[0].attributes[semconv.ENGINE] == "vllm"


@pytest.mark.parametrize(
    "reply", [answer({"data": []}), answer({}), answer(b"<html>"), answer({"error": "no"}, "404 Not Found")]
)
def test_no_model_to_be_had_is_an_error(connect, reply):
    """A server without a list of models asks the user to name one."""
    with ScriptedServer([reply]) as server, pytest.raises(hotspan.EngineError, match=r"/v1"):
        connect(server.url, model=None).chat()


def test_a_user_s_own_http_client_is_used_and_left_open():
    """`http_client` is used for every request and stays the caller's to close."""
    with ScriptedServer([HELLO]) as server, httpx.Client(headers={"X-Mine": "1"}, trust_env=False) as mine:
        with LLMClient(server.url, model="tiny", http_client=mine) as client:
            assert texts(client.stream(MESSAGES)) == ["Hel", "lo"]
        assert not mine.is_closed
    assert server.requests[0].headers["x-mine"] == "1"


def test_an_asynchronous_http_client_is_refused_by_the_blocking_one():
    """Handing the wrong kind of HTTP client in is an error that says so, not a hanging call."""
    with pytest.raises(hotspan.ConfigurationError, match=r"httpx\.Client"):
        LLMClient("http://h", http_client=httpx.AsyncClient())


@pytest.mark.parametrize("kind", [LLMClient, AsyncLLMClient])
@pytest.mark.parametrize("options", [{"max_retries": -1}])
def test_options_that_cannot_be_meant_are_refused(kind, options):
    """A wrong option is an error at construction."""
    with pytest.raises(hotspan.ConfigurationError):
        kind("http://h", **options)


def test_stream_is_no_option_of_the_body(connect):
    """Whether an answer is streamed is said by the method."""
    with pytest.raises(hotspan.ConfigurationError, match="stream"):
        connect("http://127.0.0.1:1").chat(stream=True)


# --- The span ----------------------------------------------------------------------------------------------


def test_the_span_says_what_was_asked_and_answered(connect):
    """Every attribute of a streamed call is explained by the request and the answer."""
    with capture() as captured, ScriptedServer([HELLO]) as server:
        connect(server.url).take(max_tokens=7, temperature=0.5)
    (span,) = captured.spans
    found = dict(span.attributes)

    assert (span.name, span.kind, span.status) == ("chat tiny", "client", "unset")
    assert (found.pop(semconv.SERVER_ADDRESS), found.pop(semconv.SERVER_PORT)) == ("127.0.0.1", server.port)
    for key in (
        semconv.CONNECT_NS,
        semconv.REQUEST_WRITE_NS,
        semconv.TTFB_NS,
        semconv.TTFT_NS,
        semconv.TPOT_NS,
    ):
        assert found.pop(key, 0) >= 0
    for key in (semconv.SEND_OFFSET_NS, semconv.HEADERS_NS, semconv.TTFA_NS, semconv.LAST_TOKEN_NS):
        assert 0 <= found.pop(key) <= span.duration_ns
    for key in (semconv.STREAM_BUSY_NS, semconv.STREAM_HOLD_NS):
        assert 0 <= found.pop(key) <= span.duration_ns
    for key in (semconv.TIME_TO_FIRST_CHUNK, semconv.CHUNK_GAPS_NS, semconv.BUFFERED):
        found.pop(key, None)
    assert found == {
        semconv.STAGE: "generation",
        semconv.OPENINFERENCE_KIND: "LLM",
        semconv.OPERATION: "chat",
        semconv.PROVIDER: "openai-compatible",
        semconv.REQUEST_MODEL: "tiny",
        semconv.REQUEST_STREAM: True,
        semconv.REQUEST_MAX_TOKENS: 7,
        semconv.REQUEST_TEMPERATURE: 0.5,
        semconv.ATTEMPTS: 1,
        semconv.HTTP_STATUS: 200,
        semconv.STREAM_ITEMS: 2,
        semconv.CHUNKS: 2,
        semconv.INPUT_TOKENS: 5,
        semconv.OUTPUT_TOKENS: 2,
        semconv.RESPONSE_ID: "chatcmpl-1",
        semconv.RESPONSE_MODEL: "tiny",
        semconv.FINISH_REASONS: ["stop"],
    }


def test_the_server_s_span_becomes_a_child_of_the_call_s(connect):
    """The request carries the call's own `traceparent`, and the call is a child of the caller's stage."""
    with capture() as captured, ScriptedServer([HELLO]) as server:
        driver = connect(server.url)
        with hotspan.request("ask"):
            driver.take()
    call, root = captured.spans

    assert (call.name, call.parent_id) == ("chat tiny", root.span_id)
    assert server.requests[0].headers["traceparent"] == f"00-{call.trace_id}-{call.span_id}-01"


def test_a_stream_belongs_to_where_it_was_asked_for():
    """A stream that is handed out and consumed later is a child of the stage that asked for it."""
    with (
        capture() as captured,
        ScriptedServer([HELLO]) as server,
        LLMClient(server.url, model="tiny") as client,
    ):
        with hotspan.request("ask"):
            answered = client.stream(MESSAGES)
        list(answered)
    root, call = captured.spans

    assert call.parent_id == root.span_id


def test_what_the_consumer_opens_is_no_child_of_the_call():
    """Between two deltas the consumer's own stage is current, not the call's span."""
    with (
        capture() as captured,
        ScriptedServer([HELLO]) as server,
        LLMClient(server.url, model="tiny") as client,
    ):
        with hotspan.request("ask"):
            for _ in client.stream(MESSAGES):
                with hotspan.stage("show"):
                    pass
    root = captured.spans[-1]

    assert {s.parent_id for s in captured.spans if s.name == "show"} == {root.span_id}


@pytest.mark.parametrize("wanted", [False, True])
def test_content_is_recorded_only_when_asked_for(connect, wanted):
    """No word of prompt or answer is in the span, unless content is captured."""
    reply = stream(event(delta("canary-answer", finish="stop")), DONE)
    refusal = answer({"error": {"message": "canary-reason"}}, "400 Bad Request")
    with capture(capture_content=wanted) as captured, ScriptedServer([reply, refusal]) as server:
        driver = connect(server.url)
        driver.take()
        with pytest.raises(hotspan.EngineError, match="canary-reason"):
            driver.chat()
    written = json.dumps([repr(span) for span in captured.spans])

    for canary in ("canary-answer", "canary-reason"):
        assert (canary in written) is wanted


def test_a_call_works_where_nothing_is_traced(connect):
    """Without tracing the client is a client: answers, statuses and errors are the same."""
    with ScriptedServer([HELLO, ENDLESS, answer({"error": "no"}, "500 Oops")]) as server:
        driver = connect(server.url)
        assert driver.take()[1].status == "ok"
        assert driver.take(1)[1].status == "abandoned"
        with pytest.raises(hotspan.EngineError):
            driver.chat()


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
            connect(server.url, timeout=0.2).take()

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
