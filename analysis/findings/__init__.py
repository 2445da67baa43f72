"""What stands out in a report: one small rule each, with the figures for it, one against it, and a next step.

A rule sees the report alone and says nothing where a figure that it needs is not there.  `against` in the
evidence is the figure that would have to be looked at before believing the finding.  A new rule is a function
and a line in `_RULES`; docs/findings.md has them in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from hotspan.analysis.findings import (
    calls,
    decode,
    engine,
    failures,
    first_token,
    program,
    quality,
    retrieval,
    slow_tail,
    streams,
)
from hotspan.analysis.model import Finding, Report, Severity

_ORDER: Final[dict[Severity, int]] = {"critical": 0, "warning": 1, "info": 2}

Rule = Callable[[Report], Iterator[Finding]]

# Of one severity, the findings come in this order.
_RULES: Final[tuple[Rule, ...]] = (
    quality.spans_lost,
    quality.spans_unended,
    quality.requests_failed,
    failures.calls_failed,
    failures.streams_truncated,
    failures.rate_limited,
    failures.overloaded,
    failures.retries,
    program.context_lost,
    program.event_loop_blocked,
    first_token.queue,
    engine.cache_full,
    engine.preemptions,
    engine.idle_gpu,
    first_token.prefill,
    retrieval.rerank,
    retrieval.one_text_a_call,
    streams.consumer,
    streams.buffered,
    decode.slowed_by_concurrency,
    decode.tpot_high,
    decode.decode_dominates,
    retrieval.side_dominates,
    slow_tail.slow_tail,
    calls.sequential_calls,
    calls.repeated_calls,
    calls.sequential_model_calls,
    calls.prompt_growth,
    program.unattributed,
    program.cold_start,
    quality.evidence_thin,
)


def findings(report: Report) -> tuple[Finding, ...]:
    """Return what stands out in a report, the most severe first; its own `findings` are not looked at."""
    found = [
        replace(finding, evidence=_known(finding.evidence)) for rule in _RULES for finding in rule(report)
    ]
    return tuple(sorted(found, key=lambda finding: _ORDER[finding.severity]))


def _known(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Return the evidence without the figures that this report does not have."""
    return {
        name: _known(value) if isinstance(value, Mapping) else value
        for name, value in evidence.items()
        if value is not None
    }
