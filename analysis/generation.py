"""One model call, and what its spans say of it: outcome, attempts, tokens, time per token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hotspan.analysis.classify import Outcome, outcome_of
from hotspan.analysis.phases import is_disordered
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from hotspan.analysis.engine import EngineAccount
    from hotspan.tracer.record import SpanRecord

_NS_PER_S = 1_000_000_000
_STATUSES = ("ok", "error", "truncated", "cancelled", "abandoned")
_MIN_TOKENS = 2  # for a time per token after the first


@dataclass(slots=True)
class ModelCall:
    """One generation call, with what is needed to account for it when all traces are read."""

    span: SpanRecord  # outermost
    attempts: list[SpanRecord]  # innermost spans in order of start; at least one
    critical_ns: int = 0  # of the request's critical path, in this call
    engine: EngineAccount | None = None

    @property
    def last(self) -> SpanRecord:
        """The attempt that answered, or failed last."""
        return self.attempts[-1]

    @property
    def outcome(self) -> Outcome:
        """How the call ended, for its caller; a wrapper that hides its attempt's failure does not mend it."""
        outcome = outcome_of(self.span)
        return outcome if outcome != "ok" else outcome_of(self.last)

    @property
    def n_attempts(self) -> int:
        """Innermost spans, or the HTTP attempts that they recorded."""
        return sum(max(1, number(span, semconv.ATTEMPTS) or 1) for span in self.attempts)

    @property
    def prompt_tokens(self) -> int | None:
        """Prompt tokens sent, over all attempts that know; `None` where none does."""
        return self.total(semconv.INPUT_TOKENS)

    def total(self, key: str) -> int | None:
        """Return a token count over all attempts; where these say none, what the outermost span says."""
        inner = [n for span in self.attempts if (n := number(span, key)) is not None]
        return sum(inner) if inner else number(self.span, key)


def tpot_ns(call: ModelCall) -> float | None:
    """Return the time per output token after the first, above 0.

    `None` for fewer than two tokens, for unknown stamps, and where all tokens have one stamp: they came in
    one piece, and nothing tells how long one took.
    """
    tpot = _stated_tpot_ns(call)
    return tpot if tpot is not None and tpot > 0 else None


def _stated_tpot_ns(call: ModelCall) -> float | None:
    span = call.last
    if is_disordered(span.attributes):
        return None
    measured = span.attributes.get(semconv.TPOT_NS)
    if isinstance(measured, int | float) and not isinstance(measured, bool):
        return measured
    first, last = number(span, semconv.TTFT_NS), number(span, semconv.LAST_TOKEN_NS)
    n_tokens = number(span, semconv.OUTPUT_TOKENS) or 0
    if first is None or last is None or n_tokens < _MIN_TOKENS:
        return None
    return (last - first) / (n_tokens - 1)


def chunk_gaps(call: ModelCall) -> list[float]:
    """Return the times between the chunks that bear tokens, in ns; empty where they are not known."""
    gaps = call.last.attributes.get(semconv.CHUNK_GAPS_NS)
    if not isinstance(gaps, Sequence) or isinstance(gaps, str | bytes):
        return []
    return [gap for gap in gaps if isinstance(gap, int | float)]


def number(span: SpanRecord, key: str) -> int | None:
    """Return an attribute that is an integer, and not negative."""
    value = span.attributes.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
