"""Calls that were given up: other writers have no word for it, and write the exception down as an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotspan.tracer.record import SpanRecord

_OUTCOME_OF: Final = {  # the exception's name, without its module
    "CancelledError": semconv.CANCELLED,  # asyncio, concurrent.futures
    "Cancelled": semconv.CANCELLED,  # trio, and anyio on it
    "GeneratorExit": semconv.ABANDONED,
    "KeyboardInterrupt": semconv.INTERRUPTED,
}
_OTHER: Final = "_OTHER"  # OpenTelemetry's error.type for what has no name


def outcome_in(span: SpanRecord) -> str | None:
    """Return how a span ended whose exception is no error; `None` where that is not said.

    What `error.type` names decides, then the last exception event of a span with the status of an error: an
    event alone may tell of an exception that was handled.
    """
    if semconv.OUTCOME in span.attributes:
        return None
    name = next(_named(span), "")
    return _OUTCOME_OF.get(name.rsplit(".", 1)[-1])


def _named(span: SpanRecord) -> Iterator[str]:
    error = span.attributes.get(semconv.ERROR_TYPE)
    if isinstance(error, str) and error and error != _OTHER:
        yield error
    if span.status != "error":
        return
    for event in reversed(span.events):
        name = event.attributes.get(semconv.EXCEPTION_TYPE)
        if event.name == semconv.EXCEPTION_EVENT and isinstance(name, str):
            yield name
