"""The pace of a streamed response of the openai client: its items, and how long the user holds each."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Self

from hotspan.tracer import clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hotspan.tracer.clients.openai_call import OpenAICall


class Pace:
    """Counts the items that a stream yields, and the time for which its consumer holds them.

    Args:
        call: The call that the stream belongs to.
        feed: Takes every item with its stamp, where the bytes cannot be read.
        hide_usage: Whether an item that only carries usage is kept from the user.

    Attributes:
        n_items: Items that the user got.
        hold_ns: For how long the user held those that he gave up, and the stream before he first asked.
        has_stream: Whether it took the place of a stream's iterator; else it is for the pieces of a body.
    """

    __slots__ = (
        "_call", "_feed", "_first_ns", "_given_ns", "_hide_usage", "_is_running", "has_stream", "hold_ns",
        "n_items",
    )  # fmt: skip

    def __init__(
        self, call: OpenAICall, *, feed: Callable[[int, object], None] | None, hide_usage: bool
    ) -> None:
        self.n_items = 0
        self.has_stream = False
        self._call = call
        self._feed = feed
        self._hide_usage = hide_usage
        self._is_running = False
        self._given_ns = clock.now_ns()  # when the user got what he holds, the stream at first; 0: nothing
        self._first_ns = 0  # for which he held the stream before he first asked
        self.hold_ns = 0

    def take_place(self, stream: Any) -> bool:
        """Pace a `Stream` or `AsyncStream`; False for what is neither (a raw response)."""
        # The iterator has had this name since version 1.0; without it there is no pace, and all else stays.
        source: Any = getattr(stream, "__dict__", {}).get("_iterator")
        if hasattr(source, "__anext__"):
            stream._iterator = AsyncSteps(self, source)  # noqa: SLF001 - see above
        elif hasattr(source, "__next__"):
            stream._iterator = self.steps(source)  # noqa: SLF001 - see above
        else:
            return False
        self.has_stream = True
        return True

    @property
    def is_pulling(self) -> bool:
        """Whether the user waits for an item at this moment."""
        return self._is_running and not self._given_ns

    def total_hold_ns(self) -> int:
        """Return for how long items were held so far, the one that is held now included.

        Without what passed before the first was asked for, if its token was not there by then: the model's.
        """
        hold_ns = self.hold_ns + (clock.now_ns() - self._given_ns if self._given_ns else 0)
        return hold_ns if self._call.tokens.is_first_held else hold_ns - self._first_ns

    def steps(self, source: Iterator[Any]) -> Iterator[Any]:
        """Yield what the source yields, and end the call when it ends."""
        # Hot: every item of a stream comes here.
        self.pull()
        now, watches, n_items, hold_ns = clock.now_ns, self.watches, self.n_items, self.hold_ns
        try:
            for item in source:
                if watches and self.keeps_back(item):
                    continue
                self.n_items = n_items = n_items + 1
                self._given_ns = given_ns = now()
                yield item
                self.hold_ns = hold_ns = hold_ns + now() - given_ns
                self._given_ns = 0
        except GeneratorExit:
            raise
        except BaseException as exc:
            self._call.end_by(exc)
            raise
        finally:
            self._is_running = False
        self._call.end_whole()

    @property
    def watches(self) -> bool:
        """Whether items are to be shown to `keeps_back`."""
        return self._hide_usage or self._feed is not None

    def keeps_back(self, item: Any) -> bool:
        """Show an item to the token clock; return whether it is one that the user did not ask for."""
        if self._feed is not None:
            self._feed(self._call.read_ns(), item)
        return self._hide_usage and item.choices == [] and getattr(item, "usage", None) is not None

    def pull(self) -> None:
        """Note that the user wants an item, and gives up the one that he holds."""
        if self._given_ns:
            self.hold_ns += clock.now_ns() - self._given_ns
            self._given_ns = 0
            if not self.n_items and not self._first_ns:
                self._first_ns = self.hold_ns
        self._is_running = True

    # --- Steps of an asynchronous stream, which are taken from outside ------------------------------------

    def give(self) -> None:
        """Note that the user gets an item."""
        self.n_items += 1
        self._given_ns = clock.now_ns()

    def end(self, exc: BaseException | None) -> None:
        """End the call with what the user gets instead of an item; None: the end of the stream."""
        self._is_running = False
        if exc is None:
            self._call.end_whole()
        else:
            self._call.end_by(exc)

    def drop(self) -> None:
        """End the call of a user who is gone."""
        self._is_running = False
        self._call.end_closed(None)


class AsyncSteps:
    """The asynchronous iterator of a paced stream.

    An object and no generator: an event loop that ends closes the generators that it knows, and would close
    the source's and ours at once.
    """

    __slots__ = ("_pace", "_pull", "_source")

    def __init__(self, pace: Pace, source: Any) -> None:
        self._pace = pace
        self._source = source
        self._pull = source.__anext__

    def __getattr__(self, name: str) -> Any:
        if name in self.__slots__:
            raise AttributeError(name)
        return getattr(self._source, name)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        # Hot, as `Pace.steps`.
        pace = self._pace
        pace.pull()
        try:
            item = await self._pull()
            while pace.watches and pace.keeps_back(item):
                item = await self._pull()
        except StopAsyncIteration:
            pace.end(None)
            raise
        except BaseException as exc:
            pace.end(exc)
            raise
        pace.give()
        return item

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # an object that was not finished, or a fault: nobody to tell
            self._pace.drop()
