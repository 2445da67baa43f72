"""One generation by a model in this process: its span, its token clock, and the engine's own account.

What the engine computes happens here, so nothing travels: `send` is the start of the span, there is no
connection, and the engine's durations are those of its own clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotspan.tracer import clock, semconv
from hotspan.tracer import span as spans
from hotspan.tracer.generation import TokenClock

if TYPE_CHECKING:
    from collections.abc import Mapping


def start_generation(engine: str, operation: str, model: str, request: Mapping[str, Any]) -> spans.Span:
    """Start the span of one prompt's generation below the current one; a no-op one while nothing is traced.

    Args:
        engine: What computes it, by the name that `semconv.ENGINE` has for it.
        operation: "chat" or "text_completion".
        model: The model's name.
        request: Further attributes; those that are None are left out.
    """
    attributes = {
        semconv.OPERATION: operation,
        semconv.PROVIDER: engine,
        semconv.ENGINE: engine,
        semconv.REQUEST_MODEL: model,
        **{key: value for key, value in request.items() if value is not None},
    }
    return spans.start_span(f"{operation} {model}", semconv.GENERATION, attributes, kind="client")


class LocalCall:
    """One prompt's generation, from the start of its span to its end.

    Args:
        span: The call's span.

    Attributes:
        span: The same.
        tokens: Its token clock, which counts from the span's start.
        stamps: Of each answer, when its tokens came, on the process's clock; the clock takes them at the end.
        details: Attributes that only the end knows; set before `end`.
    """

    __slots__ = ("details", "span", "stamps", "tokens")

    def __init__(self, span: spans.Span) -> None:
        self.span = span
        self.tokens = TokenClock(span.start_ns)
        self.stamps: list[list[int]] = []
        self.details: dict[str, Any] = {}

    def end(self, *, outcome: str | None = None, end_ns: int | None = None) -> None:
        """End the span of a call that nothing has raised out of.

        Args:
            outcome: How it ended, if not well.
            end_ns: When, on the process's clock; now, if it is not given.
        """
        span = self.span
        if outcome is not None:
            span.outcome(outcome)
        elif self.tokens.status == "error":
            span.set(semconv.ERROR_TYPE, "finish_reason")
            span.status = "error"
        self._end(end_ns)

    def end_by(self, exc: BaseException) -> None:
        """End the span of a call that an exception ended: an error, a cancelled task, Ctrl-C."""
        self.span.fail(exc)
        self._end(None)

    def _end(self, end_ns: int | None) -> None:
        self.span.set_later(self._attributes)
        self.span.end(None if end_ns is None else clock.to_wall_ns(end_ns))

    def _attributes(self) -> dict[str, Any]:
        # On the recorder's thread: the stamps of many answers are many.
        for index, stamps in enumerate(self.stamps):
            token = {"choices": [{"index": index, "delta": {"content": "token"}}]}
            for stamp_ns in stamps:
                self.tokens.feed(stamp_ns, token)
        return {**self.tokens.attributes(), **self.details}


def model_name(given: object, model: object) -> str:
    """Return the name under which a model is known: of a folder its last part, else its class's name."""
    if isinstance(given, str) and given:
        return given.rstrip("/").rpartition("/")[2] if given.startswith(("/", ".", "~")) else given
    return type(model).__name__
