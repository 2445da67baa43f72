"""What a server sent of one answer: its bytes become deltas, text, usage, or an error.  No I/O, no clock."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from hotspan.tracer.generation import TokenClock
from hotspan.tracer.sse import ServerEvent, SSEParser

if TYPE_CHECKING:
    from collections.abc import Iterable

_DONE = b"[DONE]"
_MAX_QUOTED = 300  # characters of a server's own words in our messages


class Delta(NamedTuple):
    """One piece of a streamed answer.

    Attributes:
        text: Content of the answer; empty when the piece has none.
        reasoning: The model's thinking, under whichever name the server sends it.
        tool_calls: Fragments of tool calls, as the server sent them; `ChatStream.tool_calls` has them merged.
        finish_reason: Why this answer ended, on its last piece.
        raw: The whole chunk.
        choice: Which answer, for `n` > 1.
    """

    text: str
    reasoning: str
    tool_calls: list[dict[str, Any]]
    finish_reason: str | None
    raw: dict[str, Any]
    choice: int = 0


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole answer.

    Attributes:
        text: Content of the first answer.
        reasoning: The model's thinking, empty where there is none.
        tool_calls: Tool calls in the OpenAI shape, arguments as JSON text.
        finish_reason: Why the answer ended, e.g. "stop", "length", "tool_calls".
        usage: The server's `usage` object, None where it sent none.
        raw: The whole response.
        status: "ok", or "error" when the server says that it gave up.
        metrics: vLLM's per-request `metrics`, as they came.
        timings: llama.cpp's `timings`, as they came.
    """

    text: str
    reasoning: str
    tool_calls: list[dict[str, Any]]
    finish_reason: str | None
    usage: dict[str, Any] | None
    raw: dict[str, Any]
    status: str = "ok"
    metrics: dict[str, Any] | None = None
    timings: dict[str, Any] | None = None


class Answer:
    """The state machine of one response body; `deltas` holds what is ready for the consumer.

    Args:
        tokens: The clock that every chunk is shown to.
        hide_usage: Whether a chunk that only carries usage is kept from the consumer, who did not ask for it.
    """

    def __init__(self, tokens: TokenClock, *, hide_usage: bool = True) -> None:
        self.tokens = tokens
        self.deltas: deque[Delta] = deque()
        self.error: str | None = None
        self.usage: dict[str, Any] | None = None
        self.metrics: dict[str, Any] | None = None
        self.timings: dict[str, Any] | None = None
        self.finish_reason: str | None = None
        self.tool_calls: list[dict[str, Any]] = []
        self._hide_usage = hide_usage
        self._parser = SSEParser()
        self._body: list[bytes] = []  # of a server that was asked to stream and sends one JSON object
        self._begun = False
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._call_of_index: dict[int, dict[str, Any]] = {}

    @property
    def over(self) -> bool:
        """Whether nothing that may still come belongs to the answer."""
        return self.tokens.done_seen or self.error is not None

    @property
    def text(self) -> str:
        """The first answer's content so far."""
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        """The first answer's thinking so far."""
        return "".join(self._reasoning)

    def feed(self, stamp_ns: int, data: bytes) -> None:
        """Take bytes that one read returned at `stamp_ns`."""
        if self.tokens.first_byte_ns is None:
            self.tokens.first_byte_ns = stamp_ns
        if not self._begun or self._body:
            self._begun = self._begun or bool(data.strip())
            if self._body or data.lstrip().startswith(b"{"):  # no field of an event begins so
                self._body.append(data)
                return
        self._take_events(stamp_ns, self._parser.feed(data))

    def end(self, stamp_ns: int) -> None:
        """Take the end of the body."""
        if self._body:
            self._take_object(b"".join(self._body))
        self._take_events(stamp_ns, (e for e in self._parser.close() if _is_whole(e)))

    def _take_events(self, stamp_ns: int, events: Iterable[ServerEvent]) -> None:
        for event in events:
            if self.over:
                return
            self._take(stamp_ns, event)

    def _take(self, stamp_ns: int, event: ServerEvent) -> None:
        data = event.data
        if _is_done(data):
            self.tokens.done()
            return
        chunk = decode_json(data)
        if event.name == b"error" or not isinstance(chunk, dict):
            stated = error_message(chunk) if chunk is not None else None
            plain = (
                f"an event that is no JSON object: {quoted(data)}" if event.name != b"error" else quoted(data)
            )
            self._fail(stated or plain, chunk)
            return
        self.tokens.feed(stamp_ns, chunk)
        self._take_chunk(chunk)

    def _take_object(self, data: bytes) -> None:
        """Take the JSON object of a server that was asked to stream and does not: no times of tokens."""
        body = decode_json(data)
        if isinstance(body, dict):  # else it broke off
            self.tokens.read_whole(body)
            self.tokens.done()  # its last brace is the end mark
            self._take_chunk(body)

    def _take_chunk(self, chunk: dict[str, Any]) -> None:
        if (message := error_message(chunk)) is not None:
            self._fail(message, chunk)
            return
        self._note_extras(chunk)
        for choice in chunk.get("choices") or ():
            self._take_choice(choice, chunk)
        if not chunk.get("choices") and not self._hide_usage and chunk.get("usage"):
            self.deltas.append(Delta("", "", [], None, chunk))

    def _fail(self, message: str, item: object) -> None:
        self.error = message
        self.tokens.fail(item)

    def _note_extras(self, chunk: dict[str, Any]) -> None:
        for name in ("usage", "metrics", "timings"):
            value = chunk.get(name)
            if isinstance(value, dict):
                setattr(self, name, value)

    def _take_choice(self, choice: Any, chunk: dict[str, Any]) -> None:
        if not isinstance(choice, dict):
            return
        message = choice.get("delta") or choice.get("message") or choice
        delta = Delta(
            _content_of(message),
            _reasoning_of(message),
            [call for call in message.get("tool_calls") or () if isinstance(call, dict)],
            choice.get("finish_reason"),
            chunk,
            choice.get("index") or 0,
        )
        if delta.choice == 0:
            self._collect(delta)
        # A piece with nothing in it (the role, mostly) is no reason to wake the consumer.
        if delta.text or delta.reasoning or delta.tool_calls or delta.finish_reason:
            self.deltas.append(delta)

    def _collect(self, delta: Delta) -> None:
        if delta.text:
            self._text.append(delta.text)
        if delta.reasoning:
            self._reasoning.append(delta.reasoning)
        for fragment in delta.tool_calls:
            self._merge_call(fragment)
        if delta.finish_reason:
            self.finish_reason = delta.finish_reason

    def _merge_call(self, fragment: dict[str, Any]) -> None:
        index = fragment.get("index")
        if not isinstance(index, int):
            # Without an index, an id starts a call and its absence continues the last one.
            index = (
                len(self.tool_calls)
                if fragment.get("id") or not self.tool_calls
                else len(self.tool_calls) - 1
            )
        call = self._call_of_index.get(index)
        if call is None:
            call = self._call_of_index[index] = {"id": None, "type": "function", "function": _no_function()}
            self.tool_calls.append(call)
        if fragment.get("id"):
            call["id"] = fragment["id"]
        function = fragment.get("function")
        if isinstance(function, dict):
            if function.get("name"):
                call["function"]["name"] = function["name"]
            arguments = function.get("arguments")
            if isinstance(arguments, str):
                call["function"]["arguments"] += arguments
            elif arguments is not None:  # some servers send an object instead of JSON text
                call["function"]["arguments"] += json.dumps(arguments)


def _is_whole(event: ServerEvent) -> bool:
    """Return whether a body's last event only lacks its empty line, and is not half of one that broke off."""
    return bool(event.name) or _is_done(event.data) or decode_json(event.data) is not None


def _is_done(data: bytes) -> bool:
    return data.strip() == _DONE


def _no_function() -> dict[str, str]:
    return {"name": "", "arguments": ""}


def _content_of(message: dict[str, Any]) -> str:
    content = message.get("content")
    if content is None:
        content = message.get("text") or message.get("refusal")
    if isinstance(content, str):
        return content
    if isinstance(content, list):  # parts
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return ""


def _reasoning_of(message: dict[str, Any]) -> str:
    value = message.get("reasoning_content") or message.get("reasoning")
    return value if isinstance(value, str) else ""


def completion(data: bytes, tokens: TokenClock, stamp_ns: int) -> Completion | str:
    """Return the answer in a body that was not streamed, or the server's complaint."""
    body = decode_json(data)
    if not isinstance(body, dict):
        return f"an answer that is no JSON object: {quoted(data)}"
    tokens.read_whole(body)  # an error's name, too
    if (message := error_message(body)) is not None:
        return message
    # The streaming state machine reads a whole message like one big delta; its clock is not the call's.
    answer = Answer(TokenClock(stamp_ns))
    answer.feed(stamp_ns, data)
    answer.end(stamp_ns)
    return Completion(
        answer.text,
        answer.reasoning,
        answer.tool_calls,
        answer.finish_reason,
        answer.usage,
        body,
        tokens.status,
        answer.metrics,
        answer.timings,
    )


def decode_json(data: bytes) -> Any:
    """Return the JSON value in `data`, None where there is none.

    msgspec is the fast way; what it refuses though many servers write it (NaN, lone surrogates) is read by
    the standard library.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def error_message(body: Any) -> str | None:
    """Return what a server complains of in an error object of any known shape, None if it does not."""
    if not isinstance(body, dict):
        return None
    error = body.get("error")
    if not error and (body.get("object") == "error" or body.get("type") == "error"):
        error = body
    if not error:
        return None
    if isinstance(error, dict):
        stated = (
            error.get("message") or error.get("detail") or error.get("type") or error.get("code") or error
        )
        return quoted(str(stated).encode())
    return quoted(str(error).encode())


def quoted(data: bytes) -> str:
    """Return a server's own words, shortened, on one line."""
    text = " ".join(data.decode("utf-8", "replace").split())
    return text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}…"
