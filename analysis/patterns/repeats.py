"""Calls with the same input and the same output as one before: what a cache would have answered.

Only where the writer recorded content.  Contents are compared by hash and not kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from hotspan.analysis.classify import outcome_of
from hotspan.analysis.patterns import Repeat
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotspan.analysis.calls import Calls
    from hotspan.analysis.patterns.path import OnPath
    from hotspan.analysis.tree import Tree
    from hotspan.tracer.record import Attributes, AttributeValue

_INPUTS: Final = (
    semconv.TOOL_ARGUMENTS,
    semconv.QUERY_TEXT,
    semconv.INPUT_MESSAGES,
    semconv.OPENINFERENCE_INPUT,
    semconv.TRACELOOP_INPUT,
    semconv.LANGFUSE_INPUT,
    semconv.MLFLOW_INPUTS,
)
_OUTPUTS: Final = (
    semconv.TOOL_RESULT,
    semconv.RETRIEVED,
    semconv.OUTPUT_MESSAGES,
    semconv.OPENINFERENCE_OUTPUT,
    semconv.TRACELOOP_OUTPUT,
    semconv.LANGFUSE_OUTPUT,
    semconv.MLFLOW_OUTPUTS,
)
INPUTS: Final = frozenset(_INPUTS)
_MAX_KNOWN: Final = 100_000  # inputs that are remembered


@dataclass(slots=True)
class _Totals:
    n_known: int = 0
    n_repeats: int = 0
    n_same_request: int = 0
    repeats_ns: int = 0


@dataclass(slots=True)
class RepeatCollector:
    """Adds up repeats, one request at a time."""

    _totals: dict[tuple[str, str], _Totals] = field(default_factory=dict)
    _seen_in: dict[int, int] = field(default_factory=dict)  # hash of a call -> request that made it last
    _n_requests: int = 0

    def add(self, tree: Tree, calls: Calls, below: Sequence[int], path: OnPath) -> None:
        """Take in one request; the arguments are those of `RunCollector.add`."""
        self._n_requests += 1
        for index in below:
            span = tree.spans[index]
            if not calls.is_call(index) or INPUTS.isdisjoint(span.attributes):
                continue
            stage = str(calls.stages[index])
            if stage in semconv.ENVELOPES or outcome_of(span) != "ok":
                continue
            totals = self._totals.setdefault((stage, span.name), _Totals())
            totals.n_known += 1
            self._compare(totals, _key(stage, span.name, span.attributes), tree, index, path)

    def pass_over(self, n_requests: int) -> None:
        """Count requests without a call whose input was recorded."""
        self._n_requests += n_requests

    def result(self) -> tuple[Repeat, ...]:
        """Return what was repeated, the most time first."""
        found = [
            Repeat(stage, name, totals.n_known, totals.n_repeats, totals.n_same_request, totals.repeats_ns)
            for (stage, name), totals in self._totals.items()
            if totals.n_repeats
        ]
        return tuple(sorted(found, key=lambda repeat: (-repeat.repeats_ns, repeat.stage, repeat.name)))

    def _compare(self, totals: _Totals, key: int, tree: Tree, index: int, path: OnPath) -> None:
        before = self._seen_in.get(key)
        if before is None and len(self._seen_in) >= _MAX_KNOWN:
            return
        self._seen_in[key] = self._n_requests
        if before is None:
            return
        totals.n_repeats += 1
        totals.n_same_request += before == self._n_requests
        totals.repeats_ns += tree.duration_ns(index) if path.holds(index) else 0


def _key(stage: str, name: str, attributes: Attributes) -> int:
    return hash((stage, name, _first(attributes, _INPUTS), _first(attributes, _OUTPUTS)))


def _first(attributes: Attributes, keys: Sequence[str]) -> str:
    value: AttributeValue = next((attributes[key] for key in keys if key in attributes), None)
    return value if isinstance(value, str) else repr(value)
