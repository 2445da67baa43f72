"""The token clock: when a model's answer came, token by token, from whatever shape it comes in.

One state machine serves every source: parsed server-sent events (dicts), chunk objects of the OpenAI SDK and
of frameworks, and the str or bytes pieces that a user's own generator yields.

    send ──► first byte ──► first token ──► first content token ──► … ──► last token
             TTFB           TTFT            time to first answer

Notes on the hot path: a text piece costs one call, one type check and one append of eight bytes; whatever
can be computed at the end is.  What is fed belongs to the user, so nothing is kept of it but counts and ids,
and nothing that it does (a property that raises, a lazy attribute) leaves this module.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping, Sized
from typing import TYPE_CHECKING, Final, Literal

from hotspan.tracer import semconv
from hotspan.tracer.chunk_gaps import gaps_between, thinned
from hotspan.tracer.chunks import ANSWER, NO_TOKEN, TOKEN, bearing, bears_other_token
from hotspan.tracer.engines import response_attributes
from hotspan.tracer.faults import is_the_programs
from hotspan.tracer.usage import Usage, field, read_timings, read_usage

if TYPE_CHECKING:
    from hotspan.tracer.record import AttributeValue

Status = Literal["ok", "error", "truncated"]

MAX_CHOICES: Final = 128  # answers to one prompt that are told apart; a server's index is not trusted

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")  # of an error; anything else may be content
_NO_NAMES: Final = (None, "error", False, True)
_FAILED: Final = frozenset({"error", "abort"})  # finish reasons by which engines say that they gave up
_MIN_TOKENS_OF_BUFFERED: Final = 4


class _Choice:
    """One answer among the `n` of a request: its own token stamps, since gaps of two answers never mix."""

    __slots__ = ("finish_reason", "first_answer_ns", "stamps")

    def __init__(self) -> None:
        self.stamps = array("q")  # monotonic ns of every token-bearing chunk
        self.first_answer_ns: int | None = None
        self.finish_reason: str | None = None


class TokenClock:
    """Stamps of one streamed answer, and the figures that follow from them.

    Args:
        send_ns: Monotonic stamp just before the request was written, after any wait for a connection.
        framed: True for a protocol that says when it is complete: without a finish reason and without
            `done()` the stream is then truncated.  Chunks of the OpenAI shape turn it on by themselves.

    Attributes:
        error_name: What the server calls the error that it reported: a code or a type, never its message.
        held: Stamps of reads whose bytes had waited for a slow consumer: when they came is not known.
        is_whole: Whether the answer was not streamed.
    """

    __slots__ = (
        "_account", "_choices", "_error", "_first_item_ns", "_pieces", "done_seen", "error_name",
        "first_byte_ns", "framed", "held", "is_whole", "response_id", "response_model", "send_ns", "usage",
    )  # fmt: skip

    def __init__(self, send_ns: int, *, framed: bool = False) -> None:
        self.send_ns = send_ns
        self.framed = framed
        self.first_byte_ns: int | None = None
        self.held: set[int] = set()
        self.is_whole = False
        self.error_name: str | None = None
        self.usage = Usage()
        self.response_id: str | None = None
        self.response_model: str | None = None
        self.done_seen = False
        self._account: dict[str, AttributeValue] = {}
        self._first_item_ns: int | None = None
        self._choices: dict[int, _Choice] = {}
        self._error = False
        self._pieces: list[int] = []  # stamps of pieces of text; a list: an array takes 70 ns for each

    # --- Feeding ------------------------------------------------------------------------------------------

    def feed(self, stamp_ns: int, item: object) -> None:
        """Take one streamed item that came at `stamp_ns` (monotonic); never raises.

        Args:
            stamp_ns: When the item's bytes were read, or the generator yielded it, without the time that a
                slow consumer had held the generator up before.
            item: A str or bytes piece, an OpenAI-shaped chunk (dict or object), or anything else: whatever
                is unknown and not empty counts as one chunk that bears tokens.
        """
        if type(item) is str and item:
            self._pieces.append(stamp_ns)
            return
        try:
            self._feed(stamp_ns, item)
        except Exception as exc:
            if is_the_programs(exc):
                raise
            self._pieces.append(stamp_ns)

    @property
    def text_stamps(self) -> list[int]:
        """Stamps of text pieces so far; a client that knows a piece to be text may append its own here."""
        return self._pieces

    def read_whole(self, response: object) -> None:
        """Take ids, usage and finish reasons of an answer that was not streamed: it has no token times."""
        self.is_whole = True
        try:
            self._note_facts(response)
            for choice in _listed(field(response, "choices")):
                self._note_finish(choice)
        except Exception:  # noqa: BLE001 - as in `feed`
            return

    def done(self) -> None:
        """Note the protocol's end marker (`[DONE]`)."""
        self.done_seen = True

    def fail(self, item: object = None) -> None:
        """Note that the server reported an error inside the stream, in this item."""
        self._error = True
        self.error_name = self.error_name or _name_of_error(item)

    def finish(self) -> None:
        """Close the books: a text piece belongs to the first answer.  May be called any number of times."""
        if self._pieces:
            first = self._choices.setdefault(0, _Choice())
            first.first_answer_ns = _earliest(first.first_answer_ns, self._pieces[0])
            first.stamps = array("q", sorted([*first.stamps, *self._pieces]))
            self._pieces.clear()

    def _feed(self, stamp_ns: int, item: object) -> None:
        if self._first_item_ns is None:
            self._first_item_ns = stamp_ns
        if item is None:
            return
        if isinstance(item, (str, bytes, bytearray, memoryview)):
            if len(item):
                self._pieces.append(stamp_ns)
            return
        choices = field(item, "choices")
        if isinstance(choices, (list, tuple)):
            self._feed_chunk(stamp_ns, item, choices)
        elif _is_error(item):
            self.fail(item)
        elif (kind := self._kind_of_other(item)) != NO_TOKEN:
            self._note_token(stamp_ns, item, kind)

    def _feed_chunk(self, stamp_ns: int, chunk: object, choices: Iterable[object]) -> None:
        # Hot for clients: looking up what a chunk object does not have costs ten times what it has, so the
        # rarer fields are looked for only where they can be.
        self.framed = True
        for choice in choices:
            kind = bearing(choice)
            if kind != NO_TOKEN:
                self._note_token(stamp_ns, choice, kind)
            self._note_finish(choice)
        self._note_facts(chunk)

    def _kind_of_other(self, item: object) -> int:
        """Classify an item of no OpenAI shape: a framework's message chunk, a bare usage, or unknown."""
        content = field(item, "content")
        if isinstance(content, (str, list)):
            self._note_facts(item)
            if (usage := field(item, "usage_metadata")) is not None:  # LangChain
                self.usage = self.usage.updated_by(read_usage(usage))
            return ANSWER if content else TOKEN if bears_other_token(item) else NO_TOKEN
        if isinstance(item, Mapping) and item.get("usage") is not None:
            self._note_facts(item)
            return NO_TOKEN
        return NO_TOKEN if isinstance(item, Sized) and len(item) == 0 else ANSWER

    def _note_token(self, stamp_ns: int, choice: object, kind: int) -> None:
        state = self._choice(choice)
        state.stamps.append(stamp_ns)
        if kind == ANSWER and state.first_answer_ns is None:
            state.first_answer_ns = stamp_ns

    def _note_finish(self, choice: object) -> None:
        reason = field(choice, "finish_reason")
        if isinstance(reason, str) and reason:
            self._choice(choice).finish_reason = reason
            if reason in _FAILED:
                self._error = True

    def _choice(self, choice: object) -> _Choice:
        index = field(choice, "index")
        if type(index) is not int or not 0 <= index < MAX_CHOICES:
            index = 0
        state = self._choices.get(index)
        if state is None:
            state = self._choices[index] = _Choice()
        return state

    def _note_facts(self, item: object) -> None:
        """Take what a chunk says beside its tokens, whether or not it has any."""
        if (usage := field(item, "usage")) is not None:
            self.usage = self.usage.updated_by(read_usage(usage))
            self._note_account(item)
        elif isinstance(item, Mapping) and (timings := item.get("timings")) is not None:
            self.usage = self.usage.updated_by(read_timings(timings))
            self._note_account(item)
        if self.response_id is None:
            self.response_id = _text_of(field(item, "id"))
        if self.response_model is None:
            self.response_model = _text_of(field(item, "model"))
        if _is_error(item):
            self.fail(item)

    def _note_account(self, item: object) -> None:
        # What the server says of its own time rides with the usage; of client objects it is among the extras.
        body = item if isinstance(item, Mapping) else field(item, "model_extra")
        if isinstance(body, Mapping):
            self._account = response_attributes(body) or self._account

    # --- What follows -------------------------------------------------------------------------------------

    @property
    def complete(self) -> bool:
        """Whether the server said that the answer is whole: `[DONE]`, or a finish reason for every answer."""
        if self.done_seen:
            return True
        return bool(self._choices) and all(c.finish_reason is not None for c in self._choices.values())

    @property
    def status(self) -> Status:
        """How the stream ended, as far as its content says: ok, error, or truncated."""
        if self._error:
            return "error"
        return "truncated" if self.framed and not self.complete else "ok"

    @property
    def n_chunks(self) -> int:
        """Chunks that bear tokens, over all answers."""
        return sum(len(c.stamps) for c in self._choices.values()) + len(self._pieces)

    @property
    def output_tokens(self) -> int | None:
        """Output tokens by the server's usage, else the count of chunks; None when there is neither."""
        reported = self.usage.output_tokens
        return reported if reported is not None else self.n_chunks or None

    def stamps(self) -> list[int]:
        """Return the stamps of all chunks that bear tokens, over all answers, in order."""
        self.finish()
        return sorted(stamp for choice in self._choices.values() for stamp in choice.stamps)

    def attributes(self) -> dict[str, AttributeValue]:
        """Return everything known so far under its attribute key; what is not known is not there."""
        self.finish()
        found = dict(self._account)
        found.update(self._time_attributes())
        found.update(self._token_attributes())
        found[semconv.RESPONSE_ID] = self.response_id
        found[semconv.RESPONSE_MODEL] = self.response_model
        reasons = [c.finish_reason for _, c in sorted(self._choices.items()) if c.finish_reason is not None]
        found[semconv.FINISH_REASONS] = reasons or None
        return {key: value for key, value in found.items() if value is not None}

    def _time_attributes(self) -> dict[str, AttributeValue]:
        answers = [c for c in self._choices.values() if c.stamps]
        first = min((c.stamps[0] for c in answers), default=None)
        last = max((c.stamps[-1] for c in answers), default=None)
        first_item = _earliest(self._first_item_ns, first)
        buffered = self._is_buffered(first, last)
        gaps = [] if buffered else thinned(gap for c in answers for gap in gaps_between(c.stamps, self.held))
        return {
            semconv.TTFB_NS: self._since_send(_earliest(self.first_byte_ns, first_item)),
            semconv.TIME_TO_FIRST_CHUNK: _seconds(self._since_send(first_item)),
            semconv.TTFT_NS: self._since_send(first),
            semconv.TTFA_NS: self._since_send(_earliest(*(c.first_answer_ns for c in answers))),
            semconv.LAST_TOKEN_NS: self._since_send(last),
            semconv.TPOT_NS: None if first == last else self._tpot_ns(answers),
            semconv.CHUNK_GAPS_NS: gaps or None,
            semconv.HELD_STAMPS: self._n_held(answers) or None,
            semconv.BUFFERED: True if buffered else None,
        }

    def _token_attributes(self) -> dict[str, AttributeValue]:
        usage, n_chunks = self.usage, self.n_chunks
        estimated = usage.output_tokens is None and n_chunks > 0
        disagrees = usage.output_tokens is not None and usage.output_tokens < n_chunks
        return {
            semconv.CHUNKS: n_chunks or None,
            semconv.INPUT_TOKENS: usage.input_tokens,
            semconv.OUTPUT_TOKENS: self.output_tokens,
            semconv.CACHED_TOKENS: usage.cached_tokens,
            semconv.REASONING_TOKENS: usage.reasoning_tokens,
            semconv.TOKENS_ESTIMATED: True if estimated else None,
            semconv.USAGE_DISAGREES: True if disagrees else None,
        }

    def _since_send(self, stamp_ns: int | None) -> int | None:
        # Never negative: a server may answer before the last byte of the request was written.
        return None if stamp_ns is None or stamp_ns in self.held else max(0, stamp_ns - self.send_ns)

    @property
    def is_first_held(self) -> bool:
        """Whether the first token may have come long before its stamp, or there is none."""
        stamps = [*self._pieces[:1], *(c.stamps[0] for c in self._choices.values() if c.stamps)]
        return not stamps or min(stamps) in self.held

    def _n_held(self, answers: list[_Choice]) -> int:
        return sum(stamp in self.held for c in answers for stamp in c.stamps) if self.held else 0

    def _is_buffered(self, first_ns: int | None, last_ns: int | None) -> bool:
        """Whether several tokens all came in one read: then nothing is known of the time between them.

        A single chunk may be a short answer and its end token; it has to stand for more than those.
        """
        if first_ns is None or first_ns != last_ns or first_ns in self.held:
            return False
        return self.n_chunks > 1 or (self.output_tokens or 0) >= _MIN_TOKENS_OF_BUFFERED

    def _tpot_ns(self, answers: list[_Choice]) -> float | None:
        """Time per output token after the first: the answers' decode times over their tokens less the firsts.

        For one answer this is (last - first) / (tokens - 1).  With several, `usage` gives only their sum.
        """
        n_rest = (self.output_tokens or 0) - len(answers)
        ends = [stamp for c in answers for stamp in (c.stamps[0], c.stamps[-1])]
        if not answers or n_rest < 1 or not self.held.isdisjoint(ends):
            return None
        return sum(c.stamps[-1] - c.stamps[0] for c in answers) / n_rest


def _is_error(item: object) -> bool:
    if type(item) is not dict and not isinstance(item, Mapping):  # the first is a tenth of the second
        return False
    return bool(item.get("error")) or item.get("object") == "error" or item.get("type") == "error"


def _name_of_error(item: object) -> str | None:
    if not isinstance(item, Mapping):
        return None
    error = item.get("error")
    error = error if isinstance(error, Mapping) else item
    for value in (error.get("code"), error.get("type")):
        if value not in _NO_NAMES and isinstance(value, (str, int)) and _NAME.fullmatch(str(value)):
            return str(value)
    return None


def _listed(value: object) -> Iterable[object]:
    return value if isinstance(value, (list, tuple)) else ()


def _text_of(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _earliest(*stamps: int | None) -> int | None:
    return min((s for s in stamps if s is not None), default=None)


def _seconds(duration_ns: int | None) -> float | None:
    return None if duration_ns is None else duration_ns / 1e9
