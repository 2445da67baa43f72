"""What a program, or another library, added to Hotspan's own spans: figures under other names, exceptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.analysis.dialects.first_token import FIRST_KEYS
from hotspan.analysis.dialects.usage import USAGE_KEYS
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from hotspan.tracer.record import SpanRecord

# Where one of our own stamps is, no other writer's is asked.
MEASURED: Final = frozenset({semconv.TTFB_NS, semconv.TTFT_NS, semconv.FIRST_CHUNK_NS})
WITH_FIGURES: Final = frozenset({semconv.GENERATION, semconv.EMBEDDING})
# Keys that Hotspan never writes: a span that has one says more than we did.
ADDED: Final = frozenset({*FIRST_KEYS, *USAGE_KEYS}) - {semconv.TIME_TO_FIRST_CHUNK}


def has_more(span: SpanRecord) -> bool:
    """Return whether one of our own spans says something that needs a word of ours."""
    attributes = span.attributes
    if span.events and span.status == "error" and semconv.OUTCOME not in attributes:
        return True
    stage = attributes.get(semconv.STAGE)
    if not isinstance(stage, str) or stage not in WITH_FIGURES:  # whatever else a file says of it
        return False
    if not ADDED.isdisjoint(attributes):
        return True
    # Ours comes with the first byte, or token.
    has_events = bool(span.events) or semconv.TIME_TO_FIRST_CHUNK in attributes
    return has_events and MEASURED.isdisjoint(attributes)
