"""A tap on the bytes of a streamed response of the openai client.

    socket ──► HTTP client ──► Tap ──► the client's parser ──► Pace ──► user
               stamps reads    reads the body in passing       items, hold

Tap and `Pace` (openai_pace.py) pass on what they get as it is, and the objects that the user sees stay the
client's own: the tap takes the place of the HTTP response's byte stream, the pace that of the iterator inside
of the `Stream`.

Who ends the call: the tap, when the body ends, breaks, is closed or is dropped; but the pace where that
happens while the user waits for an item, since only there is it known what he then gets.
"""

from __future__ import annotations

import atexit
import functools
import inspect
import os
import sys
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from hotspan.tracer import clock
from hotspan.tracer.clients.openai_pace import AsyncSteps
from hotspan.tracer.faults import fault

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from hotspan.tracer.clients.openai_call import OpenAICall
    from hotspan.tracer.clients.openai_pace import Pace

_SLOW_CONSUMER_NS: Final = 1_000_000  # after a longer hold, nothing tells when bytes that wait have come
_NEVER_NS: Final = 1 << 62


class _Unpaced:
    """The pace of a stream that has none: nothing is known of its consumer."""

    hold_ns = 0


_UNPACED: Final = _Unpaced()

# Taps on bodies that have not ended, so that the end of the interpreter can end their calls.
_open: weakref.WeakSet[Tap] = weakref.WeakSet()


def _end_open() -> None:
    for left in list(_open):
        left.abandon()


# The configuration's own exit handler was registered before and so runs after this one.
atexit.register(_end_open)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open.clear)


class _Reads:
    """Where the reads of one body stand.

    Attributes:
        last_ns: Stamp of the last one.
        seen_ns: All hold at the last moment at which nothing waited to be read.
        held_until_ns: What is read before this had waited; 0: no hold came before it.
    """

    __slots__ = ("held_until_ns", "last_ns", "seen_ns")

    def __init__(self, last_ns: int) -> None:
        self.last_ns = last_ns
        self.seen_ns = self.held_until_ns = 0


class Tap:
    """A response's byte stream that shows every piece to the call's reader, and says when the body ends.

    Args:
        source: The byte stream in whose place it is put; everything else is its.
        call: The call that was answered; it knows the connection, and so when bytes were read.
        show: Takes every piece with its stamp.
        may_read_ahead: Whether waiting bytes may be taken before the user asks for them.
    """

    def __init__(
        self,
        source: Any,
        call: OpenAICall,
        show: Callable[[int, bytes], None],
        *,
        may_read_ahead: bool,
    ) -> None:
        self._source = source
        self._call = call
        self._show = show
        self._may_read_ahead = may_read_ahead
        self._ahead: deque[bytes] = deque()
        self._broken: Exception | None = None
        self._reads = _Reads(call.network.read_ns)
        _open.add(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # our own, before they are there
            raise AttributeError(name)
        return getattr(self._source, name)

    def abandon(self) -> None:
        """End the call of a user who is gone."""
        self._closed(None)

    def __del__(self) -> None:
        self._closed(None)

    @property
    def _pace(self) -> Pace | None:
        """What counts the pieces and for how long they are held, where they are the items: raw responses."""
        pace = self._call.pace
        return None if pace is None or pace.has_stream else pace

    # --- Reads, and whether their bytes had waited for the consumer ---------------------------------------

    def _fault(self, own: Exception) -> None:
        self._show = _ignore
        fault(own)

    def _was_at_once(self) -> bool:
        """Return whether the read after a hold returned too soon to have waited for its bytes."""
        reads = self._reads
        until_ns, reads.held_until_ns = reads.held_until_ns, 0
        return clock.now_ns() < until_ns

    def _expect_held(self) -> None:
        """Have the next read judged by its time, where looking ahead is no way: at once is too soon.

        A socket that is readable has bytes for it, or half a record.
        """
        is_waiting = getattr(self._call.network, "get_extra_info", _nothing)("is_readable")
        self._reads.held_until_ns = _NEVER_NS if is_waiting else clock.now_ns() + _SLOW_CONSUMER_NS

    def _is_due(self, since_ns: int) -> bool:
        """Return whether bytes wait, and were not yet read since."""
        network = self._call.network
        return bool(
            self._broken is None and network.read_ns < since_ns and network.get_extra_info("is_readable")
        )

    def _take_ahead(self, since_ns: int, piece: bytes) -> None:
        self._reads.last_ns = stamp_ns = self._call.read_ns()
        if stamp_ns >= since_ns:
            self._call.tokens.held.add(stamp_ns)
        self._ahead.append(piece)
        try:
            self._show(stamp_ns, piece)
        except Exception as own:  # noqa: BLE001 - the user's stream goes on
            self._fault(own)

    def _caught_up(self, since_ns: int, hold_ns: int) -> None:
        """Note that nothing waits after this hold, unless something did: there may be more."""
        if self._call.network.read_ns < since_ns:
            self._reads.seen_ns = hold_ns

    def _ended(self) -> None:
        self._end(self._call.end_body, self._call.read_ns())

    def _broke(self, exc: BaseException) -> None:
        self._end(self._call.end_broken, exc)

    def _closed(self, exc: BaseException | None) -> None:
        self._end(self._call.end_closed, exc)

    def _end(self, how: Callable[[Any], None], what: Any) -> None:
        _open.discard(self)
        try:
            how(what)
        except Exception as own:  # noqa: BLE001 - as for the pieces
            fault(own)


class _SyncTap(Tap):
    def __iter__(self) -> Iterator[bytes]:
        pace = self._pace
        return self._pieces() if pace is None else pace.steps(self._pieces())

    def _pieces(self) -> Iterator[bytes]:  # noqa: C901, PLR0912 - hot: a call costs as much as all of it
        # Hot.  May be iterated again in the middle, as the source may: both go on where the other is.
        pieces, network = iter(self._source), self._call.network
        pace, reads = self._call.pace or _UNPACED, self._reads
        try:
            while True:
                if pace.hold_ns - reads.seen_ns > _SLOW_CONSUMER_NS:
                    self._read_ahead(pieces, pace.hold_ns)
                if self._ahead:
                    while self._ahead:
                        yield self._ahead.popleft()
                    continue
                if self._broken is not None:
                    raise self._broken  # noqa: TRY301 - what was met ahead of time, in its place
                for piece in pieces:
                    stamp_ns = network.read_ns
                    if stamp_ns != reads.last_ns:  # a new read: nothing waits after it
                        reads.last_ns = stamp_ns
                        if reads.held_until_ns and self._was_at_once():
                            self._call.tokens.held.add(stamp_ns)
                        else:
                            reads.seen_ns = pace.hold_ns
                    try:
                        self._show(stamp_ns, piece)
                    except Exception as own:  # noqa: BLE001 - the user's stream goes on
                        self._fault(own)
                    yield piece
                    if pace.hold_ns - reads.seen_ns > _SLOW_CONSUMER_NS:
                        break
                else:
                    break
        except GeneratorExit:
            raise
        except BaseException as exc:
            self._broke(exc)
            raise
        self._ended()

    def _read_ahead(self, pieces: Iterator[bytes], hold_ns: int) -> None:
        """Take what came while the consumer held: one read, after the pieces of the one before."""
        if not self._may_read_ahead:
            self._expect_held()
            return
        now_ns = clock.now_ns()
        while self._is_due(now_ns):
            try:
                piece = next(pieces, None)
            except Exception as exc:  # noqa: BLE001 - raised in its place, after the pieces before it
                self._broken = exc
            else:
                if piece is None:
                    break
                self._take_ahead(now_ns, piece)
        self._caught_up(now_ns, hold_ns)

    def close(self) -> None:
        self._closed(sys.exc_info()[1])
        self._source.close()


class _AsyncTap(Tap):
    def __aiter__(self) -> AsyncIterator[bytes]:
        pace = self._pace
        return self._pieces() if pace is None else AsyncSteps(pace, self._pieces())

    async def _pieces(self) -> AsyncIterator[bytes]:  # noqa: C901, PLR0912 - hot, as `_SyncTap`'s
        # Hot, as `_SyncTap`.
        pieces, network = aiter(self._source), self._call.network
        pace, reads = self._call.pace or _UNPACED, self._reads
        try:
            while True:
                if pace.hold_ns - reads.seen_ns > _SLOW_CONSUMER_NS:
                    await self._read_ahead(pieces, pace.hold_ns)
                if self._ahead:
                    while self._ahead:
                        yield self._ahead.popleft()
                    continue
                if self._broken is not None:
                    raise self._broken  # noqa: TRY301 - what was met ahead of time, in its place
                async for piece in pieces:
                    stamp_ns = network.read_ns
                    if stamp_ns != reads.last_ns:  # a new read: nothing waits after it
                        reads.last_ns = stamp_ns
                        if reads.held_until_ns and self._was_at_once():
                            self._call.tokens.held.add(stamp_ns)
                        else:
                            reads.seen_ns = pace.hold_ns
                    try:
                        self._show(stamp_ns, piece)
                    except Exception as own:  # noqa: BLE001 - the user's stream goes on
                        self._fault(own)
                    yield piece
                    if pace.hold_ns - reads.seen_ns > _SLOW_CONSUMER_NS:
                        break
                else:
                    break
        except GeneratorExit:
            raise
        except BaseException as exc:
            self._broke(exc)
            raise
        self._ended()

    async def _read_ahead(self, pieces: AsyncIterator[bytes], hold_ns: int) -> None:
        """Take what came while the consumer held, as `_SyncTap` does."""
        if not self._may_read_ahead:
            self._expect_held()
            return
        now_ns = clock.now_ns()
        while self._is_due(now_ns):
            try:
                piece = await anext(pieces, None)
            except Exception as exc:  # noqa: BLE001 - raised in its place, after the pieces before it
                self._broken = exc
            else:
                if piece is None:
                    break
                self._take_ahead(now_ns, piece)
        self._caught_up(now_ns, hold_ns)

    async def aclose(self) -> None:
        self._closed(sys.exc_info()[1])
        await self._source.aclose()


def _ignore(_stamp_ns: int, _piece: bytes) -> None:
    return None


def _nothing(_info: str) -> None:
    return None


def tap(response: Any, call: OpenAICall, show: Callable[[int, bytes], None] | None) -> bool:
    """Put a tap in the place of a response's byte stream; False for a stream of unknown kind."""
    source = response.stream
    kind = _tap_class(type(source), is_async=call.is_async)  # type: ignore[arg-type]  # a class is hashable
    if kind is None:
        return False
    network = _stamped(response.extensions.get("network_stream"), call.attempt.headers_ns)
    may_read_ahead = (
        network is not None
        and response.extensions.get("http_version") == b"HTTP/1.1"
        # A readable socket may hold half a record there, and reading would make the user wait for the rest.
        and network.get_extra_info("ssl_object") is None
    )
    if network is not None:
        call.network = network
    response.stream = kind(source, call, show or _ignore, may_read_ahead=may_read_ahead)
    return True


@functools.cache
def _tap_class(kind: Any, *, is_async: bool) -> type[Tap] | None:
    """Return a tap that is a byte stream to the HTTP library that `kind` comes from: httpx, or httpx2."""
    name, own = ("AsyncByteStream", _AsyncTap) if is_async else ("SyncByteStream", _SyncTap)
    for base in kind.__mro__:
        if base.__name__ == name:
            return type(own.__name__, (own, base), {})
    return None


def _stamped(network: Any, read_ns: int) -> Any:
    """Make a connection keep when its last read returned, if it does not, and return it; None if it cannot.

    Args:
        network: What the response's `network_stream` extension holds: the connection below the HTTP parser.
        read_ns: When the read returned that completed the response's headers.
    """
    if network is None or hasattr(network, "read_ns"):
        return network
    read, now = network.read, clock.now_ns
    if inspect.iscoroutinefunction(read):

        async def stamped_async(max_bytes: int, timeout: float | None = None) -> Any:  # noqa: ASYNC109 - httpcore's
            data = await read(max_bytes, timeout)
            network.read_ns = now()
            return data

        stamped: Any = stamped_async
    else:

        def stamped(max_bytes: int, timeout: float | None = None) -> Any:
            data = read(max_bytes, timeout)
            network.read_ns = now()
            return data

    try:
        network.read, network.read_ns = stamped, read_ns or clock.now_ns()
    except AttributeError:
        return None
    return network
