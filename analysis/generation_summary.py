"""The model calls of all traces: latencies, tokens, phases.  Only calls that succeeded enter a percentile."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hotspan.analysis.call_table import BUFFERED, ESTIMATED, HELD, OUTCOMES, CallTable
from hotspan.analysis.columns import Floats, Longs, known, total, view
from hotspan.analysis.model import PHASES, GenerationSummary, PhaseRow, TokenCounts
from hotspan.analysis.percentiles import Distribution, distribution

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotspan.analysis.call_table import Picked, Rows

_NS_PER_S: Final = 1_000_000_000
_STATUSES: Final = ("ok", "error", "truncated", "cancelled", "abandoned")


def summarise(table: CallTable, phases: Sequence[PhaseRow]) -> GenerationSummary:
    """Return what the calls say together.

    Args:
        table: All of them, however they ended.
        phases: Of those that succeeded.
    """
    rows = table.rows()
    ok = table.succeeded()
    tpots = ok["tpot"]
    tpots = tpots[~np.isnan(tpots)]
    tpot = distribution(tpots)
    buffered = ok.those((ok["flags"] & BUFFERED) > 0)
    decoded = buffered.those(buffered["decode_ns"] > 0)
    return GenerationSummary(
        n_calls=len(rows),
        n_attempts=total(rows["n_attempts"]),
        status=_status(rows),
        n_held=int(((ok["flags"] & HELD) > 0).sum()),
        n_buffered=len(buffered),
        n_buffered_decoded=len(decoded),
        buffered_decode_ns=_mean(decoded["decode_ns"]),
        buffered_engine_wait_ns=_mean(_engine_waits(decoded)),
        buffered_ttft_ns=_mean(decoded["ttft"][~np.isnan(decoded["ttft"])]),
        ttfb_ns=_distribution(ok["ttfb"]),
        first_chunk_ns=_distribution(ok["first_chunk"]),
        ttft_ns=_distribution(ok["ttft"]),
        time_to_first_answer_ns=_distribution(ok["ttfa"]),
        tpot_ns=tpot,
        chunk_gap_ns=_distribution(view(table.gaps_ns)),
        output_tokens_per_s=_speeds(tpots, tpot),
        tokens=_tokens(ok),
        phases_ns=dict.fromkeys(PHASES) | {row.name: row.mean_ns for row in phases},
        phase_sources={row.name: dict(row.sources) for row in phases},
    )


def _status(rows: Rows) -> dict[str, int]:
    counts = dict(zip(OUTCOMES, np.bincount(rows["outcome"], minlength=len(OUTCOMES)).tolist(), strict=True))
    counts["cancelled"] += counts.pop("interrupted")
    return {status: counts[status] for status in _STATUSES}


def _distribution(values: Floats) -> Distribution | None:
    is_finite = np.isfinite(values)
    return distribution(values if is_finite.all() else values[is_finite])


def _speeds(tpots_ns: Floats, tpot: Distribution | None) -> Distribution | None:
    """Return tokens per second; their p50 is 1 / TPOT's p50, also where that lies between two calls."""
    speeds = distribution(_NS_PER_S / tpots_ns)
    return None if speeds is None or tpot is None else replace(speeds, p50=_NS_PER_S / tpot.p50)


def _engine_waits(rows: Picked) -> Longs:
    """Return the engine's own time to the first token, queue and prefill, where it says the prefill."""
    having = rows.those(rows["prefill_ns"] >= 0)
    return np.asarray(np.maximum(having["queue_ns"], 0) + having["prefill_ns"])


def _mean(values: Longs | Floats) -> float | None:
    return math.fsum(values.tolist()) / len(values) if len(values) else None


def _tokens(ok: Picked) -> TokenCounts:
    found = {name: known(ok[name]) for name in ("prompt", "cached", "output", "reasoning")}
    prompt, cached, output, reasoning = (total(n) if len(n) else None for n in found.values())
    is_estimated = bool((ok["flags"] & ESTIMATED).any())
    n_prompt, n_output = len(found["prompt"]), len(found["output"])
    return TokenCounts(prompt, cached, output, reasoning, is_estimated, n_prompt, n_output)


def phase_rows(table: CallTable, request_ns: int) -> tuple[PhaseRow, ...]:
    """Return the phases of the successful calls as rows.

    A call's time on the critical path is divided over its phases in proportion.

    Args:
        table: All calls.
        request_ns: Duration of all requests together.
    """
    ok, names = table.succeeded(), table.sources.known()
    phases, sources, shares = ok["phases"], ok["sources"], phase_shares(ok)
    return tuple(
        _phase_row(name, of_phase, sources[:, column], names, _shared(shares[:, column], request_ns))
        for column, name in enumerate(PHASES)
        if ((of_phase := phases[:, column]) >= 0).any()
    )


def _shared(shares_ns: Floats, request_ns: int) -> float:
    return math.fsum(shares_ns.tolist()) / request_ns if request_ns else 0.0


def phase_shares(ok: Picked) -> Floats:
    """Return each successful call's time on the critical path, divided over its phases: a column for each."""
    phases, critical_ns = ok["phases"], ok["critical_ns"]
    durations = np.maximum(ok["duration_ns"], 1).astype(np.float64)
    shares = np.zeros(phases.shape)
    for column in np.flatnonzero((phases > 0).any(axis=0)):
        shares[:, column] = critical_ns * np.maximum(phases[:, column], 0).astype(np.float64) / durations
    return shares


def _phase_row(name: str, ns: Longs, codes: Any, sources: Sequence[str], ratio: float) -> PhaseRow:
    having = known(ns)
    spread = distribution(having)
    return PhaseRow(
        name,
        mean_ns=total(having) / len(ns),
        p50_ns=None if spread is None else spread.p50,
        p95_ns=None if spread is None else spread.p95,
        critical_path_ratio=ratio,
        sources=_counted(codes, sources),
        n_calls=len(having),
        weak=tuple(name for name in ("p50", "p95") if spread is not None and name in spread.weak),
    )


def _counted(codes: Any, names: Sequence[str]) -> dict[str, int]:
    counts = np.bincount(codes[codes >= 0], minlength=len(names)).tolist()
    return {name: n for name, n in zip(names, counts, strict=True) if n}
