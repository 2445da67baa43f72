"""A streamed call: from the first pull to the one end of its span, by whichever way the consumer leaves."""

from __future__ import annotations

import atexit
import os
from typing import TYPE_CHECKING, Any, Final

import httpx

from hotspan.tracer import clock, semconv
from hotspan.tracer.clients.answer import Answer, Delta
from hotspan.tracer.clients.call import OPEN, Call
from hotspan.tracer.errors import StreamError

if TYPE_CHECKING:
    from hotspan.tracer.clients.session import Session

_DRAIN_PATIENCE_S: Final = (
    0.05  # for the end of a body after [DONE], so that the connection can be used again
)
_SLOW_CONSUMER_NS: Final = (
    1_000_000  # after holding for longer, waiting bytes are taken before the next piece
)


# Streams that have not ended, so that the end of the interpreter can end their spans.
_open: set[Exchange] = set()


def _end_open() -> None:
    for exchange in list(_open):
        exchange.drop()


# The configuration's own exit handler was registered before and so runs after this one.
atexit.register(_end_open)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open.clear)


class Exchange:
    """One streamed call, from the first pull to the end of its span, which comes exactly once."""

    def __init__(self, session: Session, call: Call, *, hide_usage: bool) -> None:
        self.call = call
        self.answer = Answer(call.tokens)
        self._session = session
        self._wire = session.wire
        self._shown = session.target.shown
        self._hide_usage = hide_usage
        self._response: httpx.Response | None = None
        self._pieces: Any = None
        self._stream: Any = None
        self._broken: httpx.HTTPError | None = None
        self._body_ended = False
        self._started_ns = self._yielded_ns = self._hold_ns = self._n_items = 0

    @property
    def over(self) -> bool:
        """Whether the call has ended, in whatever way."""
        return self.call.status != OPEN

    async def open(self) -> None:
        """Send the request, unless that was done: on entering the stream, or at the first pull."""
        if self._response is not None or self.over:
            return
        call = self.call
        await self._session.start(call)
        self._started_ns = clock.now_ns()
        try:
            response = await self._session.send(call)
        except BaseException as exc:
            call.end_by(exc)
            raise
        self._response = response
        self._stream = response.extensions.get("network_stream")
        self._pieces = self._wire.pieces(response)
        call.tokens.framed = True
        self.answer = Answer(call.tokens, hide_usage=self._hide_usage)
        _open.add(self)

    async def pull(self) -> Delta | None:
        """Return the next piece for the consumer, None when there will be none.

        Raises:
            StreamError: The server reported an error, or the answer broke off; after the pieces before it.
            EngineError: The server did not take the request.
        """
        if self.over:
            return None
        hold_ns = clock.now_ns() - self._yielded_ns if self._yielded_ns else 0
        self._hold_ns += hold_ns
        try:
            if self._response is None:
                await self.open()
            elif hold_ns > _SLOW_CONSUMER_NS:
                await self._catch_up()
            answer = self.answer
            while not answer.deltas:
                if self._body_ended or answer.over:
                    await self._finish()
                    return None
                await self._read()
        except BaseException as exc:
            await self._end_by(exc)
            raise
        self._n_items += 1
        self._yielded_ns = clock.now_ns()
        return answer.deltas.popleft()

    async def close(self, exc: BaseException | None = None) -> None:
        """End the stream here: abandoned, unless the answer was whole already or `exc` says why."""
        if self._response is None or self.over:
            return
        self._account_until_now()
        self._end_early(exc)
        await self._wire.close(self._response)

    def drop(self) -> httpx.Response | None:
        """End the stream of a consumer who is gone, and return the response that is still to be closed.

        Nothing is done for a stream that has ended, or that a forked process has of its parent.
        """
        if self not in _open:
            return None
        self._account_until_now()
        self._end_early(None)
        return self._response

    def _account_until_now(self) -> None:
        if self._yielded_ns:
            self._hold_ns += clock.now_ns() - self._yielded_ns

    def _end_early(self, exc: BaseException | None) -> None:
        self._note()
        if self.call.tokens.complete and exc is None:
            self.call.end_ok()
        else:
            self.call.end_by(GeneratorExit() if exc is None or isinstance(exc, Exception) else exc)

    async def _catch_up(self) -> None:
        """Take what arrived while the consumer was busy, to stamp it before the consumer gets to it.

        One read of the socket, after the pieces of the one before.  Asked only of our own transport: a
        foreign stream may be of another protocol.
        """
        now_ns, stream = clock.now_ns(), self._stream
        while not (self._body_ended or self.answer.over) and getattr(stream, "read_ns", now_ns) < now_ns:
            if not stream.get_extra_info("is_readable"):
                return
            await self._read()

    async def _read(self) -> None:
        """Take one piece of the body; a connection that breaks is kept for when its pieces are consumed."""
        try:
            piece = await self._wire.next_piece(self._pieces)
        except httpx.HTTPError as exc:
            self._broken, piece = exc, None
        stamp_ns = getattr(self._stream, "read_ns", 0) or clock.now_ns()
        if piece is None:
            self._body_ended = True
            self.answer.end(stamp_ns)
        else:
            self.answer.feed(stamp_ns, piece)

    async def _finish(self) -> None:
        """End the span with what the answer turned out to be; raise if that is not a whole one."""
        answer, call = self.answer, self.call
        if answer.error is not None:
            msg = f"{self._shown} reported an error inside its answer: {answer.error}"
            raise StreamError(msg)
        if isinstance(self._broken, httpx.TimeoutException) and not call.tokens.complete:
            msg = f"{self._shown} stopped sending in the middle of its answer ({type(self._broken).__name__})"
            raise StreamError(msg) from self._broken
        self._note()
        if not call.tokens.complete:
            how = f": {self._broken}" if self._broken is not None else ", without a finish reason"
            msg = f"the answer of {self._shown} broke off after {call.tokens.n_chunks} chunks{how}"
            truncation = StreamError(msg)
            call.end_truncated(truncation)
            raise truncation from self._broken
        call.end_ok()
        await self._drain()

    async def _drain(self) -> None:
        """Read to the body's end if it is near, so that the connection can serve the next call."""
        stream, response = self._stream, self._response
        try:
            if not self._body_ended and hasattr(stream, "patience_s"):
                stream.patience_s = _DRAIN_PATIENCE_S
                while await self._wire.next_piece(self._pieces) is not None:
                    pass
        except httpx.HTTPError:
            pass
        finally:
            if response is not None:
                await self._wire.close(response)

    async def _end_by(self, exc: BaseException) -> None:
        if self.over and self._response is None:
            return
        self._note()
        self.call.end_by(exc)
        if self._response is not None:
            await self._wire.close(self._response)

    def _note(self) -> None:
        """Set what only the way of consuming knows; every way out passes here, just before the span ends."""
        _open.discard(self)
        busy_ns = clock.now_ns() - self._started_ns - self._hold_ns
        self.call.note(
            {
                semconv.STREAM_ITEMS: self._n_items,
                semconv.STREAM_BUSY_NS: max(0, busy_ns),
                semconv.STREAM_HOLD_NS: self._hold_ns,
            }
        )
        self.call.note_answer(self.answer.text, self.answer.finish_reason)
