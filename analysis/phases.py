"""The phases of one model call: integers, none negative, that add up to the call's duration exactly.

The client's own stamps lay the call out; the engine's durations divide the room that the stamps leave it:

    |-- backoff, connect --|- send -|----------- wait ------------|------- stream -------|--- tail ---|
    span's start         send    written                    first token            last token       end

Wait is server_before_engine + queue + prefill, or first_token_wait where no engine says more; stream is
decode and consumer_hold; the tail (usage, end mark) is stream_overhead and consumer_hold.  The end of the
write is stamped when the writing thread runs again: on a busy machine the engine has begun by then, and what
it needs before the first token shortens `send`, which in any case ends before that.

Source: docs/definitions.md#generation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hotspan.analysis.engine import EngineAccount
    from hotspan.tracer.record import Attributes, SpanRecord

CLIENT: Final = "client"
TO_THE_END: Final = "client, to the call's end"  # of decoding, where the last token's time is not known
REMAINDER: Final = "remainder"  # what the measured parts leave of the call
# Everything of an attempt's attributes that its phases rest on.
STAMPS: Final = (
    semconv.CONNECT_NS,
    semconv.BACKOFF_NS,
    semconv.SEND_OFFSET_NS,
    semconv.REQUEST_WRITE_NS,
    semconv.HEADERS_NS,
    semconv.TTFT_NS,
    semconv.LAST_TOKEN_NS,
    semconv.STREAM_HOLD_NS,
)
_CLIP_TOLERANCE_NS: Final = 1_000_000  # two clocks, and the trip of the bytes, may differ by this much


@dataclass(frozen=True, slots=True)
class Phases:
    """One call's account of its time."""

    ns: Mapping[str, int]  # phase -> nanoseconds; the values add up to the duration
    sources: Mapping[str, str]  # phase -> where it was read
    is_clipped: bool = False  # the engine's account was longer than the room that the client measured


class _Ledger:
    """Hands out a call's duration; what was not handed out is left over."""

    def __init__(self, duration_ns: int) -> None:
        self.left = duration_ns
        self.ns: dict[str, int] = {}
        self.sources: dict[str, str] = {}

    def take(self, phase: str, wanted_ns: int | None, source: str) -> int:
        """Give a phase what it wants, as far as there is something left; `None`: it is not known."""
        if wanted_ns is None:
            return 0
        granted = min(max(wanted_ns, 0), self.left)
        self.left -= granted
        self.ns[phase] = self.ns.get(phase, 0) + granted
        self.sources.setdefault(phase, source)
        return granted


@dataclass(frozen=True, slots=True)
class _Stamps:
    """The client's measures of one attempt; offsets in ns from `send`."""

    connect: int | None
    backoff: int | None
    send_offset: int
    write: int | None
    headers: int | None
    first_token: int | None
    last_token: int | None
    hold: int | None
    is_disordered: (
        bool  # the last token has an earlier stamp than the first: nothing after the first is known
    )


def phases_of(call: SpanRecord, attempts: Sequence[SpanRecord], engine: EngineAccount | None) -> Phases:
    """Return the phases of one call.

    Args:
        call: The call's outermost span, as measured.
        attempts: Its innermost spans in order of start (the call's own span where there is none inside).  The
            last one is the one that answered; those before it, and the pauses between, are `backoff`.
        engine: The server's account of the last attempt.

    Returns:
        Phases that are known; they sum to the call's duration, and what nothing explains is `unattributed`.
    """
    ledger = _Ledger(call.duration_ns)
    last = attempts[-1]
    if len(attempts) > 1:
        ledger.take("backoff", last.start_ns - attempts[0].start_ns, "span")
    inside = _Ledger(min(last.duration_ns, ledger.left))
    is_clipped = _lay_out(inside, _stamps(last.attributes), engine)
    for phase, granted in inside.ns.items():
        ledger.take(phase, granted, inside.sources[phase])
    ledger.take("unattributed", ledger.left, REMAINDER)
    return Phases(ledger.ns, ledger.sources, is_clipped)


def _stamps(attributes: Attributes) -> _Stamps:
    connect, backoff = _integer(attributes, semconv.CONNECT_NS), _integer(attributes, semconv.BACKOFF_NS)
    send_offset = _integer(attributes, semconv.SEND_OFFSET_NS)
    first, last = _integer(attributes, semconv.TTFT_NS), _integer(attributes, semconv.LAST_TOKEN_NS)
    return _Stamps(
        connect=connect,
        backoff=backoff,
        send_offset=(connect or 0) + (backoff or 0) if send_offset is None else send_offset,
        write=_integer(attributes, semconv.REQUEST_WRITE_NS),
        headers=_integer(attributes, semconv.HEADERS_NS),
        first_token=first,
        last_token=last,
        hold=_integer(attributes, semconv.STREAM_HOLD_NS),
        is_disordered=is_disordered(attributes),
    )


def is_disordered(attributes: Attributes) -> bool:
    """Return whether the last token has an earlier stamp than the first: no decode time can be told."""
    first, last = _integer(attributes, semconv.TTFT_NS), _integer(attributes, semconv.LAST_TOKEN_NS)
    return first is not None and last is not None and last < first


def _integer(attributes: Attributes, key: str) -> int | None:
    value = attributes.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _lay_out(ledger: _Ledger, stamps: _Stamps, engine: EngineAccount | None) -> bool:
    before_send = _Ledger(min(stamps.send_offset, ledger.left))
    before_send.take("backoff", stamps.backoff, CLIENT)
    before_send.take("connect", stamps.connect, CLIENT)
    for phase, granted in before_send.ns.items():
        ledger.take(phase, granted, CLIENT)
    ledger.take("unattributed", before_send.left, REMAINDER)
    engine = None if engine is None or engine.is_empty or stamps.is_disordered else engine
    written = ledger.take("send", _write_ns(ledger.left, stamps, engine), CLIENT)
    if stamps.first_token is None:
        return _lay_out_answer(ledger, stamps, written, engine)
    return _lay_out_stream(ledger, stamps, written, engine)


def _write_ns(room: int, stamps: _Stamps, engine: EngineAccount | None) -> int | None:
    if stamps.write is None:
        return None
    until = room if stamps.first_token is None else min(stamps.first_token, room)
    asked = 0 if engine is None else _asked_ns(engine)
    if engine is not None and stamps.first_token is not None:
        asked -= engine.decode_ns or 0
    return min(stamps.write, max(0, until - asked))


def _lay_out_answer(ledger: _Ledger, stamps: _Stamps, written: int, engine: EngineAccount | None) -> bool:
    """Lay out a call whose first token's time is not known: not streamed, nothing came, or it was held."""
    if engine is None:
        ledger.take("consumer_hold", stamps.hold, CLIENT)
        return False  # nothing tells waiting from decoding: the rest stays unattributed
    room = ledger.left
    for phase, wanted, source in _parts(engine):
        ledger.take(phase, wanted, source)
    if stamps.headers is not None:
        # An answer in one piece has its headers when the engine is done: what it did not account for until
        # then passed in the server around it.
        until_headers = stamps.headers - written - (room - ledger.left)
        ledger.take("server_before_engine", until_headers, CLIENT)
    ledger.take("consumer_hold", stamps.hold, CLIENT)
    return _asked_ns(engine) > room + _CLIP_TOLERANCE_NS


def _lay_out_stream(ledger: _Ledger, stamps: _Stamps, written: int, engine: EngineAccount | None) -> bool:
    first = stamps.first_token or 0
    wait = min(max(first - written, 0), ledger.left)
    if stamps.is_disordered:
        ledger.take("first_token_wait", wait, CLIENT)
        return False
    after = ledger.left - wait
    stream = after if stamps.last_token is None else min(stamps.last_token - first, after)
    hold_in_stream, hold_in_tail = _split_hold(stamps.hold, stream, after - stream)
    is_clipped = False
    if engine is None:
        ledger.take("first_token_wait", wait, CLIENT)
    else:
        room = after - hold_in_stream - hold_in_tail
        is_clipped = _share_with_engine(ledger, wait, room, engine)
        is_clipped = is_clipped and _asked_ns(engine) > wait + after + _CLIP_TOLERANCE_NS
    if engine is None or engine.decode_ns is None:
        ledger.take("decode", stream - hold_in_stream, TO_THE_END if stamps.last_token is None else CLIENT)
    if stamps.hold is not None:
        ledger.take("consumer_hold", hold_in_stream + hold_in_tail, CLIENT)
    ledger.take("stream_overhead", ledger.left, REMAINDER)
    return is_clipped


def _share_with_engine(ledger: _Ledger, wait: int, room: int, engine: EngineAccount) -> bool:
    """Divide the wait for the first token and the room after it by the engine's account.

    Decoding that does not fit behind the client's first token happened before it: a tool-call parser holds
    tokens back, and bytes travel.
    """
    before = _Ledger(wait)
    granted = {
        phase: before.take(phase, wanted, source)
        for phase, wanted, source in _parts(engine)
        if phase != "decode" and wanted is not None
    }
    decode = engine.decode_ns or 0
    decode_behind = min(decode, room)
    decode_before = before.take("decode", decode - decode_behind, engine.source)
    granted["decode"] = decode_behind + decode_before
    for phase, wanted, source in _parts(engine):
        if wanted is not None:
            ledger.take(phase, granted[phase], source)
    # Without a prefill the rest of the wait holds it too, and is not the server's around the engine.
    knows_prefill = engine.prefill_ns is not None or engine.undivided_ns is not None
    ledger.take("server_before_engine" if knows_prefill else "first_token_wait", before.left, CLIENT)
    return sum(granted.values()) < _asked_ns(engine)


def _split_hold(hold: int | None, stream: int, tail: int) -> tuple[int, int]:
    """Return how much of the consumer's hold lies before and after the last token's stamp.

    A generator's tokens are stamped in its own time: all hold comes on top, and the tail has room for it.  A
    client's are stamped as the bytes came, while the consumer held: what does not fit into the tail.
    """
    in_tail = min(hold or 0, tail)
    return min((hold or 0) - in_tail, stream), in_tail


def _parts(engine: EngineAccount) -> tuple[tuple[str, int | None, str], ...]:
    """Return phase, duration and source of everything that the engine says."""
    return (
        ("queue", engine.queue_ns, engine.queue_source or engine.source),
        ("prefill", engine.prefill_ns, engine.source),
        ("first_token_wait", engine.undivided_ns, engine.source),
        ("decode", engine.decode_ns, engine.source),
    )


def _asked_ns(engine: EngineAccount) -> int:
    return sum(wanted or 0 for _, wanted, _ in _parts(engine))
