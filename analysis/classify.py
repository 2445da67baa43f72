"""What a span is: its stage, an engine's own account, and how it ended.

The first rule that matches decides; docs/definitions.md#trace-request-stage has them in words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, get_args

from hotspan.analysis.dialects import read
from hotspan.tracer import semconv
from hotspan.tracer.engines import engine_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hotspan.tracer.record import SpanRecord

Outcome = Literal["ok", "error", "truncated", "cancelled", "abandoned", "interrupted"]
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)

_OUTCOMES: Final[Mapping[str, Outcome]] = {outcome: outcome for outcome in OUTCOMES}


def stage_of(span: SpanRecord) -> str | None:
    """Return the stage that the span itself says it is, or `None` where it says none.

    Its place in the tree may say otherwise: `hotspan.analysis.stages`.
    """
    return read(span).stage


def is_engine_span(span: SpanRecord) -> bool:
    """Return whether an inference server wrote the span, as its account of one model call."""
    return engine_of(span) is not None


def is_entry_span(span: SpanRecord) -> bool:
    """Return whether requests enter the writer's program with the span, below another library's."""
    return span.attributes.get(semconv.ENTRY) is True


def outcome_of(span: SpanRecord) -> Outcome:
    """Return how the span ended, by its outcome, else by its status; only `ok` enters a percentile."""
    said = span.attributes.get(semconv.OUTCOME)
    if isinstance(said, str) and said in _OUTCOMES:
        return _OUTCOMES[said]
    return "error" if span.status == "error" else "ok"
