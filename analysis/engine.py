"""What an inference server says of one model call, and which call that was.

Its durations are durations only: the server's clock is not the client's, and none of its stamps is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotspan.tracer.record import Attributes, AttributeValue, SpanRecord

_NS_PER_S = 1_000_000_000
BY_TRACE = "engine span, by trace context"
BY_REQUEST_ID = "engine span, by request id"


@dataclass(frozen=True, slots=True)
class EngineAccount:
    """Where the server says the time of one model call went; `None` where it does not say."""

    queue_ns: int | None
    prefill_ns: int | None
    decode_ns: int | None
    request_id: str | None
    source: str

    @property
    def is_empty(self) -> bool:
        """Whether it says no duration at all."""
        return self.queue_ns is None and self.prefill_ns is None and self.decode_ns is None


def account_of(span: SpanRecord, source: str) -> EngineAccount:
    """Return the account in a server's span."""
    attributes = span.attributes
    request_id = attributes.get(semconv.ENGINE_REQUEST_ID)
    return EngineAccount(
        queue_ns=_seconds(attributes, semconv.ENGINE_QUEUE_S),
        prefill_ns=_seconds(attributes, semconv.ENGINE_PREFILL_S),
        decode_ns=_seconds(attributes, semconv.ENGINE_DECODE_S),
        request_id=request_id if isinstance(request_id, str) else None,
        source=source,
    )


def _seconds(attributes: Attributes, key: str) -> int | None:
    value = attributes.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    # Not a number, infinite or negative: the server's clock stepped, or it had nothing to say.
    return round(value * _NS_PER_S) if 0 <= value < float("inf") else None


def response_ids(spans: list[SpanRecord]) -> Iterator[str]:
    """Yield the ids that the server gave its answers to one call."""
    for span in spans:
        value: AttributeValue = span.attributes.get(semconv.RESPONSE_ID)
        if isinstance(value, str) and value:
            yield value
