"""What the body of an OpenAI server's response says of its tokens, read as it passes by.

The chunks of a streamed answer are mostly alike but for their text.  So the first one that carries text and
nothing else becomes a pattern, what stands before its text and what stands after it, and whatever matches is
counted without being parsed.  Every other event takes the general way: the event parser, a few typed fields
or a dict, the token clock.  Events of the Responses API are turned into chunks of the chat shape.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from hotspan.tracer.clients.answer import decode_json
from hotspan.tracer.sse import SSEParser

if TYPE_CHECKING:
    from hotspan.tracer.generation import TokenClock
    from hotspan.tracer.sse import ServerEvent

_DONE: Final = b"[DONE]"
_PREFIX: Final = b"data: "
_END: Final = b"\n\n"
_NEVER: Final = b"\0"  # in no event
_TEXT_KEY: Final = re.compile(rb'"(?:content|text)":\s?"')
_MAX_LESSONS: Final = 4

# Responses API: kind of event -> the field of a chat delta that means the same.
_DELTA_FIELDS: Final = {
    "response.output_text.delta": "content",
    "response.refusal.delta": "refusal",
    "response.reasoning_text.delta": "reasoning",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.function_call_arguments.delta": "tool_calls",
    "response.custom_tool_call_input.delta": "tool_calls",
    "response.mcp_call_arguments.delta": "tool_calls",
    "response.code_interpreter_call_code.delta": "tool_calls",
    "response.audio.delta": "audio",
}
_CALL_ITEMS: Final = frozenset({"function_call", "custom_tool_call", "mcp_call"})
_FINISH_REASONS: Final = {
    "completed": "stop",
    "failed": "error",
    "incomplete": "incomplete",
    "cancelled": "cancelled",
}


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None


class _Choice(msgspec.Struct, gc=False):
    index: int = 0
    delta: _Delta | None = None
    text: str | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct, gc=False):
    """The fields of a chunk that decide whether it is a plain piece of text."""

    choices: list[_Choice] | None = None
    usage: object = None
    error: object = None
    timings: object = None


class _Embeddings(msgspec.Struct):
    """An answer with vectors, without the vectors."""

    id: object = None
    model: object = None
    usage: object = None
    error: object = None


_decode_chunk: Final = msgspec.json.Decoder(_Chunk).decode
_decode_embeddings: Final = msgspec.json.Decoder(_Embeddings).decode


class _Pattern(NamedTuple):
    """What stands around the text in a chunk that carries nothing else, as one event of a body to its end.

    An event that begins and ends so, with some text and no quote between, is such a chunk: the text ends
    where `after` begins, and there is no room for anything else.
    """

    before: bytes
    after: bytes


class Body:
    """Reads a response body piece by piece, and tells the token clock.

    Args:
        tokens: The clock of the attempt that was answered.
        content_type: Of the response: one JSON object, or (whatever else it says) events.
        has_vectors: Whether the answer is embeddings, which are skipped.
        keep_text: Whether the answer's text is collected.
    """

    def __init__(self, tokens: TokenClock, content_type: str, *, has_vectors: bool, keep_text: bool) -> None:
        self.text: list[str] = []
        self._tokens = tokens
        self._note_text = tokens.text_stamps.append
        self._parser = SSEParser()
        self._json: list[bytes] | None = [] if "json" in content_type else None
        self._has_vectors = has_vectors
        self._keep_text = keep_text
        self._pattern = _Pattern(_NEVER, _NEVER)
        self._n_lessons = 0
        # The pattern for a piece that is one whole event; matches nothing while there is none, or in the
        # middle of an event.
        self._before = self._after = _NEVER
        self._n_before = self._n_after = len(_NEVER)
        tokens.framed = True

    def feed(self, stamp_ns: int, piece: bytes) -> None:
        """Take bytes that one read returned at `stamp_ns`; 0: not known when."""
        # Hot: every chunk of an answer comes here.
        if piece.startswith(self._before) and piece.endswith(self._after):
            end = len(piece) - self._n_after
            if end > self._n_before and piece.find(b'"', self._n_before, end) < 0:
                self._note_text(stamp_ns)
                return
        self._feed_any(stamp_ns, piece)

    def end(self, stamp_ns: int) -> None:
        """Take the end of the body."""
        if self._json is not None:
            self._take_whole(b"".join(self._json))
            return
        for event in self._parser.close():
            # The last event may lack its empty line; half of one is none.
            if event.name or event.data.startswith(_DONE) or decode_json(event.data) is not None:
                self._take(stamp_ns, event)

    def _feed_any(self, stamp_ns: int, piece: bytes) -> None:
        tokens = self._tokens
        if tokens.first_byte_ns is None and stamp_ns:
            tokens.first_byte_ns = stamp_ns
        if self._json is not None:
            self._json.append(piece)
            return
        if b"\r" in piece:
            self._parse(stamp_ns, piece)
        else:
            self._scan(stamp_ns, piece)
        self._expect()

    def _scan(self, stamp_ns: int, piece: bytes) -> None:
        """Take the events in a piece one by one: those that match the pattern are only counted."""
        at = 0
        if not self._parser.is_between_events:
            at = _end_of_event(piece, 0)
            self._parse(stamp_ns, piece[:at])
        begins, note, size = piece.startswith, self._note_text, len(piece)
        while at < size and not self._tokens.done_seen:
            before, after = self._pattern.before, self._pattern.after
            n_before, n_after = len(before), len(after)
            # Hot, as `feed`; nothing is cut out of the piece.
            while begins(before, at):
                start = at + n_before
                end = piece.find(b'"', start)
                if end <= start or not begins(after, end):
                    break
                note(stamp_ns)
                at = end + n_after
            if at < size:
                end = _end_of_event(piece, at)
                self._parse(stamp_ns, piece[at:end])
                at = end

    def _parse(self, stamp_ns: int, data: bytes) -> None:
        for event in self._parser.feed(data):
            self._take(stamp_ns, event)

    def _expect(self) -> None:
        """Set what the next piece is compared with."""
        if self._tokens.done_seen or not self._parser.is_between_events:
            self._before = self._after = _NEVER
        else:
            self._before, self._after = self._pattern
        self._n_before, self._n_after = len(self._before), len(self._after)

    def _take_whole(self, content: bytes) -> None:
        item = _without_vectors(content) if self._has_vectors else decode_json(content)
        if not isinstance(item, dict):  # cut, or nothing
            return
        if item.get("object") == "response":
            item |= _as_finished(item)
        self._tokens.read_whole(item)
        self._tokens.done()  # its last brace is the end mark
        if self._keep_text:
            self.text += _texts_of(item, "message")

    def _take(self, stamp_ns: int, event: ServerEvent) -> None:
        tokens = self._tokens
        if tokens.done_seen:  # what comes after the end belongs to nobody
            return
        if event.data.startswith(_DONE):
            tokens.done()
            return
        if tokens.response_id is not None and not (self._keep_text or event.name):
            text = _plain_text(event.data)
            if text is not None:
                self._note_text(stamp_ns)
                self._learn(event.data, text)
                return
        item = decode_json(event.data)
        if not isinstance(item, dict) or event.name == b"error":
            tokens.fail(item)
            return
        if "choices" not in item and isinstance(item.get("type"), str) and item.get("object") != "error":
            item = _as_chunk(item)
        tokens.feed(stamp_ns, item)
        if self._keep_text:
            self.text += _texts_of(item, "delta")

    def _learn(self, data: bytes, text: str) -> None:
        """Make a pattern of a plain chunk; a server whose chunks differ by more is given up soon."""
        if self._n_lessons < _MAX_LESSONS:
            self._n_lessons += 1
            self._pattern = _pattern_of(data, text) or self._pattern


def _end_of_event(piece: bytes, at: int) -> int:
    """Return where the event ends that `at` is in, or the piece, if that comes first."""
    found = piece.find(_END, at)
    return len(piece) if found < 0 else found + len(_END)


def _plain_text(data: bytes) -> str | None:
    """Return the text of a chunk that carries nothing else, None for any other."""
    try:
        chunk = _decode_chunk(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    choices = chunk.choices
    if (
        choices is None
        or len(choices) != 1
        or chunk.usage is not None
        or chunk.error is not None
        or chunk.timings is not None
    ):
        return None
    choice = choices[0]
    if choice.finish_reason is not None or choice.index:
        return None
    delta = choice.delta
    return (choice.text if delta is None else delta.content) or None


def _pattern_of(data: bytes, text: str) -> _Pattern | None:
    """Return what stands around `text` in a chunk; None where the text is escaped, or cannot be found."""
    for found in _TEXT_KEY.finditer(data):
        end = data.find(b'"', found.end())
        if data[found.end() : end] == text.encode():
            return _Pattern(_PREFIX + data[: found.end()], data[end:] + _END)
    return None


def _without_vectors(content: bytes) -> Any:
    try:
        return msgspec.structs.asdict(_decode_embeddings(content))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return decode_json(content)  # a vector with NaN, or no answer at all


def _texts_of(item: dict[str, Any], field: str) -> list[str]:
    """Return the text of the first answer in a chunk (`delta`) or an answer (`message`)."""
    found = []
    choices = item.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and not choice.get("index"):
            inner = choice.get(field)
            text = inner.get("content") if isinstance(inner, dict) else choice.get("text")
            found += [text] if isinstance(text, str) else []
    return found


# --- The Responses API -------------------------------------------------------------------------------------


def _as_chunk(event: dict[str, Any]) -> dict[str, Any]:
    """Return the chat chunk that says what an event of the Responses API says."""
    kind = event["type"]
    if kind == "error":
        return {"choices": [], "error": event}
    response = event.get("response")
    if isinstance(response, dict):
        return _as_finished(response)
    field = _DELTA_FIELDS.get(kind)
    if field is not None:
        value = event.get("delta")
        return _chunk({field: [value] if field == "tool_calls" and value else value})
    item = event.get("item")
    if kind == "response.output_item.added" and isinstance(item, dict) and item.get("type") in _CALL_ITEMS:
        return _chunk({"tool_calls": [item.get("name")]})
    return {"choices": []}


def _chunk(delta: dict[str, Any]) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}]}


def _as_finished(response: dict[str, Any]) -> dict[str, Any]:
    """Return ids, usage and, when it has ended, the finish reason of a response object."""
    status = response.get("status")
    reason = _FINISH_REASONS.get(status) if isinstance(status, str) else None
    details = response.get("incomplete_details")
    if status == "incomplete" and isinstance(details, dict):
        reason = details.get("reason") or reason
    message = {"content": _output_text(response)}
    return {
        "id": response.get("id"),
        "model": response.get("model"),
        "usage": response.get("usage"),
        "error": response.get("error"),
        "choices": []
        if reason is None
        else [{"index": 0, "message": message, "delta": {}, "finish_reason": reason}],
    }


def _output_text(response: dict[str, Any]) -> str:
    outputs = response.get("output")
    parts = [
        part
        for item in (outputs if isinstance(outputs, list) else ())
        if isinstance(item, dict) and isinstance(item.get("content"), list)
        for part in item["content"]
    ]
    return "".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))
