"""An engine over any running server that speaks the OpenAI chat API, through `hotspan.LLMClient`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import httpx

import hotspan
from hotspan.pipelines.engines.base import say
from hotspan.pipelines.engines.optional import need
from hotspan.pipelines.engines.tiny_model import TINY_MODEL, tiny_model_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from hotspan.pipelines.engines.base import Messages, Schema

Counting = Literal["tokenizer", "server", "estimate"]

_BYTES_PER_TOKEN = 4  # a common figure for English text
_TIMEOUT_S = 120.0
_FIRST_ANSWER_S = 10.0  # for what a server knows without its model
_UNAUTHORIZED = 401
_MAX_QUOTED = 200  # characters of a server's own words


def server_engine(base_url: str, model: str | None = None, *, api_key: str | None = None) -> ServerEngine:
    """Return an engine over a running OpenAI-compatible server.

    Args:
        base_url: Where it listens, with or without `/v1`.
        model: A model that it serves; None for the first that it names.
        api_key: Sent as a bearer token.

    Raises:
        hotspan.EngineError: The server does not answer, or serves no such model.
    """
    say(f"Asking {base_url} which models it serves …")
    return ServerEngine(base_url, model, api_key=api_key)


class ServerEngine:
    """An `Engine` over HTTP.

    Attributes:
        base_url: Where the server listens, without `/v1`.
        counting: How `count_tokens` knows: by the tiny model's own tokenizer, by asking the server, or by an
            estimate of four bytes a token where the server cannot tell.
    """

    def __init__(
        self,
        base_url: str,
        model: str | None = None,
        *,
        api_key: str | None = None,
        words_are_noise: bool = False,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/").removesuffix("/v1").rstrip("/")
        self._http = _http_client(self.base_url, api_key)
        self.words_are_noise = words_are_noise
        self._on_close = on_close
        try:
            served = self._served_models()
            self.model = _choose(served, model, self.base_url)
            self.name = "vllm" if _is_vllm(served) else "openai-compatible"
            self.counting, self._count = self._counter()
        except BaseException:
            self._http.close()
            raise
        self._client = hotspan.LLMClient(base_url, model=self.model, api_key=api_key, timeout=_TIMEOUT_S)

    def stream(self, messages: Messages, *, max_tokens: int) -> Iterator[str]:
        """Yield the answer's text, piece by piece, as it arrives."""
        with self._client.stream(_plain(messages), max_tokens=max_tokens) as answer:
            for delta in answer:
                if delta.text:
                    yield delta.text

    def complete(self, messages: Messages, *, max_tokens: int, schema: Schema | None = None) -> str:
        """Return the whole answer; with a JSON schema, text that the server held to it."""
        body: dict[str, Any] = {"max_tokens": max_tokens}
        if schema is not None:
            body["response_format"] = _response_format(schema)
        return self._client.chat(_plain(messages), **body).text or ""

    def count_tokens(self, text: str) -> int:
        """Return how many tokens the model reads in `text`; `counting` says how it is known."""
        return self._count(text)

    def warm_up(self) -> None:
        """Make one plain and one constrained call that are in no trace: the first of each is slow."""
        schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": "hello"}],
            "max_tokens": 8,
        }
        for extra in ({}, {"response_format": _response_format(schema)}):
            try:
                response = self._post("/v1/chat/completions", {**body, **extra})
            except httpx.HTTPError as error:
                msg = f"{self.base_url} broke off its first answer. The server's log may say why."
                raise hotspan.EngineError(msg) from error
            if not response.is_success:
                raise hotspan.EngineError(_refusal(response))

    def close(self) -> None:
        """Close the connections; stop the server if this engine started it."""
        self._client.close()
        self._http.close()
        if self._on_close is not None:
            self._on_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _served_models(self) -> list[dict[str, Any]]:
        url = f"{self.base_url}/v1/models"
        try:
            response = self._http.get("/v1/models", timeout=_FIRST_ANSWER_S)
        except httpx.ReadTimeout as error:
            msg = (
                f"{url}: something listens there but does not answer within {_FIRST_ANSWER_S:.0f} s. "
                "Wait until the server has started, restart it, or give the address of another."
            )
            raise hotspan.EngineError(msg) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = str(error).rstrip(".") or "the connection was closed"
            msg = (
                f"{url}: no connection ({reason}). "
                "Start the server, or give the address of one that speaks the OpenAI API."
            )
            raise hotspan.EngineError(msg) from error
        if not response.is_success:
            raise hotspan.EngineError(_refusal(response))
        try:
            return [dict(entry) for entry in response.json()["data"]]
        except (ValueError, KeyError, TypeError) as error:
            msg = f"{url}: not a list of models. Give the address of a server that speaks the OpenAI API."
            raise hotspan.EngineError(msg) from error

    def _counter(self) -> tuple[Counting, Callable[[str], int]]:
        if self.words_are_noise and self.model == TINY_MODEL:
            return "tokenizer", _tiny_tokenizer()
        try:
            self._ask_tokenizer("hello", timeout_s=_FIRST_ANSWER_S)
        except (httpx.HTTPError, ValueError, KeyError, TypeError):
            return "estimate", _estimate
        return "server", self._ask_tokenizer

    def _ask_tokenizer(self, text: str, *, timeout_s: float = _TIMEOUT_S) -> int:
        body = {"model": self.model, "prompt": text, "add_special_tokens": False}
        response = self._post("/tokenize", body, timeout_s)
        response.raise_for_status()
        return int(response.json()["count"])

    def _post(self, path: str, body: dict[str, Any], timeout_s: float = _TIMEOUT_S) -> httpx.Response:
        return self._http.post(path, json=body, timeout=timeout_s)


def _refusal(response: httpx.Response) -> str:
    """Return what a server's refusal means, in one line with a next step."""
    status = f"{response.status_code} {response.reason_phrase}".strip()
    stated = _stated_reason(response)
    reason = f" ({stated})" if stated else ""
    if response.status_code == _UNAUTHORIZED:
        step = "Give the server's key with --api-key or OPENAI_API_KEY."
    else:
        step = "Look into the server's log, or give the address of one that speaks the OpenAI API."
    return f"{response.url} answered {status}{reason}. {step}"


def _stated_reason(response: httpx.Response) -> str:
    try:
        error = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        return ""
    stated = error.get("message") if isinstance(error, dict) else error
    return " ".join(str(stated or "").split())[:_MAX_QUOTED].rstrip(".")


def _http_client(root: str, api_key: str | None) -> httpx.Client:
    headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
    try:
        host = httpx.URL(root).host
        is_local = host in {"localhost", "::1"} or host.startswith("127.")
        # A proxy cannot reach this machine's own loopback.
        return httpx.Client(base_url=root, headers=headers, timeout=_TIMEOUT_S, trust_env=not is_local)
    except httpx.InvalidURL as error:
        msg = f"{root!r} is no address ({error}). Give one such as http://127.0.0.1:8000."
        raise hotspan.EngineError(msg) from error


def _choose(served: list[dict[str, Any]], model: str | None, root: str) -> str:
    names = [str(entry.get("id")) for entry in served]
    if not names:
        msg = f"{root}/v1/models names no model. Start the server with one."
        raise hotspan.EngineError(msg)
    if model is None:
        return names[0]
    if model not in names:
        msg = f"{root} does not serve the model {model!r}. It serves: {', '.join(names)}."
        raise hotspan.EngineError(msg)
    return model


def _is_vllm(served: list[dict[str, Any]]) -> bool:
    return any(entry.get("owned_by") == "vllm" for entry in served)


def _tiny_tokenizer() -> Callable[[str], int]:
    tokenizers = need("tokenizers", what="The tiny model")
    tokenizer = tokenizers.Tokenizer.from_file(str(tiny_model_folder() / "tokenizer.json"))
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def _estimate(text: str) -> int:
    return -(-len(text.encode("utf-8", errors="replace")) // _BYTES_PER_TOKEN)


def _response_format(schema: Schema) -> dict[str, Any]:
    return {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": dict(schema), "strict": True},
    }


def _plain(messages: Messages) -> list[dict[str, Any]]:
    return [dict(message) for message in messages]
