"""The requests as their users felt them, and how many each recorded one stands for.

A sampler that keeps all failures and a part of the rest makes a plain share of failures wrong.  Where it
wrote weights they are used; where it says only that it chose, there is no share.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hotspan.analysis.classify import Outcome
    from hotspan.analysis.percentiles import Distribution
    from hotspan.tracer.record import SpanRecord

_MS_PER_NS: Final = 1e-6
_THRESHOLD_DIGITS: Final = 14  # of OpenTelemetry's `th`: 56 bits
_SHOWN: Final = (50, 90, 95, 99)
_NEVER: Final = 63  # of its older `p`: probability 0
_MOST: Final = 2.0**_NEVER  # requests that one stands for: beyond it nothing was meant
_UNKNOWN: Final = 1.0  # weight of a request about which nothing is said
_WEIGHING: Final = frozenset(
    {semconv.TAIL_SAMPLING_POLICY, semconv.HONEYCOMB_SAMPLE_RATE, semconv.JAEGER_SAMPLER_TYPE}
)
_FAILED: Final[tuple[Outcome, ...]] = ("error", "truncated")


@dataclass(frozen=True, slots=True)
class RequestSummary:
    """The requests as their users felt them."""

    n: int = 0
    n_errors: int = 0
    n_cancelled: int = 0
    duration_ns: Distribution | None = None  # of the requests that succeeded
    error_ratio: float | None = None  # None: no request, or chosen by a sampler that says no weights
    is_weighted: bool = False  # error_ratio is an estimate: recorded requests stand for different numbers
    # Percentiles by nearest rank with failures as requests that never end: `None` where they reach that far.
    with_failures_ns: Mapping[str, float | None] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "n": self.n,
            "errors": self.n_errors,
            "cancelled": self.n_cancelled,
            "error_ratio": self.error_ratio,
            "error_ratio_weighted": self.is_weighted,
            "duration_ms": None if self.duration_ns is None else self.duration_ns.to_dict(_MS_PER_NS),
            "duration_with_failures_ms": {
                name: None if ns is None else ns * _MS_PER_NS for name, ns in self.with_failures_ns.items()
            },
        }


def with_failures(durations_ns: Sequence[int], n_failed: int) -> dict[str, float | None]:
    """Return p50, p90, p95 and p99 of requests some of which failed: those are longer than any other.

    By nearest rank, which needs no arithmetic with a duration that has no end.

    Args:
        durations_ns: Of the requests that succeeded.
        n_failed: How many did not.
    """
    n_ok = len(durations_ns)
    n = n_ok + n_failed
    ranks = {percent: max(math.ceil(percent * n / 100), 1) for percent in _SHOWN} if n else {}
    places = [rank - 1 for rank in ranks.values() if rank <= n_ok]
    ordered = np.array(durations_ns, dtype=np.int64)
    if places:
        ordered.partition(places)
    return {
        f"p{percent}": float(ordered[rank - 1]) if rank <= n_ok else None for percent, rank in ranks.items()
    }


@dataclass(slots=True)
class RequestWeights:
    """How many requests the recorded ones stand for, by outcome."""

    _weights: dict[float, Counter[Outcome]] = field(default_factory=dict)
    _n_chosen: int = 0  # by a sampler that says no weight

    def add(self, root: SpanRecord, outcome: Outcome, n: int = 1) -> None:
        """Count one request, or several whose roots say the same of it."""
        weight = weight_of(root)
        if weight is None:
            self._n_chosen += n * (semconv.TAIL_SAMPLING_POLICY in root.attributes)
            weight = _UNKNOWN
        self._weights.setdefault(weight, Counter())[outcome] += n

    @property
    def is_weighted(self) -> bool:
        """Whether the requests stand for different numbers."""
        return len(self._weights) > 1

    @property
    def is_sampled(self) -> bool:
        """Whether roots say that there were more requests than were recorded."""
        return self._n_chosen > 0 or any(weight > _UNKNOWN for weight in self._weights)

    @property
    def recorded_ratio(self) -> float | None:
        """The share of all requests that was recorded; `None` where it cannot be told."""
        whole = sum(weight * counts.total() for weight, counts in self._weights.items())
        recorded = sum(counts.total() for counts in self._weights.values())
        return recorded / whole if whole and not self._n_chosen else None

    @property
    def error_ratio(self) -> float | None:
        """The share of requests that failed; `None` where it cannot be told."""
        whole = sum(weight * counts.total() for weight, counts in self._weights.items())
        failed = sum(
            weight * counts[outcome] for weight, counts in self._weights.items() for outcome in _FAILED
        )
        return failed / whole if whole and not self._n_chosen else None

    def warnings(self) -> Iterator[str]:
        """Yield what the weights mean for the other figures."""
        if self.is_weighted:
            yield (
                f"a sampler kept requests that stand for {min(self._weights):.3g} to "
                f"{max(self._weights):.3g} each: the share of failures is weighted, all other figures are "
                "of the recorded requests"
            )
        if self._n_chosen:
            yield (
                f"{self._n_chosen} requests were chosen by a sampling policy that says no weights: there is "
                "no share of failures, and percentiles are of the chosen ones"
            )


def may_weigh(root: SpanRecord) -> bool:
    """Return whether a root with such keys may say a weight of its own, beyond what its resource says."""
    return bool(root.trace_state) or not _WEIGHING.isdisjoint(root.attributes)


def weight_of(root: SpanRecord) -> float | None:
    """Return how many requests a recorded one stands for; `None` where nobody says."""
    attributes = root.attributes
    rate = _number(attributes.get(semconv.HONEYCOMB_SAMPLE_RATE))
    if rate is not None and 1 <= rate <= _MOST:
        return rate
    probability = _state_probability(root.trace_state) if root.trace_state else None
    if probability is None and attributes.get(semconv.JAEGER_SAMPLER_TYPE) == "probabilistic":
        probability = _number(attributes.get(semconv.JAEGER_SAMPLER_PARAM))
    if probability is None:
        probability = _number(root.resource.attributes.get(semconv.SAMPLE_RATIO))
    return 1 / probability if probability is not None and 1 / _MOST <= probability <= 1 else None


def _number(value: object) -> float | None:
    """Return what a sampler wrote as a number; some exporters make a text of it."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _state_probability(trace_state: str) -> float | None:
    """Return the probability in OpenTelemetry's member of a `tracestate`."""
    for member in trace_state.split(","):
        vendor, _, fields = member.strip().partition("=")
        if vendor != semconv.TRACE_STATE_VENDOR:
            continue
        found = dict(part.partition(":")[::2] for part in fields.split(";"))
        try:
            if "th" in found:
                return 1 - int(found["th"].ljust(_THRESHOLD_DIGITS, "0"), 16) / 16**_THRESHOLD_DIGITS
            if "p" in found:
                power = int(found["p"])
                return None if power >= _NEVER else 2.0**-power
        except ValueError:
            return None
    return None
