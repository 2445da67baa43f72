"""How a stage was left: what each kind of exception means, and what of it may be written down.

The message of an exception is content (it may quote a prompt) and is kept only when content is captured.
"""

from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING, Final

from opentelemetry import trace as otel

from hotspan.tracer import semconv
from hotspan.tracer.faults import is_the_programs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hotspan.tracer.record import Status

MAX_STACK_FRAMES: Final = 32
_STATUS_OF_CODE: Final[Mapping[otel.StatusCode, Status]] = {
    otel.StatusCode.UNSET: "unset",
    otel.StatusCode.OK: "ok",
    otel.StatusCode.ERROR: "error",
}


def status_of(status: otel.Status | otel.StatusCode, description: str | None) -> tuple[Status, str | None]:
    """Return OpenTelemetry's status in our words, with its description; "unset" for what is no status."""
    if isinstance(status, otel.Status):
        return _STATUS_OF_CODE[status.status_code], status.description
    return _STATUS_OF_CODE.get(status, "unset"), description


def outcome_of(exc: BaseException) -> str | None:
    """Return the outcome that `exc` stands for; None for an error, "" for an exit that is no fault.

    `GeneratorExit` is an abandoned stream, a cancelled task is cancelled, `SystemExit(0)` is no fault,
    `KeyboardInterrupt` and other exits are interrupted; only an `Exception` is an error.  A group is what all
    that is in it is.
    """
    if isinstance(exc, GeneratorExit):
        return semconv.ABANDONED
    if _is_cancellation(exc):
        return semconv.CANCELLED
    if isinstance(exc, Exception):
        return None
    if isinstance(exc, BaseExceptionGroup):
        outcomes = {outcome_of(one) for one in exc.exceptions}
        return outcomes.pop() if len(outcomes) == 1 else semconv.INTERRUPTED
    if isinstance(exc, SystemExit) and exc.code in (None, 0):
        return ""
    return semconv.INTERRUPTED


def _is_cancellation(exc: BaseException) -> bool:
    # Looked up, not imported: a program without asyncio should not pay for it.  trio and anyio raise their
    # own BaseException, known by its name.
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and isinstance(exc, asyncio.CancelledError):
        return True
    return not isinstance(exc, Exception) and type(exc).__name__ == "Cancelled"


def qualified_name(exc: BaseException) -> str:
    """Return the exception type with its module, builtins bare."""
    kind = type(exc)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def message_of(exc: BaseException) -> str:
    """Return the exception's text, whatever its `__str__` does."""
    try:
        return str(exc)
    except Exception as own:
        if is_the_programs(own):
            raise
        return "<unprintable>"


def stack_of(exc: BaseException, *, source: bool) -> str:
    """Return the innermost frames of the traceback, without the message.

    Args:
        exc: The exception.
        source: Whether the lines of source are read and quoted too.  They may hold a prompt as a literal, and
            cost a file access each.
    """
    if source:
        return "".join(traceback.format_tb(exc.__traceback__, limit=-MAX_STACK_FRAMES))
    frames = list(traceback.walk_tb(exc.__traceback__))[-MAX_STACK_FRAMES:]
    return "".join(
        f'  File "{frame.f_code.co_filename}", line {line_no}, in {frame.f_code.co_name}\n'
        for frame, line_no in frames
    )


def describe(exc: BaseException, *, content: bool) -> dict[str, str]:
    """Return the attributes of an exception event; with the message and the lines of source if `content`."""
    described = {
        semconv.EXCEPTION_TYPE: qualified_name(exc),
        semconv.EXCEPTION_STACKTRACE: stack_of(exc, source=content),
    }
    if content:
        described[semconv.EXCEPTION_MESSAGE] = message_of(exc)
    return described
