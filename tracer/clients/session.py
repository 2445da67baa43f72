"""How a call is carried out, written once for blocking and asynchronous code.

Everything here is `async`, and knows the network only through a `Wire` of six operations.  The blocking
client's wire never suspends, so its coroutines run to their end in one step (`complete`).
"""

from __future__ import annotations

import email.utils
import itertools
import random
import time
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import httpx

from hotspan.tracer import clock
from hotspan.tracer.clients.answer import Completion, completion, decode_json, error_message, quoted
from hotspan.tracer.clients.call import Attempt, Call
from hotspan.tracer.errors import ConfigurationError, EngineError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from hotspan.tracer.clients.urls import Endpoint

T = TypeVar("T")

_TOO_MANY_REQUESTS: Final = 429
_SERVER_ERROR: Final = 500
_FIRST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 8.0
_MS_PER_S: Final = 1_000
_LONGEST_RETRY_AFTER_S: Final = 60.0  # a server that asks for more is not waited for
_ENGINES: Final = frozenset({"vllm", "llamacpp", "sglang"})  # as `owned_by` in a server's list of models


class Wire(Protocol):
    """The network, as little of it as a call needs."""

    def request(
        self, url: str, headers: Mapping[str, str], content: bytes | None, attempt: Attempt
    ) -> httpx.Request:
        """Return a request whose transport reports to `attempt`."""

    async def send(self, request: httpx.Request) -> httpx.Response:
        """Send it and return the response, its body unread."""

    def pieces(self, response: httpx.Response) -> Any:
        """Return what `next_piece` takes."""

    async def next_piece(self, pieces: Any) -> bytes | None:
        """Return the next piece of the body, None at its end."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""

    async def close(self, response: httpx.Response) -> None:
        """Give the connection back, or close it when the body was not read to its end."""


def complete(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends, and return its result."""
    try:
        work.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    work.close()
    msg = "the blocking client's wire suspended: it was given an asynchronous HTTP client"
    raise RuntimeError(msg)


class Session:
    """One server, the wire to it, and what every request to it has in common.

    Args:
        base_url: Where the server is, with or without `/v1`.
        wire: The network.
        model: The model to ask for; None for the first one that the server offers, asked for once.
        headers: Headers of every request.
        max_retries: How often a request that the server did not take is sent again.
    """

    def __init__(
        self, target: Endpoint, wire: Wire, *, model: str | None, headers: Mapping[str, str], max_retries: int
    ) -> None:
        if max_retries < 0:
            msg = f"max_retries={max_retries}: expected 0 or more"
            raise ConfigurationError(msg)
        self.target = target
        self.wire = wire
        self._model = model
        self._engine: str | None = None
        self._headers = headers
        self._max_retries = max_retries

    async def start(self, call: Call) -> None:
        """Start the span of a call, once it is known which model to ask for."""
        if call.body.get("model") is None:
            if self._model is None:
                self._model, owner = await self._ask_model()
                self._engine = owner if owner in _ENGINES else None
            call.body["model"] = self._model
        call.start(self._engine)

    async def _ask_model(self) -> tuple[str, str | None]:
        """Return the first model that the server offers, and who it says owns it."""
        url = f"{self.target.url}/models"
        try:
            response = await self.wire.send(self.wire.request(url, self._headers, None, Attempt()))
        except httpx.HTTPError as exc:
            raise EngineError(self._unreachable(exc)) from exc
        if not response.is_success:
            raise EngineError(await self._refusal(response))
        try:
            listing = decode_json(await self._read_all(response))
        except httpx.HTTPError as exc:
            raise EngineError(self._unreachable(exc)) from exc
        finally:
            await self.wire.close(response)
        models = listing.get("data") if isinstance(listing, dict) else None
        for model in models if isinstance(models, list) else ():
            if isinstance(model, dict) and isinstance(model.get("id"), str):
                owner = model.get("owned_by")
                return model["id"], owner if isinstance(owner, str) else None
        msg = f"{self.target.shown}/models lists no model: name one with model=..."
        raise EngineError(msg)

    async def send(self, call: Call) -> httpx.Response:
        """Send a call's request until the server takes it, and return the response with its body unread.

        A connection that fails, 429 and 5xx are tried again up to `max_retries` times, after what
        `Retry-After` (or `retry-after-ms`) says or a wait that doubles; a body that has begun never is.

        Raises:
            EngineError: No attempt was taken.
        """
        url = f"{self.target.url}/chat/completions"
        headers = {**self._headers, **call.headers()}
        token = call.enter()
        try:
            for n_sent in itertools.count(1):
                attempt = call.begin_attempt()
                request = self.wire.request(url, headers, call.content, attempt)
                try:
                    response = await self.wire.send(request)
                except httpx.HTTPError as exc:
                    call.unanswered(exc)
                    wait_s, failure = None, EngineError(self._unreachable(exc))
                    failure.__cause__ = exc
                else:
                    call.answered(response.status_code, response.headers, read_ns_of(response))
                    if response.is_success:
                        return response
                    failure = EngineError(await self._refusal(response))
                    wait_s = _asked_wait_s(response.headers)
                    if not _may_retry(response.status_code, wait_s):
                        raise failure
                if n_sent > self._max_retries:
                    break
                await self.wire.sleep(_backoff_s(n_sent) if wait_s is None else wait_s)
            raise failure
        finally:
            call.leave(token)

    async def fetch(self, call: Call) -> Completion:
        """Carry out a call that is not streamed.

        Raises:
            EngineError: The server did not take the request, reported an error, or broke off.
        """
        await self.start(call)
        try:
            response = await self.send(call)
            try:
                body = await self._timed_body(call, response)
            finally:
                await self.wire.close(response)
            answer = completion(body, call.tokens, clock.now_ns())
            if isinstance(answer, str):
                msg = f"{self.target.shown} answered {response.status_code} with an error: {answer}"
                raise EngineError(msg)  # noqa: TRY301 - ends the span like every other way out
            call.note_answer(answer.text, answer.finish_reason)
        except BaseException as exc:
            call.end_by(exc)
            raise
        call.end_ok()
        return answer

    async def _timed_body(self, call: Call, response: httpx.Response) -> bytes:
        pieces, parts = self.wire.pieces(response), []
        try:
            while (piece := await self.wire.next_piece(pieces)) is not None:
                if call.tokens.first_byte_ns is None:
                    call.tokens.first_byte_ns = read_ns_of(response) or clock.now_ns()
                parts.append(piece)
        except httpx.HTTPError as exc:
            msg = f"the answer of {self.target.shown} broke off: {str(exc) or type(exc).__name__}"
            raise EngineError(msg) from exc
        return b"".join(parts)

    async def _read_all(self, response: httpx.Response) -> bytes:
        pieces, parts = self.wire.pieces(response), []
        while (piece := await self.wire.next_piece(pieces)) is not None:
            parts.append(piece)
        return b"".join(parts)

    def _unreachable(self, exc: httpx.HTTPError) -> str:
        shown, stated = self.target.shown, str(exc).rstrip(".") or type(exc).__name__
        if isinstance(exc, (httpx.ConnectError, httpx.ConnectTimeout)):
            return f"no connection to {shown}: {stated}. Is the server running there?"
        if isinstance(exc, httpx.TimeoutException):
            how = type(exc).__name__
            return f"{shown} did not answer in time ({how}). Raise `timeout`, or look at the server."
        return f"{shown} closed the connection without an answer: {stated}. The server's log may say why."

    async def _refusal(self, response: httpx.Response) -> str:
        """Return the message of a response that is not a success, with the server's own reason."""
        try:
            body = await self._read_all(response)
        except httpx.HTTPError:
            body = b""
        finally:
            await self.wire.close(response)
        parsed = decode_json(body)
        stated = error_message(parsed)
        if stated is None and isinstance(parsed, dict):
            said = parsed.get("detail") or parsed.get("message")
            stated = quoted(str(said).encode()) if said else None
        status = f"{response.status_code} {response.reason_phrase}".strip()
        return f"{self.target.shown} answered {status}: {stated or quoted(body) or 'no reason given'}"


def read_ns_of(response: httpx.Response) -> int:
    """Return when the connection's last read returned, 0 where the transport does not know."""
    return getattr(response.extensions.get("network_stream"), "read_ns", 0)


def _may_retry(status: int, wait_s: float | None) -> bool:
    if wait_s is not None and wait_s > _LONGEST_RETRY_AFTER_S:
        return False
    return status >= _SERVER_ERROR or status == _TOO_MANY_REQUESTS


def _asked_wait_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a refusal asks to wait; `retry-after-ms` is OpenAI's, and more exact."""
    try:
        return max(0.0, float(headers["retry-after-ms"]) / _MS_PER_S)
    except (KeyError, ValueError):
        return retry_after_s(headers.get("retry-after"))


def retry_after_s(value: str | None) -> float | None:
    """Return the seconds that a `Retry-After` header asks for, given as seconds or as a date."""
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def _backoff_s(n_attempts: int) -> float:
    spread = random.uniform(0.75, 1.0)  # noqa: S311 - spreads retries, guards nothing
    return float(min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2 ** (n_attempts - 1)) * spread)
