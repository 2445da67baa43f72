"""The model calls of all traces: latencies, tokens, phases.  Only calls that succeeded enter a percentile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hotspan.analysis.classify import Outcome, outcome_of
from hotspan.analysis.model import PHASES, GenerationSummary, PhaseRow, TokenCounts
from hotspan.analysis.percentiles import Distribution, distribution
from hotspan.analysis.phases import Phases, is_disordered, phases_of
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
        return sum(max(1, _number(span, semconv.ATTEMPTS) or 1) for span in self.attempts)

    @property
    def prompt_tokens(self) -> int | None:
        """Prompt tokens sent, over all attempts that know; `None` where none does."""
        return self.total(semconv.INPUT_TOKENS)

    def total(self, key: str) -> int | None:
        """Return a token count over all attempts; where these say none, what the outermost span says."""
        inner = [n for span in self.attempts if (n := _number(span, key)) is not None]
        return sum(inner) if inner else _number(self.span, key)


def account_for(calls: Iterable[ModelCall]) -> list[tuple[ModelCall, Phases]]:
    """Return the calls that succeeded, each with its phases."""
    return [
        (call, phases_of(call.span, call.attempts, call.engine)) for call in calls if call.outcome == "ok"
    ]


def summarise(
    calls: Sequence[ModelCall], accounts: Sequence[tuple[ModelCall, Phases]], rows: Sequence[PhaseRow]
) -> GenerationSummary:
    """Return what the calls say together.

    Args:
        calls: All of them, however they ended.
        accounts: Those that succeeded, from `account_for`.
        rows: The phases of these, from `phase_rows`.
    """
    succeeded = [call for call, _ in accounts]
    status = Counter(dict.fromkeys(_STATUSES, 0))
    for call in calls:
        outcome = call.outcome
        status["cancelled" if outcome == "interrupted" else outcome] += 1
    tpots = [tpot for call in succeeded if (tpot := tpot_ns(call)) is not None]
    buffered = [call for call in succeeded if call.last.attributes.get(semconv.BUFFERED) is True]
    decoded = [call for call in buffered if call.engine is not None and call.engine.decode_ns]
    return GenerationSummary(
        n_calls=len(calls),
        n_attempts=sum(call.n_attempts for call in calls),
        status=dict(status),
        n_buffered=len(buffered),
        n_buffered_decoded=len(decoded),
        buffered_decode_ns=_mean(call.engine.decode_ns for call in decoded if call.engine is not None),
        buffered_engine_wait_ns=_mean(_engine_wait_ns(call.engine) for call in decoded),
        buffered_ttft_ns=_mean(_number(call.last, semconv.TTFT_NS) for call in decoded),
        ttfb_ns=_distribution_of(succeeded, semconv.TTFB_NS),
        first_chunk_ns=_distribution_of(succeeded, semconv.FIRST_CHUNK_NS),
        ttft_ns=_distribution_of(succeeded, semconv.TTFT_NS),
        time_to_first_answer_ns=_distribution_of(succeeded, semconv.TTFA_NS),
        tpot_ns=distribution(tpots),
        chunk_gap_ns=distribution([gap for call in succeeded for gap in _chunk_gaps(call)]),
        output_tokens_per_s=_speeds(tpots),
        tokens=_tokens(succeeded),
        phases_ns=dict.fromkeys(PHASES) | {row.name: row.mean_ns for row in rows},
        phase_sources={row.name: dict(row.sources) for row in rows},
    )


def _speeds(tpots_ns: Sequence[float]) -> Distribution | None:
    """Return tokens per second; their p50 is 1 / TPOT's p50, also where that lies between two calls."""
    speeds, tpot = distribution([_NS_PER_S / tpot for tpot in tpots_ns]), distribution(tpots_ns)
    return None if speeds is None or tpot is None else replace(speeds, p50=_NS_PER_S / tpot.p50)


def _engine_wait_ns(engine: EngineAccount | None) -> int | None:
    """Return the engine's own time to the first token: queue and prefill."""
    if engine is None or engine.prefill_ns is None:
        return None
    return (engine.queue_ns or 0) + engine.prefill_ns


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


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
    first, last = _number(span, semconv.TTFT_NS), _number(span, semconv.LAST_TOKEN_NS)
    n_tokens = _number(span, semconv.OUTPUT_TOKENS) or 0
    if first is None or last is None or n_tokens < _MIN_TOKENS:
        return None
    return (last - first) / (n_tokens - 1)


def phase_rows(accounts: Sequence[tuple[ModelCall, Phases]], request_ns: int) -> tuple[PhaseRow, ...]:
    """Return the phases of the successful calls as rows.

    A call's time on the critical path is divided over its phases in proportion.

    Args:
        accounts: The successful calls and their phases.
        request_ns: Duration of all requests together.
    """
    known = {name for _, phases in accounts for name in phases.ns}
    return tuple(_phase_row(name, accounts, request_ns) for name in PHASES if name in known)


def _phase_row(name: str, accounts: Sequence[tuple[ModelCall, Phases]], request_ns: int) -> PhaseRow:
    having = [phases for _, phases in accounts if name in phases.ns]
    spread = distribution([phases.ns[name] for phases in having])
    critical = sum(_critical_part(call, phases, name) for call, phases in accounts)
    return PhaseRow(
        name,
        mean_ns=sum(phases.ns[name] for phases in having) / len(accounts),
        p50_ns=None if spread is None else spread.p50,
        p95_ns=None if spread is None else spread.p95,
        critical_path_ratio=critical / request_ns if request_ns else 0.0,
        sources=dict(Counter(phases.sources[name] for phases in having if name in phases.sources)),
        n_calls=len(having),
    )


def _critical_part(call: ModelCall, phases: Phases, name: str) -> float:
    duration = call.span.duration_ns
    return call.critical_ns * phases.ns.get(name, 0) / duration if duration else 0.0


def _tokens(calls: Sequence[ModelCall]) -> TokenCounts:
    return TokenCounts(
        prompt=_total(calls, semconv.INPUT_TOKENS),
        cached_prompt=_total(calls, semconv.CACHED_TOKENS),
        output=_total(calls, semconv.OUTPUT_TOKENS),
        reasoning=_total(calls, semconv.REASONING_TOKENS),
        is_estimated=any(
            span.attributes.get(semconv.TOKENS_ESTIMATED) is True for call in calls for span in call.attempts
        ),
    )


def _total(calls: Iterable[ModelCall], key: str) -> int | None:
    found = [n for call in calls if (n := call.total(key)) is not None]
    return sum(found) if found else None


def _distribution_of(calls: Sequence[ModelCall], key: str) -> Distribution | None:
    return distribution([n for call in calls if (n := _number(call.last, key)) is not None])


def _chunk_gaps(call: ModelCall) -> list[float]:
    gaps = call.last.attributes.get(semconv.CHUNK_GAPS_NS)
    if not isinstance(gaps, Sequence) or isinstance(gaps, str | bytes):
        return []
    return [gap for gap in gaps if isinstance(gap, int | float)]


def _number(span: SpanRecord, key: str) -> int | None:
    value = span.attributes.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
