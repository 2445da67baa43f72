"""What an analysis says: one frozen `Report`, which every renderer receives.

Every time inside is in nanoseconds, every `*_ratio` a share in [0, 1], every `n_*` a count.  `to_dict` gives
the form of `hotspan report --format json`: milliseconds, and `None` where there is nothing to say.  What each
figure means: docs/definitions.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from hotspan.analysis.basis import Evidence
from hotspan.analysis.frame import Stages
from hotspan.analysis.patterns import Patterns
from hotspan.analysis.requests import RequestSummary
from hotspan.analysis.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hotspan.analysis.parts import Groups, Selection
    from hotspan.analysis.percentiles import Distribution, PerRequest
    from hotspan.analysis.tail import Tail

Severity = Literal["info", "warning", "critical"]
JsonDict = dict[str, Any]

SCHEMA = "hotspan.report/1"
PHASES = (
    "connect", "send", "server_before_engine", "queue", "prefill", "first_token_wait", "decode",
    "stream_overhead", "consumer_hold", "backoff", "unattributed",
)  # fmt: skip
_MS_PER_NS = 1e-6


def _ms(ns: float | None) -> float | None:
    return None if ns is None else ns * _MS_PER_NS


def _dist_ms(dist: Distribution | None) -> JsonDict | None:
    return None if dist is None else dist.to_dict(_MS_PER_NS)


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """One phase of the generation calls, over all successful calls."""

    name: str  # one of PHASES
    mean_ns: float  # a call without this phase counts as 0, so that the phases' means add up
    p50_ns: float | None  # of the calls that have it, as p95; None where none has
    p95_ns: float | None
    critical_path_ratio: float | None  # share of all request time; None as that of the stage
    sources: Mapping[str, int] = field(default_factory=dict)  # where it was read -> calls
    n_calls: int = 0  # that have it
    weak: tuple[str, ...] = ()  # of p50 and p95, those with fewer than 10 samples beyond them

    def to_dict(self) -> JsonDict:
        """Return the JSON form."""
        return {
            "phase": self.name,
            "calls": self.n_calls,
            "mean_ms": _ms(self.mean_ns),
            "p50_ms": _ms(self.p50_ns),
            "p95_ms": _ms(self.p95_ns),
            "weak": list(self.weak),
            "critical_path_ratio": self.critical_path_ratio,
            "sources": dict(self.sources),
        }


@dataclass(frozen=True, slots=True)
class StageRow:
    """One stage over all requests."""

    stage: str
    n_calls: int
    n_errors: int
    n_cancelled: int
    calls_per_request: PerRequest | None  # None: no complete request to count it in
    duration_ns: Distribution | None  # of the calls that succeeded
    busy_ns: int  # sum of call durations; may exceed the wall time
    wall_ns: int | None  # union of the call intervals of each request, summed; None: no call lies in one
    self_ns: int | None  # None as the wall time
    critical_path_ns: int | None  # likewise, and for request, agent and step: theirs is `unattributed`
    critical_path_ratio: float | None
    phases: tuple[PhaseRow, ...] = ()  # of the generation row only
    # Self time of the first call against the later ones of the same span name, of those that succeeded, for
    # the name whose first call stands out most.  None where no name has a second call.
    first_call_name: str | None = None
    first_call_ns: int | None = None
    later_calls_p90_ns: float | None = None
    n_later_calls: int = 0
    n_later_calls_as_slow: int = 0  # of these, with more than half the first one's time

    def to_dict(self) -> JsonDict:
        """Return the JSON form."""
        per_request = self.calls_per_request
        row = {
            "stage": self.stage,
            "calls": self.n_calls,
            "errors": self.n_errors,
            "cancelled": self.n_cancelled,
            "calls_per_request": None if per_request is None else per_request.to_dict(),
            "duration_ms": _dist_ms(self.duration_ns),
            "busy_ms": _ms(self.busy_ns),
            "wall_ms": _ms(self.wall_ns),
            "self_ms": _ms(self.self_ns),
            "critical_path_ms": _ms(self.critical_path_ns),
            "critical_path_ratio": self.critical_path_ratio,
            "first_call_name": self.first_call_name,
            "first_call_ms": _ms(self.first_call_ns),
            "later_calls_p90_ms": _ms(self.later_calls_p90_ns),
            "later_calls": self.n_later_calls,
            "later_calls_as_slow": self.n_later_calls_as_slow,
        }
        if self.phases:
            row["phases"] = [phase.to_dict() for phase in self.phases]
        return row


@dataclass(frozen=True, slots=True)
class Unattributed:
    """Critical-path time that lies on the request, agent and step spans themselves."""

    critical_path_ns: int | None = None  # None: no complete request
    critical_path_ratio: float | None = None

    def to_dict(self) -> JsonDict:
        """Return the JSON form."""
        return {
            "critical_path_ms": _ms(self.critical_path_ns),
            "critical_path_ratio": self.critical_path_ratio,
        }


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Tokens over all successful generation calls; `None` where no call says."""

    prompt: int | None = None  # cached ones included
    cached_prompt: int | None = None
    output: int | None = None
    reasoning: int | None = None
    is_estimated: bool = False  # some outputs are counted chunks, not the server's usage
    n_prompt: int = 0  # calls that say how many prompt tokens they had
    n_output: int = 0

    def to_dict(self) -> JsonDict:
        """Return the JSON form."""
        return {
            "prompt": self.prompt,
            "cached_prompt": self.cached_prompt,
            "output": self.output,
            "reasoning": self.reasoning,
            "estimated": self.is_estimated,
            "prompt_calls": self.n_prompt,
            "output_calls": self.n_output,
        }


@dataclass(frozen=True, slots=True)
class GenerationSummary:
    """The model calls; distributions are over the calls that succeeded."""

    n_calls: int = 0
    n_attempts: int = 0
    status: Mapping[str, int] = field(
        default_factory=lambda: {"ok": 0, "error": 0, "truncated": 0, "cancelled": 0, "abandoned": 0}
    )
    n_held: int = 0  # streams whose source went on while the consumer held them: gaps and TPOT are too small
    n_buffered: int = 0  # asked to stream, and the whole answer came in one read
    n_buffered_decoded: int = 0  # of these, answers that the engine says it decoded over a time
    buffered_decode_ns: float | None = None  # mean of that time, as the engine says
    buffered_engine_wait_ns: float | None = None  # mean of the engine's own time to the first token of these
    buffered_ttft_ns: float | None = None  # mean time to the first token of these, as the client measured
    ttfb_ns: Distribution | None = None
    first_chunk_ns: Distribution | None = None  # as other writers measured it: a chunk may hold no token
    ttft_ns: Distribution | None = None
    time_to_first_answer_ns: Distribution | None = None
    tpot_ns: Distribution | None = None
    chunk_gap_ns: Distribution | None = None
    output_tokens_per_s: Distribution | None = None
    tokens: TokenCounts = TokenCounts()
    phases_ns: Mapping[str, float | None] = field(default_factory=dict)  # mean per successful call
    phase_sources: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # phase -> source -> calls

    def to_dict(self) -> JsonDict:
        """Return the JSON form."""
        return {
            "calls": self.n_calls,
            "attempts": self.n_attempts,
            "status": dict(self.status),
            "held": self.n_held,
            "buffered": self.n_buffered,
            "buffered_decoded": self.n_buffered_decoded,
            "buffered_decode_mean_ms": _ms(self.buffered_decode_ns),
            "buffered_engine_wait_mean_ms": _ms(self.buffered_engine_wait_ns),
            "buffered_ttft_mean_ms": _ms(self.buffered_ttft_ns),
            "ttfb_ms": _dist_ms(self.ttfb_ns),
            "time_to_first_chunk_ms": _dist_ms(self.first_chunk_ns),
            "ttft_ms": _dist_ms(self.ttft_ns),
            "time_to_first_answer_ms": _dist_ms(self.time_to_first_answer_ns),
            "tpot_ms": _dist_ms(self.tpot_ns),
            "chunk_gap_ms": _dist_ms(self.chunk_gap_ns),
            "output_tokens_per_s": (
                None if self.output_tokens_per_s is None else self.output_tokens_per_s.to_dict()
            ),
            "tokens": self.tokens.to_dict(),
            "phases_ms": {name: _ms(self.phases_ns.get(name)) for name in PHASES},
            "phase_sources": {name: dict(sources) for name, sources in self.phase_sources.items()},
        }


@dataclass(frozen=True, slots=True)
class Amplification:
    """How many model calls, and how much resent prompt, one request costs.

    Over the requests that ran an agent and called a model; where none did, over all with a model call.
    """

    n_requests: int = 0
    is_agent: bool = False  # True: the requests that ran an agent
    model_calls: PerRequest | None = None
    attempts: PerRequest | None = None
    sequential_depth: PerRequest | None = None  # generation calls on the critical path
    parallelism: float | None = None  # sum of generation durations over their union
    prompt_tokens_resent_ratio: float | None = None  # an estimate
    cached_prompt_ratio: float | None = None
    time_amplification: PerRequest | None = None  # critical-path generation time over the median single call
    n_timed: int = 0  # requests that this is over: those with a call that succeeded

    def to_dict(self) -> JsonDict:
        """Return the JSON form."""

        def dist(value: PerRequest | None) -> JsonDict | None:
            return None if value is None else value.to_dict()

        return {
            "requests": self.n_requests,
            "agent": self.is_agent,
            "model_calls": dist(self.model_calls),
            "attempts": dist(self.attempts),
            "sequential_depth": dist(self.sequential_depth),
            "parallelism": self.parallelism,
            "prompt_tokens_resent_ratio": self.prompt_tokens_resent_ratio,
            "cached_prompt_ratio": self.cached_prompt_ratio,
            "time_amplification": dist(self.time_amplification),
        }


@dataclass(frozen=True, slots=True)
class WhatIf:
    """How the requests' durations would change: a replay, and so an estimate."""

    change: str  # "rerank x0.5" | "rerank removed" | "rerank in parallel"
    request_p50_change_ratio: float  # -0.1: a tenth shorter
    request_p95_change_ratio: float

    def to_dict(self) -> JsonDict:
        """Return the JSON form."""
        return {
            "change": self.change,
            "request_p50_change_ratio": self.request_p50_change_ratio,
            "request_p95_change_ratio": self.request_p95_change_ratio,
        }


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that stands out, the figures behind it, and what to do next."""

    id: str
    severity: Severity
    text: str
    evidence: Mapping[str, Any]  # the figures for it, and the one against it, by name with unit
    next_step: str

    def to_dict(self) -> JsonDict:
        """Return the JSON form."""
        return {
            "id": self.id,
            "severity": self.severity,
            "text": self.text,
            "evidence": dict(self.evidence),
            "next_step": self.next_step,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """Where the time of the requests went, and what would help."""

    evidence: Evidence = field(default_factory=Evidence)
    request: RequestSummary = field(default_factory=RequestSummary)
    stages: Stages = field(default_factory=Stages)  # largest critical-path share first, after the envelopes
    unattributed: Unattributed = Unattributed()
    generation: GenerationSummary = field(default_factory=GenerationSummary)
    amplification: Amplification = Amplification()
    what_if: tuple[WhatIf, ...] = ()
    findings: tuple[Finding, ...] = ()
    tail: Tail | None = None  # None: no request succeeded
    patterns: Patterns = field(default_factory=Patterns)  # for findings; in no rendering
    telemetry: Telemetry = field(default_factory=Telemetry)  # engines and GPUs, sampled
    selection: Selection | None = None  # None: the whole run
    groups: Groups | None = None

    def to_dict(self) -> JsonDict:
        """Return the report as JSON-ready data, `hotspan report --format json`: times in milliseconds."""
        parts = {"where": self.selection, "by": self.groups}
        return {
            "schema": SCHEMA,
            "evidence": self.evidence.to_dict(),
            "request": self.request.to_dict(),
            "stages": [row.to_dict() for row in self.stages],
            "unattributed": self.unattributed.to_dict(),
            "generation": self.generation.to_dict(),
            "amplification": self.amplification.to_dict(),
            "what_if": [item.to_dict() for item in self.what_if],
            "findings": [item.to_dict() for item in self.findings],
            "tail": None if self.tail is None else self.tail.to_dict(),
            "telemetry": self.telemetry.to_dict(),
            **{key: part.to_dict() for key, part in parts.items() if part is not None},
        }
