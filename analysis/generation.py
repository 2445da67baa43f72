"""One model call, and what its spans say of it: outcome, attempts, tokens, time per token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hotspan.analysis.classify import Outcome, outcome_of
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from hotspan.analysis.engine import EngineAccount
    from hotspan.tracer.record import SpanRecord

TOKENS: Final = (
    semconv.INPUT_TOKENS,
    semconv.CACHED_TOKENS,
    semconv.OUTPUT_TOKENS,
    semconv.REASONING_TOKENS,
)
MIN_TOKENS: Final = 2  # for a time per token after the first


@dataclass(slots=True)
class ModelCall:
    """One generation call, with what is needed to account for it when all traces are read."""

    span: SpanRecord  # outermost
    attempts: list[SpanRecord]  # innermost spans in order of start; at least one
    critical_ns: int = 0  # of the request's critical path, in this call
    engine: EngineAccount | None = None
    _tokens: dict[str, int | None] | None = None

    @property
    def last(self) -> SpanRecord:
        """The attempt that answered, or failed last."""
        return self.attempts[-1]

    @property
    def is_one_span(self) -> bool:
        """Whether the call is one span, with nothing inside."""
        return self.attempts[0] is self.span

    @property
    def outcome(self) -> Outcome:
        """How the call ended, for its caller; a wrapper that hides its attempt's failure does not mend it."""
        outcome = outcome_of(self.span)
        return outcome if outcome != "ok" or self.is_one_span else outcome_of(self.last)

    @property
    def n_attempts(self) -> int:
        """Innermost spans, or the HTTP attempts that they recorded."""
        if self.is_one_span:
            return number(self.span, semconv.ATTEMPTS) or 1
        return sum(max(1, number(span, semconv.ATTEMPTS) or 1) for span in self.attempts)

    @property
    def prompt_tokens(self) -> int | None:
        """Prompt tokens sent, over all attempts that know; `None` where none does."""
        return self.total(semconv.INPUT_TOKENS)

    def total(self, key: str) -> int | None:
        """Return one of `TOKENS` over all attempts; where these say none, what the outermost span says."""
        return self.tokens()[key]

    def tokens(self) -> dict[str, int | None]:
        """Return all of `TOKENS`."""
        if self._tokens is None:
            count = self._of_one_span if self.is_one_span else self._of_attempts
            self._tokens = {key: count(key) for key in TOKENS}
        return self._tokens

    def _of_one_span(self, key: str) -> int | None:
        return number(self.span, key)

    def _of_attempts(self, key: str) -> int | None:
        inner = [n for span in self.attempts if (n := number(span, key)) is not None]
        return sum(inner) if inner else number(self.span, key)


def tpot_ns(said: object, is_held: object, first: int, last: int, n_tokens: int) -> float | None:
    """Return the time per output token after the first, above 0.

    `None` for fewer than two tokens, for unknown stamps, and where all tokens have one stamp: they came in
    one piece, and nothing tells how long one took.  Nor do the stamps of a stream that was held tell it.

    Args:
        said: What the attempt that answered says of it.
        is_held: Whether that attempt's stream was held.
        first: Its stamp of the first token, ns; negative for none, as the two below.
        last: That of the last one.
        n_tokens: Output tokens.
    """
    if 0 <= last < first:
        return None
    tpot = said
    if isinstance(tpot, bool) or not isinstance(tpot, int | float):
        if is_held:
            return None
        tpot = (last - first) / (n_tokens - 1) if min(first, last) >= 0 and n_tokens >= MIN_TOKENS else 0
    return tpot if tpot > 0 else None


def chunk_gaps(gaps: object) -> list[float]:
    """Return the times between the chunks that bear tokens, in ns, of what a span says; empty for no list."""
    if not isinstance(gaps, Sequence) or isinstance(gaps, str | bytes):
        return []
    return [gap for gap in gaps if isinstance(gap, int | float)]


def number(span: SpanRecord, key: str) -> int | None:
    """Return an attribute that is an integer, and not negative."""
    value = span.attributes.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
