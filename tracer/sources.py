"""The generator behind a stand-in: whether it is closed with the stand-in, or left to whoever else holds it.

    stand-in is closed, or thrown into      handed on: the source is closed, as it would be without us
    dropped, nobody else has the source     closed by us, in its context, before its span ends
    dropped, somebody else has it too       left as it is: whoever drops it last closes it
    stepped before it was handed out        no stand-in: it is handed out itself

A function may hand out a generator that is not its own: its argument, or one that its object keeps.
"""

from __future__ import annotations

import opcode
import sys
import weakref
from operator import attrgetter
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any, Final

from hotspan.tracer import semconv
from hotspan.tracer.outcome import outcome_of

if TYPE_CHECKING:
    from collections.abc import Callable

# References to a source that nobody else has: the frame's name for it, its bound `send`, and the question's.
_OWN_REFERENCES: Final = 3
_MADE: Final = opcode.opmap["RETURN_GENERATOR"]
_SUSPENDED: Final = "ag_suspended" if hasattr(AsyncGeneratorType, "ag_suspended") else "ag_frame"
_STATES: Final = {
    GeneratorType: attrgetter("gi_frame", "gi_running", "gi_suspended"),
    CoroutineType: attrgetter("cr_frame", "cr_running", "cr_suspended"),
    AsyncGeneratorType: attrgetter("ag_frame", "ag_running", _SUSPENDED),
}
_DROPPED: Final = "hotspan_dropped"  # on the exception by which a stand-in closes another one, itself dropped


def is_begun(source: Any) -> bool:
    """Return whether a generator, asynchronous generator or coroutine has been stepped already, or is over.

    A stand-in would begin anew: what was sent to it or thrown into it would not meet where the source stands.
    """
    frame, is_running, is_suspended = _STATES[type(source)](source)
    if is_suspended is frame:  # Python 3.11 does not tell: it stands where it was made, or further on
        is_suspended = frame is not None and frame.f_code.co_code[frame.f_lasti] != _MADE
    return frame is None or bool(is_running or is_suspended)


class Standing:
    """What the frame of a stand-in knows of the stand-in.

    `send` is, in every method, the bound `send` or `asend` of the source; beside it the frame has no other
    reference to the source than its argument.
    """

    __slots__ = ("_stand_in",)

    _stand_in: Callable[[], object]

    def stand_for(self, stand_in: object) -> None:
        """Take the stand-in, before its first step."""
        self._stand_in = weakref.ref(stand_in)

    def first_pull(self, send: Any) -> Any:
        """Ask an asynchronous source for its first item, unknown to the event loop as in `first_pull`.

        The loop comes to know one that is left to somebody else, and at once: what it closes at its end may
        be all that there is time for.
        """
        if _is_shared(send):
            self._stand_in = weakref.ref(self._stand_in(), _teller(weakref.ref(send.__self__)))
        return first_pull(send)

    def leaves(self, send: Any, thrown: BaseException) -> bool:
        """Return whether the source is left as it is, since it is not to be closed with the stand-in.

        Args:
            send: See above.
            thrown: What came where an item was yielded; for the source to have, where it is not left.
        """
        if closing_by(thrown) is None:
            return False
        if getattr(send.__self__, "ag_frame", send) is None:
            return True  # over; to `athrow` it would answer with None, as if that were an item
        # The interpreter clears the weak references before it closes what was dropped.
        if self._stand_in() is not None and not hasattr(thrown, _DROPPED):
            return False
        setattr(thrown, _DROPPED, True)  # a source that is a stand-in itself is dropped with this one
        return _is_shared(send)


def _is_shared(send: Any) -> bool:
    return sys.getrefcount(send.__self__) > _OWN_REFERENCES


def _teller(source: Callable[[], Any]) -> Callable[[object], None]:
    """Return what tells the running event loop of a source, if that is still there."""

    def tell(_: object) -> None:
        left, hook = source(), sys.get_asyncgen_hooks().firstiter
        if left is not None and hook is not None:
            hook(left)

    return tell


def first_pull(send: Callable[[None], Any]) -> Any:
    """Ask for the first item, by a bound `asend`, such that the event loop does not come to know the source.

    An event loop closes the asynchronous generators that it knows when it ends.  It knows the stand-in; if it
    knew both, it would close both at once, and the inner one would complain that it is already running.
    """
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(firstiter=None)
    try:
        return send(None)
    finally:
        sys.set_asyncgen_hooks(*hooks)


def closing_by(thrown: BaseException) -> str | None:
    """Return "abandoned" for what is thrown in where an item was yielded because nobody wants the next one.

    That is `close`; and the cancellation of the task in which an event loop that ends closes the stream.
    """
    return semconv.ABANDONED if outcome_of(thrown) in (semconv.ABANDONED, semconv.CANCELLED) else None
