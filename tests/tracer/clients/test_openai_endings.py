"""`trace_openai` over real sockets: every way out of a call ends its span once, and stays what it was."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import subprocess
import sys

import openai
import pytest
from openai_drivers import BROKEN, MESSAGES, texts
from servers import (
    DONE,
    AwaitClose,
    Close,
    Reset,
    ScriptedServer,
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

HELLO = stream(event(delta("", role="assistant")), event(delta("Hi")), event(delta(finish="stop")), DONE)
ENDLESS = [head(), piece(event(delta("a")) + event(delta("b"))), AwaitClose()]


# --- The user leaves ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["close", "drop"])
def test_a_stream_left_early_is_abandoned(connect_openai, end):
    """Closing or dropping an unfinished stream ends its span once; the next call is another."""
    with capture() as captured, ScriptedServer([ENDLESS, HELLO]) as server:
        driver = connect_openai(server)
        assert texts(driver.take(1, end=end)) == ["a"]
        driver.take()
    abandoned, good = captured.spans

    assert (abandoned.status, abandoned.attributes[semconv.OUTCOME]) == ("unset", "abandoned")
    assert abandoned.attributes[semconv.STREAM_ITEMS] == 1
    assert (good.status, semconv.OUTCOME in good.attributes) == ("unset", False)


def test_a_stream_that_is_never_iterated_is_abandoned(connect_openai):
    """The request was sent: dropping its stream unread is one abandoned call."""
    with capture() as captured, ScriptedServer([ENDLESS]) as server:
        left = connect_openai(server).chat(stream=True)
        if isinstance(left, openai.Stream):
            left.response.close()
        del left
        gc.collect()
        assert [span.attributes[semconv.OUTCOME] for span in captured.spans] == ["abandoned"]


def test_leaving_after_the_finish_reason_is_no_abandonment(connect_openai):
    """Who stops at the finish reason has the whole answer: the call is ok."""
    reply = [head(), piece(event(delta("a", finish="stop"))), AwaitClose()]
    with capture() as captured, ScriptedServer([reply]) as server:
        connect_openai(server).take(1, end="close")

    assert semconv.OUTCOME not in captured.spans[0].attributes


@pytest.mark.parametrize(
    ("exc", "outcome"),
    [
        pytest.param(None, "abandoned", id="left"),
        pytest.param(ValueError("mine"), "abandoned", id="the-consumer-s-own-fault"),
        pytest.param(asyncio.CancelledError(), "cancelled", id="cancelled"),
        pytest.param(KeyboardInterrupt(), "interrupted", id="interrupted"),
    ],
)
def test_a_with_statement_ends_the_call(connect_openai, exc, outcome):
    """However the block is left, the span ends with the way out; the consumer's fault is not the model's."""
    with capture() as captured, ScriptedServer([ENDLESS]) as server:
        connect_openai(server).within(exc)
        assert server.requests[0].hung_up.wait(5)
    (span,) = captured.spans

    assert (span.status, span.attributes[semconv.OUTCOME]) == ("unset", outcome)


def test_a_call_in_an_exception_handler_is_no_error(connect_openai):
    """A fallback that is streamed while another exception is handled has nothing to do with that one."""
    with capture() as captured, ScriptedServer([HELLO, ENDLESS]) as server:
        driver = connect_openai(server)
        try:
            {}["nothing"]
        except LookupError:
            driver.take()
            driver.take(1, end="close")
    good, left = captured.spans

    assert (good.status, semconv.OUTCOME in good.attributes) == ("unset", False)
    assert (left.status, left.attributes[semconv.OUTCOME]) == ("unset", "abandoned")


async def test_a_cancelled_task_ends_its_stream():
    """Cancelling a read is `cancelled`, no error and no success, and the task sees its cancellation."""
    reply = [head(), piece(event(delta("a"))), AwaitClose()]
    with capture() as captured, ScriptedServer([reply]) as server:
        client = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none")
        async with hotspan.trace_openai(client):
            answered = await client.chat.completions.create(model="tiny", messages=MESSAGES, stream=True)
            await anext(answered)
            waiting = asyncio.ensure_future(anext(answered))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
    (span,) = captured.spans

    assert (span.status, span.attributes[semconv.OUTCOME]) == ("unset", "cancelled")


async def test_a_call_that_is_cancelled_before_its_answer():
    """The same before the response's headers came."""
    with capture() as captured, ScriptedServer([[AwaitClose()]]) as server:
        client = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none")
        async with hotspan.trace_openai(client):
            work = client.chat.completions.create(model="tiny", messages=MESSAGES)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(work, 0.2)
    (span,) = captured.spans

    assert (span.status, span.attributes[semconv.OUTCOME]) == ("unset", "cancelled")


# --- The server fails --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"error": {"message": "out of memory"}}, id="error-object"),
        pytest.param({"error": "out of memory"}, id="error-text"),
    ],
)
def test_an_error_inside_a_stream_is_an_error(connect_openai, broken):
    """The client's exception reaches the user after the chunks before it, and the span is an error."""
    reply = stream(event(delta("a")), event(delta("b")), event(broken), DONE)
    with capture() as captured, ScriptedServer([reply]) as server:
        with pytest.raises(openai.APIError):
            connect_openai(server).take()
    (span,) = captured.spans

    assert (span.status, span.attributes[semconv.ERROR_TYPE]) == ("error", "APIError")
    assert span.attributes[semconv.STREAM_ITEMS] == 2


def test_a_named_error_event_is_an_error(connect_openai):
    """A server that names its event `error` has failed, whatever the client makes of it."""
    reply = stream(event(delta("a")), b"event: error\n" + event({"message": "no"}), DONE)
    with capture() as captured, ScriptedServer([reply]) as server:
        connect_openai(server).take()

    assert captured.spans[0].status == "error"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param({"object": "error", "message": "no", "code": 503}, "503", id="number"),
        pytest.param({"object": "error", "code": None, "type": "overloaded"}, "overloaded", id="type"),
        pytest.param({"object": "error", "code": "words of a user, kept out"}, "finish_reason", id="content"),
    ],
)
def test_an_error_that_the_client_passes_on_has_the_servers_name(connect_openai, error, expected):
    """The server's code or type is the error's type; what may be content is not."""
    with capture() as captured, ScriptedServer([stream(event(delta("a")), event(error), DONE)]) as server:
        driver = connect_openai(server)
        driver.read(stream=True)

    assert captured.spans[0].status == "error"
    assert captured.spans[0].attributes[semconv.ERROR_TYPE] == expected


def test_a_stream_that_just_stops_is_truncated(connect_openai):
    """Without a finish reason and [DONE] the client ends normally; the span says truncated."""
    with capture() as captured, ScriptedServer([stream(event(delta("a")), event(delta("b")))]) as server:
        assert texts(connect_openai(server).take()) == ["a", "b"]
    (span,) = captured.spans

    assert (span.status, span.attributes[semconv.OUTCOME]) == ("error", "truncated")


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(stream(event(delta("a")), event(delta(finish="stop"))), id="finish-reason-without-done"),
        pytest.param(stream(event(delta("a")), DONE), id="done-without-finish-reason"),
        pytest.param([*stream(event(delta("a", finish="stop")))[:-1], Close()], id="closed-after-the-finish"),
    ],
)
def test_one_end_mark_is_enough(connect_openai, reply):
    """A finish reason or [DONE] makes an answer whole, and then a broken connection is none of its matter."""
    with capture() as captured, ScriptedServer([reply]) as server:
        with contextlib.suppress(Exception):  # a closed connection is the user's matter all the same
            connect_openai(server).take()
    (span,) = captured.spans

    assert (span.status, semconv.OUTCOME in span.attributes) == ("unset", False)


@pytest.mark.parametrize("how", [Close(), Reset()])
def test_a_connection_that_breaks_is_truncated(connect_openai, how):
    """The transport's exception reaches the user, and the span is truncated."""
    with capture() as captured, ScriptedServer([[head(), piece(event(delta("a"))), how]]) as server:
        with pytest.raises(BROKEN):
            connect_openai(server).take()
    (span,) = captured.spans

    assert (span.status, span.attributes[semconv.OUTCOME]) == ("error", "truncated")


def test_a_stream_that_stalls_is_an_error(connect_openai):
    """A timeout inside a stream is an error, with the chunks before it delivered."""
    with capture() as captured, ScriptedServer([[head(), piece(event(delta("a"))), AwaitClose()]]) as server:
        with pytest.raises(BROKEN):
            connect_openai(server, timeout=2.0).take()
    (span,) = captured.spans

    assert (span.status, span.attributes[semconv.STREAM_ITEMS]) == ("error", 1)
    assert semconv.OUTCOME not in span.attributes


def test_a_refused_call_is_an_error_with_its_status(connect_openai):
    """The client's own exception object, unwrapped, and the HTTP status on the span."""
    refusal = answer({"error": {"message": "no such model"}}, "404 Not Found")
    with capture() as captured, ScriptedServer([refusal]) as server:
        with pytest.raises(openai.NotFoundError) as caught:
            connect_openai(server).chat(stream=True)
    (span,) = captured.spans

    assert caught.value.status_code == 404
    assert (span.status, span.attributes[semconv.ERROR_TYPE]) == ("error", "NotFoundError")
    assert (span.attributes[semconv.HTTP_STATUS], span.attributes[semconv.ATTEMPTS]) == (404, 1)


def test_a_chunk_that_is_no_json_is_an_error(connect_openai):
    """What the client raises over a broken event is the call's error."""
    with (
        capture() as captured,
        ScriptedServer([stream(event(delta("a")), b"data: {broken\n\n", DONE)]) as server,
    ):
        with pytest.raises(ValueError, match=r"Expecting"):
            connect_openai(server).take()

    assert captured.spans[0].status == "error"


# --- Raw ---------------------------------------------------------------------------------------------------


def test_a_raw_stream_that_is_left_early_is_abandoned(connect_openai):
    """`with_streaming_response`, left after one line."""
    with capture() as captured, ScriptedServer([ENDLESS]) as server:
        assert len(connect_openai(server).read(1, stream=True)) == 1
        assert server.requests[0].hung_up.wait(5)

    assert captured.spans[0].attributes[semconv.OUTCOME] == "abandoned"


def test_a_helper_that_is_left_early_is_abandoned(connect_openai):
    """`chat.completions.stream`, left after one event."""
    with capture() as captured, ScriptedServer([ENDLESS]) as server:
        path = "chat.completions.stream"
        if not hasattr(connect_openai(server).client.chat.completions, "stream"):
            path = "beta.chat.completions.stream"
        assert connect_openai(server).consume(path, 1, model="tiny", messages=MESSAGES)
        assert server.requests[0].hung_up.wait(5)

    assert captured.spans[0].attributes[semconv.OUTCOME] == "abandoned"


# --- The end of the process --------------------------------------------------------------------------------

PROGRAM = """
import os, sys
import openai, hotspan

url, path, how = sys.argv[1:]
hotspan.configure(file=path)
client = hotspan.trace_openai(openai.OpenAI(base_url=url + "/v1", api_key="none"))
messages = [{"role": "user", "content": "Hi"}]
stream = client.chat.completions.create(model="tiny", messages=messages, stream=True)
print(next(stream).choices[0].delta.content, flush=True)
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
        command = [sys.executable, "-W", "ignore", "-c", PROGRAM, server.url, str(path), how]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    # CPython 3.13.0 crashes at the end of this program also without Hotspan.
    crash = {-signal.SIGSEGV} if sys.version_info[:3] == (3, 13, 0) else set()
    assert ended.returncode in {code, *crash}
    assert (ended.stdout, ended.stderr) == ("a\n", "")
    assert path.read_text().count('"chat tiny"') == 1
    assert "abandoned" in path.read_text()


def test_many_calls_at_once_are_told_apart():
    """Fifty streams in one loop: each span has its own trace, answer and attempt."""

    async def one(client):
        async for _ in await client.chat.completions.create(model="tiny", messages=MESSAGES, stream=True):
            pass

    async def main(url):
        async with hotspan.trace_openai(openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none")) as client:
            await asyncio.gather(*(one(client) for _ in range(50)))

    with capture() as captured, ScriptedServer([HELLO]) as server:
        asyncio.run(main(server.url))

    assert len({span.trace_id for span in captured.spans}) == 50
    assert {span.attributes[semconv.CHUNKS] for span in captured.spans} == {1}
    sent = {r.headers["traceparent"].split("-")[1] for r in server.requests}
    assert sent == {span.trace_id for span in captured.spans}


def test_an_answer_without_a_stream_is_still_an_answer(connect_openai):
    """A server that ignores `stream` and sends one JSON object: no tokens are made up."""
    with capture() as captured, ScriptedServer([answer(message("Hello"))]) as server:
        assert connect_openai(server).take() == []
    (span,) = captured.spans

    assert span.attributes[semconv.OUTPUT_TOKENS] == 2
    assert semconv.TTFT_NS not in span.attributes


def test_a_cut_answer_of_which_the_client_says_nothing_is_truncated(connect_openai):
    """Raw responses are not parsed, so nobody but the span says that the answer is no whole one."""
    with capture() as captured, ScriptedServer([answer(b'{"id": "x", ')]) as server:
        assert connect_openai(server).read() == ['{"id": "x", ']
    (span,) = captured.spans

    assert (span.status, span.attributes[semconv.OUTCOME]) == ("error", "truncated")


def test_a_stream_that_was_not_asked_for_has_tokens_and_no_times(connect_openai):
    """The client hands the user its text; the answer is whole, and when its tokens came is not known."""
    with capture() as captured, ScriptedServer([HELLO]) as server:
        assert connect_openai(server).chat()
    (span,) = captured.spans

    assert (span.status, span.attributes[semconv.CHUNKS]) == ("unset", 1)
    assert not {semconv.TTFB_NS, semconv.TTFT_NS, semconv.BUFFERED} & set(span.attributes)
