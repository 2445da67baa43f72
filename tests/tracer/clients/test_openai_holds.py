"""`trace_openai` and consumers that take their time: what they held, and which tokens have a time."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import openai
import pytest
from openai_drivers import MESSAGES
from servers import DONE, PATIENCE_S, ScriptedServer, Wait, delta, event, stream

import hotspan
from hotspan.testing import capture
from hotspan.tracer import semconv

HELD_NS = 5_000_000  # by which a consumer of these tests holds what he gets, at least
LATE_NS = 100_000_000  # after he asks for a piece, it is sent: by then he waits, on a busy machine too
TOKEN_TIMES = (semconv.TTFT_NS, semconv.TTFA_NS, semconv.LAST_TOKEN_NS, semconv.TPOT_NS)


class Peer:
    """A server that sends its pieces when it is told, one each, and knows when they have arrived."""

    def __init__(self, *pieces: bytes) -> None:
        self._gates = [threading.Event() for _ in pieces]
        steps = [
            step for gate, piece in zip(self._gates, pieces, strict=True) for step in (Wait(gate), piece)
        ]
        self.server = ScriptedServer([stream(*steps)])

    def send(self, *numbers: int) -> None:
        """Let these pieces go."""
        for number in numbers:
            self._gates[number].set()


def waiting(stream: Any) -> bool:
    """Return whether bytes wait on the stream's connection."""
    sock: socket.socket = stream.response.extensions["network_stream"].get_extra_info("socket")
    with socket.fromfd(sock.fileno(), sock.family, sock.type) as peek:
        peek.setblocking(False)
        try:
            return bool(peek.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False


async def hold_until_waiting(stream: Any) -> None:
    """Hold the stream until more of it has arrived, and for `HELD_NS`."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    while not waiting(stream) or loop.time() - start < HELD_NS / 1e9:
        assert loop.time() - start < PATIENCE_S
        await asyncio.sleep(0.001)


WORDS = [event(delta(w)) for w in "abcde"]
FINISH = event(delta(finish="stop"))


class Consumer:
    """Either client, driven by hand: what it takes, and what the server sends while it waits or holds."""

    def __init__(self, peer: Peer, *, is_async: bool) -> None:
        kind = openai.AsyncOpenAI if is_async else openai.OpenAI
        self.client: Any = hotspan.trace_openai(
            kind(base_url=f"{peer.server.url}/v1", api_key="none", max_retries=0)
        )
        self.is_async = is_async
        self.stream: Any = None
        self._peer = peer

    async def create(self) -> None:
        """Ask for the stream."""
        made = self.client.chat.completions.create(model="tiny", messages=MESSAGES, stream=True)
        self.stream = await made if self.is_async else made

    async def take(self, send: int | None = None) -> None:
        """Take an item; the piece `send` goes only after it was asked for, some time."""
        if send is not None:
            threading.Timer(LATE_NS / 1e9, self._peer.send, [send]).start()
        if self.is_async:
            await anext(self.stream)
        else:
            next(self.stream)

    async def hold(self, send: int) -> None:
        """Hold what was taken, while the piece `send` comes."""
        self._peer.send(send)
        await hold_until_waiting(self.stream)

    async def finish(self) -> None:
        """Take the rest, and close the client."""
        if self.is_async:
            async for _ in self.stream:
                pass
            await self.client.close()
        else:
            for _ in self.stream:
                pass
            self.client.close()


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def run(request):
    """Run a coroutine function on a consumer of these pieces; return the attributes of the one span."""

    def made(steps: Any, *pieces: bytes) -> dict[str, Any]:
        async def drive() -> None:
            peer = Peer(*pieces)
            with peer.server:
                consumer = Consumer(peer, is_async=request.param)
                await consumer.create()
                await steps(consumer)

        with capture() as captured:
            asyncio.run(drive())
        (span,) = captured.spans
        assert span.duration_ns >= span.attributes[semconv.STREAM_HOLD_NS]
        return dict(span.attributes)

    return made


def test_a_hold_before_the_first_pull_is_not_the_models(run):
    """An answer that came before it was asked for has no token times, and nothing buffered it."""

    async def steps(consumer: Consumer) -> None:
        await consumer.hold(0)
        await consumer.finish()

    found = run(steps, WORDS[0] + WORDS[1] + FINISH + DONE)

    assert found[semconv.HELD_STAMPS] == found[semconv.CHUNKS] == 2
    assert found[semconv.STREAM_HOLD_NS] >= HELD_NS
    assert not found.keys() & {*TOKEN_TIMES, semconv.CHUNK_GAPS_NS, semconv.BUFFERED}


def test_a_first_token_that_was_waited_for_has_its_time(run):
    """A pause before the first pull that ends before the token comes lies in the wait for it."""

    async def steps(consumer: Consumer) -> None:
        await asyncio.sleep(LATE_NS / 1e9)
        await consumer.take(0)
        await consumer.take(1)
        await consumer.finish()

    found = run(steps, WORDS[0], WORDS[1] + FINISH + DONE)

    assert semconv.HELD_STAMPS not in found
    assert found[semconv.TTFT_NS] >= 2 * LATE_NS
    assert found[semconv.STREAM_HOLD_NS] < LATE_NS
    assert len(found[semconv.CHUNK_GAPS_NS]) == 1


def test_tokens_that_came_in_a_hold_have_no_gaps(run):
    """Times before and after a hold stay: only what came in it is left out, and the ends are known."""

    async def steps(consumer: Consumer) -> None:
        await consumer.take(0)
        await consumer.take(1)
        await consumer.hold(2)
        await consumer.take()
        await consumer.take(3)
        await consumer.take(4)
        await consumer.finish()

    found = run(steps, *WORDS[:4], WORDS[4] + FINISH + DONE)

    assert (found[semconv.HELD_STAMPS], found[semconv.CHUNKS]) == (1, 5)
    assert len(found[semconv.CHUNK_GAPS_NS]) == 2  # of the four: a-b, d-e
    assert found[semconv.TPOT_NS] == (found[semconv.LAST_TOKEN_NS] - found[semconv.TTFT_NS]) / 4


def test_a_last_token_that_waited_makes_no_time_per_token(run):
    """The first token's time stays."""

    async def steps(consumer: Consumer) -> None:
        await consumer.take(0)
        await consumer.hold(1)
        await consumer.finish()

    found = run(steps, WORDS[0], WORDS[1] + FINISH + DONE)

    assert found[semconv.HELD_STAMPS] == 1
    assert found[semconv.TTFT_NS] >= LATE_NS
    assert not found.keys() & {semconv.LAST_TOKEN_NS, semconv.TPOT_NS, semconv.CHUNK_GAPS_NS}


def test_every_token_held(run):
    """A consumer that is slower than the server from token to token: only the first one's time is known."""

    async def steps(consumer: Consumer) -> None:
        await consumer.take(0)
        for number in (1, 2, 3):
            await consumer.hold(number)
            await consumer.take()
        await consumer.hold(4)
        await consumer.finish()

    found = run(steps, *WORDS[:4], WORDS[4] + FINISH + DONE)

    assert (found[semconv.HELD_STAMPS], found[semconv.CHUNKS]) == (4, 5)
    assert not found.keys() & {semconv.LAST_TOKEN_NS, semconv.TPOT_NS, semconv.CHUNK_GAPS_NS}


def test_a_hold_in_which_nothing_came_changes_no_time(run):
    """The next token had to be waited for: its stamp is true."""

    async def steps(consumer: Consumer) -> None:
        await consumer.take(0)
        await asyncio.sleep(HELD_NS / 1e9)
        await consumer.take(1)
        await consumer.finish()

    found = run(steps, WORDS[0], WORDS[1] + FINISH + DONE)

    assert semconv.HELD_STAMPS not in found
    assert found[semconv.CHUNK_GAPS_NS][0] >= HELD_NS + LATE_NS
