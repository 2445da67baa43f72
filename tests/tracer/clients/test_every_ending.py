"""Each client with each way to end a stream: one ended span, the right status, no failure among successes."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, NamedTuple

import drivers
import openai_drivers
import pytest
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

A, B = event(delta("a")), event(delta("b"))
ENDLESS = [head(), piece(A + B), AwaitClose()]
WHOLE = stream(event(delta("", role="assistant")), A, event(delta("b", finish="stop")), DONE)


class Ending(NamedTuple):
    """How a stream ends, and what its span says then."""

    reply: list[Any]
    status: str
    leave: str = "exhaust"  # | close | drop, after one token or after all | with: the statement is left
    exc: BaseException | None = None  # by which the `with` statement is left


# By the server.
ENDINGS = {
    "whole": Ending(WHOLE, "ok"),
    "whole-then-closed": Ending(WHOLE, "ok", "close after all"),
    "whole-then-dropped": Ending(WHOLE, "ok", "drop after all"),
    "whole-without-done": Ending(stream(A, event(delta("b", finish="stop"))), "ok"),
    "whole-then-connection-lost": Ending([head(), piece(event(delta("a", finish="stop"))), Close()], "ok"),
    "error-object": Ending(stream(A, event({"error": {"message": "no"}}), DONE), "error"),
    "error-text": Ending(stream(A, event({"error": "no"}), DONE), "error"),
    "error-event": Ending(stream(A, b"event: error\n" + event({"message": "no"}), DONE), "error"),
    "engine-gave-up": Ending(stream(A, event(delta(finish="abort")), DONE), "error"),
    "garbage": Ending(stream(A, b"data: {nonsense\n\n", DONE), "error"),
    "refused": Ending(answer({"error": {"message": "no"}}, "500 No"), "error"),
    "limited": Ending(answer({"error": {"message": "no"}}, "429 Too Many", retry_after="1"), "error"),
    "hung-up": Ending([Close()], "error"),
    "stalled": Ending([head(), piece(A), AwaitClose()], "error"),
    "stops": Ending(stream(A, B), "truncated"),
    "empty": Ending(stream(), "truncated"),
    "cut-json": Ending(answer(b'{"id": "x", '), "truncated"),
    "no-body": Ending(answer(b""), "truncated"),
    "a-page": Ending([head(content_type="text/html", length=6) + b"<html>"], "truncated"),
    "connection-closed-in-json": Ending(
        [head(content_type="application/json"), piece(b'{"id'), Close()], "truncated"
    ),
    "role-only": Ending(stream(event(delta("", role="assistant"))), "truncated"),
    "connection-closed": Ending([head(), piece(A + B), Close()], "truncated"),
    "closed-in-a-chunk": Ending([head(), piece(A + B), b"5\r\nda", Close()], "truncated"),
    "reset": Ending([head(), piece(A + B), Reset()], "truncated"),
    # By the consumer.
    "closed": Ending(ENDLESS, "abandoned", "close"),
    "dropped": Ending(ENDLESS, "abandoned", "drop"),
    "left": Ending(ENDLESS, "abandoned", "with"),
    "the-consumers-own-fault": Ending(ENDLESS, "abandoned", "with", ValueError("mine")),
    "cancelled": Ending(ENDLESS, "cancelled", "with", asyncio.CancelledError()),
    "interrupted": Ending(ENDLESS, "interrupted", "with", KeyboardInterrupt()),
    "closed-after-the-last-token": Ending(
        [head(), piece(event(delta("a", finish="stop"))), AwaitClose()], "ok", "close"
    ),
}
COUNTED_AS = {"interrupted": "cancelled"}
CLIENTS = [
    pytest.param(drivers.Blocking, id="LLMClient"),
    pytest.param(drivers.Awaiting, id="AsyncLLMClient"),
    pytest.param(openai_drivers.Blocking, id="openai"),
    pytest.param(openai_drivers.Awaiting, id="openai-async"),
]


def end(driver: Any, ending: Ending) -> None:
    """Bring the stream to its end, whatever it raises."""
    with contextlib.suppress(Exception):
        if ending.leave == "with":
            driver.within(ending.exc)
        else:
            how, _, after_all = ending.leave.partition(" ")
            driver.take(None if after_all or how == "exhaust" else 1, end=how)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("ending", [pytest.param(e, id=name) for name, e in ENDINGS.items()])
def test_one_span_one_status_and_only_success_is_a_success(client, ending):
    """The span has ended once, has the status, and a percentile of times has it only where that is ok."""
    with capture() as captured, ScriptedServer([ending.reply]) as server:
        driver = client(server.url, timeout=2 if ending is ENDINGS["stalled"] else 5)
        try:
            end(driver, ending)
        finally:
            driver.close()
    (span,) = captured.spans
    found = hotspan.analyse([hotspan.Trace(span.trace_id, [span])]).to_dict()["generation"]
    counts = {status: n for status, n in found["status"].items() if n}

    assert span.end_ns is not None
    assert span.status == ("error" if ending.status in {"error", "truncated"} else "unset")
    assert counts == {COUNTED_AS.get(ending.status, ending.status): 1}
    for figure in ("ttfb_ms", "ttft_ms", "time_to_first_answer_ms", "tpot_ms", "chunk_gap_ms"):
        if ending.status != "ok":
            assert found[figure] is None, figure
    assert (found["ttft_ms"] is not None) == (ending.status == "ok")


async def test_a_cancelled_read_is_cancelled():
    """A task that is cancelled while it waits for a token ends its span there, with either client."""
    import openai  # noqa: PLC0415 - of this one test

    with capture() as captured, ScriptedServer([[head(), piece(A), AwaitClose()]]) as server:
        ours = hotspan.AsyncLLMClient(server.url, model="tiny")
        theirs = hotspan.trace_openai(
            openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
        )
        body = {"messages": drivers.MESSAGES}
        for answered in (
            ours.stream(**body),
            await theirs.chat.completions.create(model="tiny", stream=True, **body),
        ):
            await anext(answered)
            waiting = asyncio.ensure_future(anext(answered))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await answered.close()
        await ours.close()
        await theirs.close()

    assert [span.attributes["hotspan.outcome"] for span in captured.spans] == ["cancelled", "cancelled"]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_whole_answer_to_a_streamed_call_is_in_one_piece_and_has_no_token_times(client):
    """A server that ignores `stream`: the call is ok, with the usage's tokens, of which no time is known."""
    with capture() as captured, ScriptedServer([answer(message("Hello"))]) as server:
        driver = client(server.url)
        driver.take()
        driver.close()
    (span,) = captured.spans
    said = span.attributes

    assert (span.status, said[semconv.REQUEST_STREAM], said[semconv.BUFFERED]) == ("unset", True, True)
    assert (said[semconv.OUTPUT_TOKENS], list(said[semconv.FINISH_REASONS])) == (2, ["stop"])
    assert said[semconv.TTFB_NS] > 0
    assert not {semconv.TTFT_NS, semconv.TTFA_NS, semconv.TIME_TO_FIRST_CHUNK, semconv.CHUNKS} & set(said)


QUOTA = {"error": {"message": "over quota", "code": 429}}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("reply", "streamed"),
    [
        pytest.param(answer(QUOTA), False, id="whole"),
        pytest.param(answer(QUOTA), True, id="whole-to-a-streamed-call"),
        pytest.param(stream(A, event(QUOTA), DONE), True, id="in-a-stream"),
        pytest.param(stream(A, b"event: error\n" + event(QUOTA["error"])), True, id="as-an-event"),
        pytest.param(answer({"error": {"code": 429}}), False, id="nothing-but-a-code"),
    ],
)
def test_an_error_in_an_answer_of_status_200_has_the_servers_name(client, reply, streamed):
    """Whether the client raises it or not, `error.type` is what the server calls it."""
    with capture() as captured, ScriptedServer([reply]) as server:
        driver = client(server.url)
        with contextlib.suppress(Exception):
            driver.take() if streamed else driver.chat()
        driver.close()
    (span,) = captured.spans

    assert (span.status, span.attributes[semconv.HTTP_STATUS]) == ("error", 200)
    assert span.attributes[semconv.ERROR_TYPE] == "429"
