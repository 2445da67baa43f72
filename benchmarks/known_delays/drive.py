"""How the server is called: as many streams at once as asked for, through one kind of client.

A kind is a name (`openai-async`) and a class with `call(model)`, which makes one streamed call and consumes
it as an application does.  The bare kinds stamp for themselves, as one would by hand, and so are what the
others' errors are compared with.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from concurrent import futures
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from types import ModuleType

    Account = dict[str, Any]  # figure -> ns; see `errors.FIGURES`

MESSAGES: Final = [{"role": "user", "content": "How late is it?"}]
OPTIONS: Final[dict[str, Any]] = {"stream": True, "stream_options": {"include_usage": True}}
TIMEOUT_S: Final = 30.0


class ByHand:
    """The stamps that somebody takes who measures a stream by hand.

    Attributes:
        taken: Model -> account of its call.
    """

    def __init__(self) -> None:
        self.taken: dict[str, Account] = {}

    def note(self, model: str, send_ns: int, first_ns: int, stamps: list[int]) -> None:
        """Keep what was seen of one call: when it was sent, its first chunk and its tokens."""
        self.taken[model] = {
            "ttfb": first_ns - send_ns,
            "ttft": stamps[0] - send_ns,
            "tpot": (stamps[-1] - stamps[0]) / (len(stamps) - 1),
            "gaps": [later - earlier for earlier, later in itertools.pairwise(stamps)],
        }


# --- Bare httpx --------------------------------------------------------------------------------------------


def _lines(line: str, stamps: list[int]) -> None:
    now = time.perf_counter_ns()
    if line.startswith("data: {"):
        choices = json.loads(line[6:])["choices"]
        if choices and choices[0]["delta"].get("content"):
            stamps.append(now)


class Httpx:
    """A loop over the lines of a response of httpx."""

    def __init__(self, url: str, contender: ModuleType) -> None:  # noqa: ARG002 - as the others
        import httpx  # noqa: PLC0415 - not every environment has it

        self.seen = ByHand()
        self._url = f"{url}/v1/chat/completions"
        self._client = httpx.Client(timeout=TIMEOUT_S, limits=httpx.Limits(max_connections=None))

    def call(self, model: str) -> None:
        """Make one call."""
        body, stamps, first_ns = {"model": model, "messages": MESSAGES, **OPTIONS}, [], 0
        send_ns = time.perf_counter_ns()
        with self._client.stream("POST", self._url, json=body) as response:
            for line in response.iter_lines():
                first_ns = first_ns or time.perf_counter_ns()
                _lines(line, stamps)
        self.seen.note(model, send_ns, first_ns, stamps)


class HttpxAsync:
    """The same, asynchronous."""

    def __init__(self, url: str, contender: ModuleType) -> None:  # noqa: ARG002 - as the others
        import httpx  # noqa: PLC0415 - not every environment has it

        self.seen = ByHand()
        self._url = f"{url}/v1/chat/completions"
        self._client = httpx.AsyncClient(timeout=TIMEOUT_S, limits=httpx.Limits(max_connections=None))

    async def call(self, model: str) -> None:
        """Make one call."""
        body, stamps, first_ns = {"model": model, "messages": MESSAGES, **OPTIONS}, [], 0
        send_ns = time.perf_counter_ns()
        async with self._client.stream("POST", self._url, json=body) as response:
            async for line in response.aiter_lines():
                first_ns = first_ns or time.perf_counter_ns()
                _lines(line, stamps)
        self.seen.note(model, send_ns, first_ns, stamps)


# --- The openai client: bare, or traced by the contender ---------------------------------------------------


class OpenAI:
    """The blocking client of the openai package."""

    def __init__(self, url: str, contender: ModuleType) -> None:
        import openai  # noqa: PLC0415 - not every environment has it

        client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=TIMEOUT_S)
        self._client = contender.openai_client(client)

    def call(self, model: str) -> None:
        """Make one call, and put its text together."""
        text = ""
        for chunk in self._client.chat.completions.create(model=model, messages=MESSAGES, **OPTIONS):
            if chunk.choices:
                text += chunk.choices[0].delta.content or ""


class OpenAIAsync:
    """The asynchronous client of the openai package."""

    def __init__(self, url: str, contender: ModuleType) -> None:
        import openai  # noqa: PLC0415 - not every environment has it

        client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=TIMEOUT_S)
        self._client = contender.openai_client(client)

    async def call(self, model: str) -> None:
        """Make one call, and put its text together."""
        text = ""
        async for chunk in await self._client.chat.completions.create(
            model=model, messages=MESSAGES, **OPTIONS
        ):
            if chunk.choices:
                text += chunk.choices[0].delta.content or ""


class BareOpenAI(OpenAI):
    """The blocking client, stamped by hand where its chunks come out."""

    def __init__(self, url: str, contender: ModuleType) -> None:
        super().__init__(url, contender)
        self.seen = ByHand()

    def call(self, model: str) -> None:
        """Make one call."""
        stamps: list[int] = []
        first_ns, send_ns = 0, time.perf_counter_ns()
        for chunk in self._client.chat.completions.create(model=model, messages=MESSAGES, **OPTIONS):
            now = time.perf_counter_ns()
            first_ns = first_ns or now
            if chunk.choices and chunk.choices[0].delta.content:
                stamps.append(now)
        self.seen.note(model, send_ns, first_ns, stamps)


class BareOpenAIAsync(OpenAIAsync):
    """The same, asynchronous."""

    def __init__(self, url: str, contender: ModuleType) -> None:
        super().__init__(url, contender)
        self.seen = ByHand()

    async def call(self, model: str) -> None:
        """Make one call."""
        stamps: list[int] = []
        first_ns, send_ns = 0, time.perf_counter_ns()
        async for chunk in await self._client.chat.completions.create(
            model=model, messages=MESSAGES, **OPTIONS
        ):
            now = time.perf_counter_ns()
            first_ns = first_ns or now
            if chunk.choices and chunk.choices[0].delta.content:
                stamps.append(now)
        self.seen.note(model, send_ns, first_ns, stamps)


# --- Hotspan's own clients ---------------------------------------------------------------------------------


class LLM:
    """`hotspan.LLMClient`."""

    def __init__(self, url: str, contender: ModuleType) -> None:  # noqa: ARG002 - as the others
        import hotspan  # noqa: PLC0415 - in Hotspan's environment alone

        self._client = hotspan.LLMClient(url, model="none", timeout=TIMEOUT_S)

    def call(self, model: str) -> None:
        """Make one call, and put its text together."""
        text = ""
        for delta in self._client.stream(MESSAGES, model=model):
            text += delta.text


class LLMAsync:
    """`hotspan.AsyncLLMClient`."""

    def __init__(self, url: str, contender: ModuleType) -> None:  # noqa: ARG002 - as the others
        import hotspan  # noqa: PLC0415 - in Hotspan's environment alone

        self._client = hotspan.AsyncLLMClient(url, model="none", timeout=TIMEOUT_S)

    async def call(self, model: str) -> None:
        """Make one call, and put its text together."""
        text = ""
        async for delta in self._client.stream(MESSAGES, model=model):
            text += delta.text


KINDS: Final[Mapping[str, Callable[[str, ModuleType], Any]]] = {
    "httpx": Httpx,
    "httpx-async": HttpxAsync,
    "bare-openai": BareOpenAI,
    "bare-openai-async": BareOpenAIAsync,
    "openai": OpenAI,
    "openai-async": OpenAIAsync,
    "llm": LLM,
    "llm-async": LLMAsync,
}


# --- Many at once ------------------------------------------------------------------------------------------


def names(tag: str, stream: int, n_calls: int) -> list[str]:
    """Return the models that one stream asks for: one to warm up, then those that count."""
    return [f"{tag}-warm-{stream}", *(f"{tag}-{stream}-{number}" for number in range(n_calls))]


def in_threads(call: Callable[[str], None], tag: str, n_streams: int, n_calls: int, spread_s: float) -> None:
    """Make calls in so many threads at once, begun one after the other over `spread_s`."""

    def run(stream: int) -> None:
        time.sleep(spread_s * stream / n_streams)
        for model in names(tag, stream, n_calls):
            call(model)

    with futures.ThreadPoolExecutor(n_streams) as pool:
        for ended in [pool.submit(run, stream) for stream in range(n_streams)]:
            ended.result()


async def in_tasks(
    call: Callable[[str], Awaitable[None]], tag: str, n_streams: int, n_calls: int, spread_s: float
) -> None:
    """Make calls in so many tasks at once, begun one after the other over `spread_s`."""

    async def run(stream: int) -> None:
        await asyncio.sleep(spread_s * stream / n_streams)
        for model in names(tag, stream, n_calls):
            await call(model)

    await asyncio.gather(*(run(stream) for stream in range(n_streams)))
