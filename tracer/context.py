"""OpenTelemetry's current context, and the overlay that makes a span a context.

`Context` is a dict.  The dict that the overlay inherits stays empty: every reader is answered from `base`,
and whoever copies the context (`set_value`, baggage, another library's span) receives a plain dict with the
same content.
"""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any, Final, Self

from opentelemetry import context as otel_context
from opentelemetry import trace as otel
from opentelemetry.context import Context
from opentelemetry.trace.propagation import set_span_in_context

if TYPE_CHECKING:
    import contextvars
    from collections.abc import Callable, Iterator

# The key under which OpenTelemetry keeps the current span, learnt through the public API.
SPAN_KEY: Final[str] = next(iter(set_span_in_context(otel.INVALID_SPAN, Context())))
# The nearest stage span stays reachable when another library's span is the current one.
STAGE_KEY: Final[str] = otel_context.create_key("hotspan-stage")
_OWN_KEYS: Final = (SPAN_KEY, STAGE_KEY)


class ContextOverlay(Context):
    """A context that holds itself as the current span, above another context.

    Attributes:
        base: The context that was current before.
    """

    __slots__ = ()

    base: Context

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of `key` in this context."""
        if key == SPAN_KEY or key == STAGE_KEY:  # noqa: PLR1714, SIM109 - two comparisons cost less than a tuple
            return self
        return self.plain().get(key, default)

    def plain(self) -> Context:
        """Return the nearest context below that is no overlay; every key but the two own ones is there."""
        base = self.base
        while isinstance(base, ContextOverlay):  # a loop: stages nest as deep as the program recurses
            base = base.base
        return base

    def __getitem__(self, key: str) -> Any:
        return self if key in _OWN_KEYS else self.plain()[key]

    def __contains__(self, key: object) -> bool:
        return key in _OWN_KEYS or key in self.plain()

    def copy(self) -> dict[str, object]:
        """Return this context's content as a plain dict, as `Context.copy` does."""
        return {**self.plain(), SPAN_KEY: self, STAGE_KEY: self}

    # A dict compares by its content, forbids hashing and can be copied; a span is one thing.
    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:  # type: ignore[override]  # dict sets it to None
        return id(self) >> 4

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self

    def __iter__(self) -> Iterator[str]:
        return iter(self.copy())

    def keys(self) -> Any:
        """Return the keys of this context."""
        return self.copy().keys()

    def values(self) -> Any:
        """Return the values of this context."""
        return self.copy().values()

    def items(self) -> Any:
        """Return the items of this context."""
        return self.copy().items()

    def __len__(self) -> int:
        return len(self.copy())

    def __bool__(self) -> bool:
        return True

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __ror__(self, other: Any) -> Any:
        return other | self.copy()

    def __reversed__(self) -> Iterator[str]:
        return reversed(self.copy())


def _current_context_variable() -> contextvars.ContextVar[Context] | None:
    """Return the variable behind OpenTelemetry's current context, if its runtime is the usual one."""
    probe = Context()
    token: Any = otel_context.attach(probe)
    variable: Any = getattr(token, "var", None)
    usable = hasattr(variable, "get") and hasattr(variable, "reset") and variable.get() is probe
    otel_context.detach(token)
    return variable if usable else None


_variable = _current_context_variable()
if _variable is not None:
    get_context: Callable[[], Context] = _variable.get
    attach: Callable[[Context], Any] = _variable.set
    reset: Callable[[Any], None] = _variable.reset
else:  # another runtime context is configured: the public functions do the same, slower
    get_context, attach, reset = otel_context.get_current, otel_context.attach, otel_context.detach


# What `reset` raises where the step was resumed in another context.
NOT_HERE: Final = (ValueError, RuntimeError)


def detach(token: Any) -> None:
    """Undo `attach`; silent where the step was resumed in another context, whose own state then stands."""
    try:
        reset(token)
    except NOT_HERE:
        return


# What the garbage collector told last is the last key.  Before Python 3.12 it may run in the middle of
# `ContextVar.set`; what it finalizes there must not set a variable too: the interpreter would go on with
# memory that it has just freed.  Both callbacks are C functions: a Python one would receive a Ctrl-C that
# comes during a collection, and the interpreter would print and forget it.
_gc_phases: dict[str, object] = {"start": None, "stop": None}
if sys.version_info < (3, 12):
    gc.callbacks += [_gc_phases.pop, _gc_phases.__setitem__]


def is_collecting() -> bool:
    """Return whether the garbage collector is at work, in whatever thread; False where it does not matter."""
    return list(_gc_phases)[-1] == "start"  # in one step: another thread may collect between two
