"""Calls of one stage that follow each other under one parent: what could be one batch, or run at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from hotspan.analysis.classify import outcome_of
from hotspan.analysis.patterns import Run
from hotspan.analysis.patterns.texts import has_several
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hotspan.analysis.calls import Calls
    from hotspan.analysis.patterns.path import OnPath
    from hotspan.analysis.tree import Tree
    from hotspan.tracer.record import SpanRecord

# One model call answers the other, and steps follow each other on purpose.
_DEPENDENT: Final = semconv.ENVELOPES | {semconv.GENERATION, semconv.CONTEXT_ASSEMBLY}
# Several stores, tools or models may be asked at once; of other stages one name prepares another's work.
_OF_ANY_NAME: Final = frozenset({semconv.RETRIEVAL, semconv.TOOL, semconv.EMBEDDING})
_SEVERAL: Final = ""  # instead of a name: rows of calls with different ones
_PAUSE_RATIO: Final = 0.1  # of the call before: whoever pauses longer works on its result
_PAUSE_NS: Final = 1_000_000  # or this, where calls are very short
_MAX_NAMES: Final = 1_000


@dataclass(slots=True)
class _Totals:
    n_runs: int = 0
    n_calls: int = 0
    n_longest: int = 0
    total_ns: int = 0
    longest_calls_ns: int = 0
    n_batches: int = 0
    requests: set[int] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


@dataclass(slots=True)
class RunCollector:
    """Adds up runs, one request at a time."""

    _totals: dict[tuple[str, str], _Totals] = field(default_factory=dict)  # by stage and name

    def add(self, tree: Tree, calls: Calls, below: Sequence[int], path: OnPath) -> None:
        """Take in one request.

        Args:
            tree: The request's trace.
            calls: Its stages.
            below: The request's spans.
            path: Which of them the request waited for.
        """
        for parent in below:
            siblings = calls.staged_children[parent]
            if len(siblings) > 1:
                for run in _runs(tree, calls, siblings):
                    if path.holds(run[0]):
                        self._add_run(tree, calls, run, below[0])

    def result(self) -> tuple[Run, ...]:
        """Return the runs, the one with the most time first."""
        found = [
            Run(
                stage=stage,
                names=tuple(sorted(totals.names)),
                n_runs=totals.n_runs,
                n_calls=totals.n_calls,
                n_longest=totals.n_longest,
                total_ns=totals.total_ns,
                longest_calls_ns=totals.longest_calls_ns,
                n_requests=len(totals.requests),
                n_batches=totals.n_batches,
            )
            for (stage, _), totals in self._totals.items()
        ]
        return tuple(sorted(found, key=lambda run: (-run.total_ns, run.stage, run.names)))

    def _add_run(self, tree: Tree, calls: Calls, run: Sequence[int], root: int) -> None:
        names = {tree.spans[index].name for index in run}
        key = str(calls.stages[run[0]]), _SEVERAL if len(names) > 1 else names.copy().pop()
        if key not in self._totals and len(self._totals) >= _MAX_NAMES:
            return
        totals = self._totals.setdefault(key, _Totals())
        times = [tree.duration_ns(index) for index in run]
        totals.n_runs += 1
        totals.n_calls += len(run)
        totals.n_longest = max(totals.n_longest, len(run))
        totals.total_ns += sum(times)
        totals.longest_calls_ns += max(times)
        totals.n_batches += sum(has_several(tree.spans[index].attributes) for index in run)
        totals.requests.add(hash((tree.trace_id, root)))
        if len(totals.names) < _MAX_NAMES:
            totals.names |= names


def may_run(spans: Sequence[SpanRecord], calls: Calls) -> bool:
    """Return whether a call of a request could follow another as in a run, whatever their times.

    Args:
        spans: Of the request, in order of start.
        calls: Of these.
    """
    return any(
        _are_alike(spans, calls, before, index)
        for siblings in calls.staged_children
        for before, index in pairwise(sorted(siblings))
    )


def _runs(tree: Tree, calls: Calls, siblings: Sequence[int]) -> Iterator[list[int]]:
    ordered = sorted(siblings, key=lambda index: tree.starts[index])
    run = [ordered[0]]
    for index in ordered[1:]:
        if _follows(tree, calls, run[-1], index):
            run.append(index)
            continue
        if len(run) > 1:
            yield run
        run = [index]
    if len(run) > 1:
        yield run


def _follows(tree: Tree, calls: Calls, before: int, index: int) -> bool:
    """Return whether a call follows another of its kind at once; after a failure it is a second try."""
    pause = tree.starts[index] - tree.ends[before]
    return (
        _are_alike(tree.spans, calls, before, index)
        and 0 <= pause <= max(_PAUSE_NS, _PAUSE_RATIO * tree.duration_ns(before))
        and outcome_of(tree.spans[before]) == "ok"
    )


def _are_alike(spans: Sequence[SpanRecord], calls: Calls, before: int, index: int) -> bool:
    stage = calls.stages[index]
    if stage in _DEPENDENT or stage != calls.stages[before]:
        return False
    return stage in _OF_ANY_NAME or spans[index].name == spans[before].name
