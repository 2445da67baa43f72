"""How a stage was left: what each kind of exception means, and what of it may be written down.

The message of an exception is content (it may quote a prompt) and is kept only when content is captured.
"""

from __future__ import annotations

import asyncio
import traceback
from typing import Final

from hotspan.tracer import semconv

MAX_STACK_FRAMES: Final = 32


def outcome_of(exc: BaseException) -> str | None:
    """Return the outcome that `exc` stands for; None for an error, "" for an exit that is no fault.

    `GeneratorExit` is an abandoned stream, a cancelled task is cancelled, `SystemExit(0)` is no fault,
    `KeyboardInterrupt` and other exits are interrupted; only an `Exception` is an error.
    """
    if isinstance(exc, GeneratorExit):
        return semconv.ABANDONED
    if isinstance(exc, asyncio.CancelledError) or _is_foreign_cancellation(exc):
        return semconv.CANCELLED
    if isinstance(exc, Exception):
        return None
    if isinstance(exc, SystemExit) and exc.code in (None, 0):
        return ""
    return semconv.INTERRUPTED


def _is_foreign_cancellation(exc: BaseException) -> bool:
    # trio and anyio raise their own BaseException; importing them to ask would cost every user.
    return not isinstance(exc, Exception) and type(exc).__name__ == "Cancelled"


def qualified_name(exc: BaseException) -> str:
    """Return the exception type with its module, builtins bare."""
    kind = type(exc)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def message_of(exc: BaseException) -> str:
    """Return the exception's text, whatever its `__str__` does."""
    try:
        return str(exc)
    except Exception:  # noqa: BLE001 - a user's broken __str__ must not replace the user's exception
        return "<unprintable>"


def stack_of(exc: BaseException) -> str:
    """Return the innermost frames of the traceback, without the message."""
    # Frames only: the last line of a formatted traceback is the message, which is content.
    return "".join(traceback.format_tb(exc.__traceback__, limit=-MAX_STACK_FRAMES))
