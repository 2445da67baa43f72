"""When bytes arrived, whatever the program did meanwhile, and connections that are handed on."""

from __future__ import annotations

import asyncio
import select
import socket
import time
from types import SimpleNamespace

import httpx
import pytest
from drivers import ENDLESS
from servers import (
    DONE,
    Close,
    Pause,
    ScriptedServer,
    answer,
    delta,
    event,
    message,
    stream,
)

import hotspan
from hotspan.testing import capture
from hotspan.tracer import clock, semconv
from hotspan.tracer.clients import arrival, transport

MESSAGES = [{"role": "user", "content": "Hi"}]
MS = 1_000_000
GAP_MS, N_TOKENS = 10, 15
PACED = stream(
    *(
        step
        for number in range(N_TOKENS)
        for step in (
            Pause(GAP_MS / 1000),
            event(delta("w", finish="stop" if number == N_TOKENS - 1 else None)),
        )
    ),
    DONE,
)


@pytest.fixture
def told():
    """A system whose kernel tells when bytes arrive: it begins to at some moment after the first who asks."""
    if not arrival.CAN_TELL:
        pytest.skip("this system does not tell when bytes arrived")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with socket.create_connection(listener.getsockname()) as near, listener.accept()[0] as far:
            assert arrival.ask_for_stamps(near)
            deadline = time.monotonic() + 5
            ancillary = []
            while not ancillary and time.monotonic() < deadline:
                far.sendall(b"x")
                select.select([near], [], [], 1)
                ancillary = near.recvmsg(10, 64)[1]
            if not ancillary:
                pytest.skip("this kernel does not tell when bytes arrived")
            yield


# --- Arrival -----------------------------------------------------------------------------------------------


def test_a_stamp_of_the_wall_clock_becomes_one_of_ours():
    """The kernel's stamp is placed on the monotonic clock, in order, and never in the future."""
    second, future = divmod(time.time_ns() - 5 * MS, 10**9), divmod(time.time_ns() + 10**12, 10**9)
    before = clock.now_ns()
    told = arrival.arrival_ns([(socket.SOL_SOCKET, 35, arrival._STAMP.pack(*second))], 0)  # noqa: SLF001 - its layout
    ahead = arrival.arrival_ns([(socket.SOL_SOCKET, 35, arrival._STAMP.pack(*future))], 0)  # noqa: SLF001 - its layout

    assert before - 5 * MS <= told + MS
    assert told < clock.now_ns() - 4 * MS
    assert before <= ahead <= clock.now_ns()
    assert arrival.arrival_ns([], 0) >= before
    latest = clock.now_ns()
    assert arrival.arrival_ns([(socket.SOL_SOCKET, 35, arrival._STAMP.pack(*second))], latest) == latest  # noqa: SLF001 - its layout


def test_a_slow_consumer_makes_no_token_late(told):  # noqa: ARG001 - for what it makes sure of
    """Tokens that wait in the kernel are stamped when they came, not when they are read."""
    with capture() as captured, ScriptedServer([PACED]) as server:
        with hotspan.LLMClient(server.url, model="tiny") as client:
            for _ in client.stream(MESSAGES):
                time.sleep(3 * GAP_MS / 1000)
    (span,) = captured.spans

    assert span.duration_ns >= 3 * GAP_MS * N_TOKENS * MS
    assert span.attributes[semconv.LAST_TOKEN_NS] < span.duration_ns / 2


async def test_a_blocked_event_loop_makes_no_token_late(told):  # noqa: ARG001 - for what it makes sure of
    """Code that blocks the loop is the program's fault; the model's times do not show it."""
    blocked_s = 0.4
    with capture() as captured, ScriptedServer([PACED]) as server:
        async with hotspan.AsyncLLMClient(server.url, model="tiny") as client:
            answered = client.stream(MESSAGES)
            first = asyncio.ensure_future(anext(answered))
            while not server.requests:  # noqa: ASYNC110 - a server of threads
                await asyncio.sleep(0)
            time.sleep(blocked_s)  # noqa: ASYNC251 - what is tested
            await first
            async for _ in answered:
                pass
    found = captured.spans[0].attributes

    assert found[semconv.LAST_TOKEN_NS] < blocked_s * 1000 * MS
    assert found[semconv.TTFT_NS] < blocked_s * 1000 * MS


@pytest.mark.parametrize("told_by", ["kernel", "read"])
async def test_answers_are_the_same_without_the_kernels_stamps(monkeypatch, told_by):
    """Other systems stamp when a read returns; nothing else differs."""
    if told_by == "read":
        monkeypatch.setattr(arrival, "CAN_TELL", False)
    with capture() as captured, ScriptedServer([PACED, PACED]) as server:
        async with hotspan.AsyncLLMClient(server.url, model="tiny") as client:
            assert len([d async for d in client.stream(MESSAGES)]) == N_TOKENS
        with hotspan.LLMClient(server.url, model="tiny") as client:
            assert len(list(client.stream(MESSAGES))) == N_TOKENS

    for span in captured.spans:
        assert span.attributes[semconv.CHUNKS] == N_TOKENS
        assert span.attributes[semconv.TTFT_NS] >= GAP_MS * MS


@pytest.mark.parametrize("told_by", ["kernel", "read"])
async def test_closing_the_client_ends_a_read_that_waits(monkeypatch, told_by):
    """A task that waits for the next token is not left behind."""
    if told_by == "read":
        monkeypatch.setattr(arrival, "CAN_TELL", False)
    with capture() as captured, ScriptedServer([ENDLESS]) as server:
        client = hotspan.AsyncLLMClient(server.url, model="tiny")
        answered = client.stream(MESSAGES)
        assert [(await anext(answered)).text for _ in "ab"] == ["a", "b"]
        waiting = asyncio.ensure_future(anext(answered))
        for _ in range(5):  # turns of the loop, until it waits for the socket
            await asyncio.sleep(0)
        await client.close()
        with pytest.raises(hotspan.StreamError, match="broke off"):
            await asyncio.wait_for(waiting, 5)

    assert captured.spans[0].attributes[semconv.OUTCOME] == "truncated"


# --- Connections -------------------------------------------------------------------------------------------


async def test_a_name_with_several_addresses_is_reached_at_the_one_that_answers():
    """`localhost` may be ::1 first, where nobody listens."""
    with ScriptedServer([answer(message())]) as server:
        async with hotspan.AsyncLLMClient(f"http://localhost:{server.port}", model="tiny") as client:
            assert (await client.chat(MESSAGES)).text == "Hi"


async def test_a_connection_that_is_not_made_is_one_clear_error():
    """Neither a port without a server nor a name without an address leaves a socket."""
    for url in ("http://127.0.0.1:1", "http://no-such-host.invalid:1"):
        async with hotspan.AsyncLLMClient(url, model="tiny", timeout=5) as client:
            with pytest.raises(hotspan.EngineError, match="no connection"):
                await client.chat(MESSAGES)


def test_a_connection_that_the_server_closed_is_not_used_again():
    """What the server hung up on while it was idle is replaced, without an error for the next call."""
    hang_up = [*answer(message()), Close()]
    with ScriptedServer([hang_up, answer(message())]) as server:
        with hotspan.LLMClient(server.url, model="tiny") as client:
            assert client.chat(MESSAGES).text == "Hi"
            deadline = time.monotonic() + 5
            while server.n_open and time.monotonic() < deadline:
                time.sleep(0.001)
            assert client.chat(MESSAGES).text == "Hi"

    assert server.n_connections == 2


@pytest.mark.parametrize("is_async", [False, True])
def test_a_connection_is_handed_on_as_it_was(is_async):
    """A bound that one call put on its reads is gone with it: the next may wait as long as it likes."""
    with ScriptedServer([stream(event(delta("a", finish="stop")), DONE)]) as server:
        url = f"{server.url}/x"
        if is_async:
            asyncio.run(_ask_async(url))
        else:
            with httpx.Client(transport=transport.StampedTransport("http"), timeout=5) as client:
                for _ in range(2):
                    with client.stream("GET", url) as response:
                        network = response.extensions["network_stream"]
                        network.patience_s = 5
                        assert b"[DONE]" in b"".join(response.iter_raw())
                    assert network.patience_s is None

    assert len(server.requests) == 2


async def _ask_async(url):
    own = transport.AsyncStampedTransport("http")
    async with httpx.AsyncClient(transport=own, timeout=5) as client:
        for _ in range(2):
            async with client.stream("GET", url) as response:
                network = response.extensions["network_stream"]
                pieces = response.aiter_raw()
                network.patience_s = 5
                assert b"[DONE]" in b"".join([piece async for piece in pieces])
            assert network.patience_s is None


class Connection(SimpleNamespace):
    """A connection that counts how often somebody looks at it."""

    n_looks = 0
    expired = False

    def has_expired(self):
        """Say whether it is of no use any more."""
        self.n_looks += 1
        return self.expired

    def is_closed(self):
        """Say that it is open."""
        return False

    def is_idle(self):
        """Say that a response was read to its end."""
        return True

    def __hash__(self):
        """Be told apart from the others."""
        return id(self)


def test_a_call_costs_the_same_with_many_connections():
    """Taking a connection and giving it back looks at a few of them, however many there are."""
    connections = transport._Connections()  # noqa: SLF001 - no other way to count
    many = [Connection() for _ in range(transport.MAX_IDLE_CONNECTIONS)]
    for each in many:
        connections.give_back(each)
    before = sum(each.n_looks for each in many)

    taken, expired = connections.take()
    connections.give_back(taken)

    assert taken is many[-1]
    assert expired == []
    assert sum(each.n_looks for each in many) - before <= 2


def test_connections_that_had_their_time_are_closed():
    """The last used is taken first; those that expired, on the way or at the bottom, are to be closed."""
    connections = transport._Connections()  # noqa: SLF001 - as above
    good, stale, newest = Connection(), Connection(), Connection()
    for each in (good, stale, newest):
        assert connections.give_back(each) is None
    stale.expired = newest.expired = True

    assert connections.take() == (good, [newest, stale])
    assert connections.take() == (None, [])
    good.expired = True
    assert connections.give_back(good) is good
