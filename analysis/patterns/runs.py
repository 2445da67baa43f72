"""Calls of one stage that follow each other under one parent: what could be one batch, or run at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hotspan.analysis.classify import outcome_of
from hotspan.analysis.columns import total
from hotspan.analysis.patterns import Run
from hotspan.analysis.patterns.texts import has_several
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hotspan.analysis.calls import Calls
    from hotspan.analysis.form_sums import FormTimes
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


_Key = tuple[str, str]  # stage and name
_Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(slots=True)
class _Totals:
    n_runs: int = 0
    n_calls: int = 0
    n_longest: int = 0
    total_ns: int = 0
    longest_calls_ns: int = 0
    n_batches: int = 0
    n_requests: int = 0
    names: set[str] = field(default_factory=set)


@dataclass(slots=True)
class RunCollector:
    """Adds up runs, one request at a time."""

    _totals: dict[_Key, _Totals] = field(default_factory=dict)

    def add(self, tree: Tree, calls: Calls, below: Sequence[int], path: OnPath) -> None:
        """Take in one request.

        Args:
            tree: The request's trace.
            calls: Its stages.
            below: The request's spans.
            path: Which of them the request waited for.
        """
        keys = set()
        for parent in below:
            siblings = [child for child in calls.staged_children[parent] if child not in calls.twins]
            if len(siblings) > 1:
                for run in _runs(tree, calls, siblings):
                    if path.holds(run[0]) and (key := self._key(calls, tree.spans, run)):
                        times = [tree.duration_ns(index) for index in run]
                        self._totals[key].total_ns += sum(times)
                        self._totals[key].longest_calls_ns += max(times)
                        self._count(key, tree.spans, run)
                        keys.add(key)
        for key in keys:
            self._totals[key].n_requests += 1

    def add_form(self, times: FormTimes) -> None:
        """Take in the requests of one form, as `add` does one by one."""
        form = times.batch.form
        having: dict[_Key, _Mask] = {}
        for siblings in form.calls.staged_children:
            for run, had in _runs_of_form(times, siblings):
                traces = had & times.path[:, form.below(run[0])].any(axis=1)
                if traces.any() and (key := self._key(form.calls, form.spans, run)):
                    durations = times.durations[traces][:, run]
                    self._totals[key].total_ns += total(durations.ravel())
                    self._totals[key].longest_calls_ns += total(durations.max(axis=1))
                    self._count(key, form.spans, run, len(durations))
                    having[key] = having.get(key, False) | traces
        for key, traces in having.items():
            self._totals[key].n_requests += int(traces.sum())

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
                n_requests=totals.n_requests,
                n_batches=totals.n_batches,
            )
            for (stage, _), totals in self._totals.items()
        ]
        return tuple(sorted(found, key=lambda run: (-run.total_ns, run.stage, run.names)))

    def _key(self, calls: Calls, spans: Sequence[SpanRecord], run: Sequence[int]) -> _Key | None:
        """Return what a run is added to; `None` where there are too many kinds already."""
        names = {spans[index].name for index in run}
        key = str(calls.stages[run[0]]), _SEVERAL if len(names) > 1 else spans[run[0]].name
        if key not in self._totals and len(self._totals) >= _MAX_NAMES:
            return None
        known = self._totals.setdefault(key, _Totals()).names
        if len(known) < _MAX_NAMES:
            known |= names
        return key

    def _count(self, key: _Key, spans: Sequence[SpanRecord], run: Sequence[int], n_runs: int = 1) -> None:
        totals = self._totals[key]
        totals.n_runs += n_runs
        totals.n_calls += n_runs * len(run)
        totals.n_longest = max(totals.n_longest, len(run))
        if key[0] == semconv.EMBEDDING:  # always one by one: what is in the spans may differ
            totals.n_batches += sum(has_several(spans[index].attributes) for index in run)


def needs_spans(spans: Sequence[SpanRecord], calls: Calls) -> bool:
    """Return whether a request may have a run of calls whose attributes have to be looked at.

    Args:
        spans: Of the request, in order of start.
        calls: Of these.
    """
    return any(
        calls.stages[index] == semconv.EMBEDDING and _are_alike(spans, calls, before, index)
        for siblings in calls.staged_children
        for before, index in pairwise(siblings)
    )


def _runs_of_form(times: FormTimes, siblings: Sequence[int]) -> Iterator[tuple[Sequence[int], _Mask]]:
    """Yield each run that some traces of a form have, and which traces."""
    pairs = list(pairwise(siblings))
    if not any(_are_alike(times.batch.form.spans, times.batch.form.calls, *pair) for pair in pairs):
        return
    alone = _alone_in_form(times, siblings)
    follows = [_follow(times, *pair) & alone[:, i] & alone[:, i + 1] for i, pair in enumerate(pairs)]
    nowhere = np.zeros(len(times.batch), dtype=bool)
    follows = [nowhere, *follows, nowhere]
    for first in range(len(siblings) - 1):
        running = ~follows[first]
        for last in range(first + 1, len(siblings)):
            running = running & follows[last]
            if not running.any():
                break
            yield siblings[first : last + 1], running & ~follows[last + 1]


def _alone_in_form(times: FormTimes, siblings: Sequence[int]) -> _Mask:
    """Return in which traces of a form each of some siblings is `_is_alone`: a column each."""
    starts = times.batch.starts[:, siblings]
    same = np.zeros((len(starts), len(siblings) + 1), dtype=bool)
    same[:, 1:-1] = starts[:, 1:] == starts[:, :-1]
    return np.asarray(~(same[:, 1:] | same[:, :-1]))


def _follow(times: FormTimes, before: int, index: int) -> _Mask:
    """Return in which traces of a form a call follows another, as `_follows` does for one."""
    form, batch = times.batch.form, times.batch
    if not _are_alike(form.spans, form.calls, before, index) or form.outcomes[before] != "ok":
        return np.zeros(len(batch), dtype=bool)
    pauses = batch.starts[:, index] - batch.ends[:, before]
    longest = np.maximum(_PAUSE_NS, _PAUSE_RATIO * times.durations[:, before])
    return np.asarray((pauses >= 0) & (pauses <= longest))


def _runs(tree: Tree, calls: Calls, siblings: Sequence[int]) -> Iterator[list[int]]:
    ordered = sorted(siblings, key=lambda index: tree.starts[index])
    run = [ordered[0]]
    for place, index in enumerate(ordered[1:], start=1):
        is_next = _follows(tree, calls, run[-1], index)
        if is_next and _is_alone(tree, ordered, place - 1) and _is_alone(tree, ordered, place):
            run.append(index)
            continue
        if len(run) > 1:
            yield run
        run = [index]
    if len(run) > 1:
        yield run


def _is_alone(tree: Tree, ordered: Sequence[int], place: int) -> bool:
    """Return whether no sibling starts with a call: those that do run at once, and their order is chance."""
    start = tree.starts[ordered[place]]
    beside = (*ordered[max(0, place - 1) : place], *ordered[place + 1 : place + 2])
    return all(tree.starts[other] != start for other in beside)


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
