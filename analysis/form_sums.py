"""Sums over many traces of one form at once: what `Collector` adds up trace by trace, in columns.

Every function here is the twin of one that takes a single trace, and gives the same figures exactly;
the tests hold them against each other.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from hotspan.analysis.alike import alike
from hotspan.analysis.columns import Floats, Longs, repeat, total
from hotspan.analysis.critical_path import critical_path
from hotspan.analysis.request_table import RequestColumns
from hotspan.analysis.tail import NO_STAGE
from hotspan.analysis.what_if import HALF, HALVED, PARALLEL, REMOVED, timeline_of
from hotspan.tracer import semconv
from hotspan.tracer.record import NO_ATTRIBUTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hotspan.analysis.alike import Alike
    from hotspan.analysis.collect import Collector
    from hotspan.analysis.critical_path import Segment
    from hotspan.analysis.form_batch import FormBatch
    from hotspan.analysis.tree import Tree
    from hotspan.analysis.what_if import Change
    from hotspan.tracer.record import SpanRecord


def add_batch(collector: Collector, batch: FormBatch) -> None:
    """Add up traces of one form."""
    form, n = batch.form, len(batch)
    times = FormTimes(batch)
    collector.n_traces += n
    collector.beginnings.note_form(form)
    collector.gaps.add_stages(form.calls, n)
    collector.repairs["n_spans"] += n * len(form.spans)
    collector.repairs["n_entries"] += n * (form.spans[0].parent_id is not None)
    for span in form.spans:
        collector.writers.add(span, n)
    _add_roots(collector, batch)
    _add_calls(collector, times)
    rows = _add_requests(collector, times)
    _add_paths(collector, times, rows)
    collector.patterns.add_form(times)


@dataclass(slots=True)
class FormTimes:
    """The times of the traces of one form: a row a trace, a column a span."""

    batch: FormBatch
    durations: Longs = field(init=False)
    own: Longs = field(init=False)  # self times, of spans
    path: Longs = field(init=False)  # time on the critical path, of spans
    # Of the traces in which calls run at once, those that are alike; the others, by row: they themselves, and
    # their critical paths.
    alike: list[Alike] = field(default_factory=list)
    trees: dict[int, Tree] = field(default_factory=dict)
    segments: dict[int, list[Segment]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        batch, form = self.batch, self.batch.form
        self.durations = batch.ends - batch.starts
        self.own = self._alone(form.calls.staged_children)
        same = form.calls.staged_children == form.children
        self.path = self.own.copy() if same else self._alone(form.children)
        self.alike.extend(alike(batch, batch.overlapping))
        left = set(batch.overlapping)
        for traces in self.alike:
            self.path[traces.rows] = traces.path_ns()
            left.difference_update(traces.rows.tolist())
        for row in sorted(left):
            tree = self.trees[row] = form.tree(batch.starts[row].tolist(), batch.ends[row].tolist())
            self.path[row] = 0
            self.segments[row] = critical_path(tree, 0)
            for index, start, end in self.segments[row]:
                self.path[row, index] += end - start

    def _alone(self, children: Sequence[Sequence[int]]) -> Longs:
        """Return each span's duration less the union of its children.

        Where no two children run at once this is the span's time on the critical path, too.
        """
        own = self.durations.copy()
        for index, below in enumerate(children):
            if below:
                own[:, index] -= self.union(below)
        return own

    def union(self, spans: Sequence[int]) -> Longs:
        """Return the time that some spans cover, of each trace; they come in order of start."""
        if len(spans) == 1:
            return self.durations[:, spans[0]]
        starts, ends = self.batch.starts[:, spans], self.batch.ends[:, spans]
        latest = np.maximum.accumulate(ends, axis=1)
        covered = ends[:, 1:] - np.maximum(starts[:, 1:], latest[:, :-1])
        return np.asarray(ends[:, 0] - starts[:, 0] + np.maximum(covered, 0).sum(axis=1))


def _add_roots(collector: Collector, batch: FormBatch) -> None:
    form, n = batch.form, len(batch)
    outcome = form.outcomes[0]
    collector.request_outcomes[outcome] += n
    for root in batch.weighed:
        collector.weights.add(root, outcome)
    if alike := n - len(batch.weighed):
        collector.weights.add(_unweighed(form.spans[0]), outcome, alike)
    collector.n_request_spans += n * len(form.spans)
    collector.n_request_chunks += batch.n_chunks


def _unweighed(root: SpanRecord) -> SpanRecord:
    return root._replace(attributes=NO_ATTRIBUTES, trace_state="")


def _add_calls(collector: Collector, times: FormTimes) -> None:
    form = times.batch.form
    for index, span in enumerate(form.spans):
        totals = collector.totals(str(form.calls.stages[index]))
        totals.self_ns += total(times.own[:, index])
        if form.calls.is_call(index):
            totals.add_calls(
                span.name,
                form.outcomes[index],
                times.batch.starts[:, index],
                times.durations[:, index],
                _worked(times, index),
            )
    for stage in dict.fromkeys(form.calls.stages):
        tops = [i for i, other in enumerate(form.calls.stages) if other == stage and form.calls.is_call(i)]
        if tops:
            totals = collector.totals(str(stage))
            totals.wall_ns += total(times.union(tops))
            repeat(totals.calls_per_request, len(tops), len(times.batch))


def _worked(times: FormTimes, top: int) -> Longs:
    """Return how long one call of each trace worked alone, less the time in which its consumer held it."""
    inside = [i for i, other in enumerate(times.batch.form.calls.tops) if other == top]
    worked = np.asarray(times.own[:, inside].sum(axis=1))
    held = [found for found in map(times.batch.held, inside) if found is not None]
    if not held:
        return worked
    inner = np.maximum.reduce(held)
    outer = times.batch.held(top)
    own = inner if outer is None else outer
    return np.asarray(np.maximum(worked - np.maximum(np.where(own < 0, inner, own), 0), 0))


def _add_requests(collector: Collector, times: FormTimes) -> Longs:
    """Add up the requests and their model calls; return the rows of the requests."""
    batch, form = times.batch, times.batch.form
    durations = times.durations[:, 0]
    collector.request_ns += total(durations)
    if form.outcomes[0] == "ok":
        collector.request_durations_ns.frombytes(durations.tobytes())
    first = collector.rows.extend(
        batch.starts[:, 0],
        durations,
        succeeded=form.outcomes[0] == "ok",
        are_calls=form.calls.stages[0] not in semconv.ENVELOPES,
    )
    rows = np.arange(first, first + len(batch))
    tops = list(form.attempts)
    critical = times.path[:, tops]
    columns = batch.calls
    collector.requests.extend(
        RequestColumns(
            calls=None if columns is None else columns.rows.reshape(len(batch), len(tops)),
            agents=form.agents,
            has_agent=semconv.AGENT in form.calls.stages,
            depth=(critical > 0).sum(axis=1),
            busy_ns=times.durations[:, tops].sum(axis=1),
            wall_ns=times.union(sorted(tops)) if tops else np.zeros(len(batch), dtype=np.int64),
            time_ratio=_time_ratios(times, tops, critical),
        )
    )
    if columns is not None:
        columns.rows["critical_ns"] = critical.ravel()
        collector.add_columns(columns, np.repeat(rows, len(tops)))
    return rows


def _time_ratios(times: FormTimes, tops: Sequence[int], critical: Longs) -> Floats:
    ok = [top for top in tops if times.batch.form.outcomes[top] == "ok"]
    ratios = np.full(len(critical), np.nan)
    if ok:
        ordered = np.sort(times.durations[:, ok], axis=1)
        medians = ordered[:, [(len(ok) - 1) // 2, len(ok) // 2]].mean(axis=1)
        has = medians > 0
        ratios[has] = critical.sum(axis=1)[has] / medians[has]
    return ratios


def _add_paths(collector: Collector, times: FormTimes, rows: Longs) -> None:
    form = times.batch.form
    by_stage: dict[str, list[int]] = {}
    for index, stage in enumerate(form.calls.stages):
        name = NO_STAGE if stage in semconv.ENVELOPES else str(stage)
        by_stage.setdefault(name, []).append(index)
    path = {name: times.path[:, inside].sum(axis=1) for name, inside in by_stage.items()}
    for name, ns in path.items():
        collector.rows.add_paths(name, rows, ns)
        if name == NO_STAGE:
            collector.unattributed_ns += total(ns)
        else:
            collector.totals(name).critical_ns += total(ns)
    if form.outcomes[0] == "ok":
        _add_replays(collector, times, {name: ns for name, ns in path.items() if name != NO_STAGE})


def _add_replays(collector: Collector, times: FormTimes, path: dict[str, Longs]) -> None:
    sequential = np.ones(len(times.batch), dtype=bool)
    sequential[times.batch.overlapping] = False
    if sequential.any():
        collector.replays.add_known(times.durations[sequential, 0], _changed(times, sequential, path))
    for traces in times.alike:
        collector.replays.add_all(traces.timeline())
    for tree in times.trees.values():
        collector.replays.add(timeline_of(tree, times.batch.form.calls, 0))


def _changed(
    times: FormTimes, sequential: np.ndarray[Any, np.dtype[np.bool_]], path: dict[str, Longs]
) -> Iterator[tuple[Change, Floats]]:
    """Yield what can be changed of the requests in which one thing follows the other, and how long they take.

    There, what a stage gives up is what the request gains.
    """
    durations = times.durations[sequential, 0]
    for stage, ns in path.items():
        yield (stage, HALVED), durations - ns[sequential] * HALF
        yield (stage, REMOVED), (durations - ns[sequential]).astype(np.float64)
        gain = _gain_at_once(times, stage)
        if gain is not None:
            yield (stage, PARALLEL), (durations - gain[sequential]).astype(np.float64)


def _gain_at_once(times: FormTimes, stage: str) -> Longs | None:
    """Return what traces gain when a stage's calls in a row start with the first; `None` without a row."""
    form, batch = times.batch.form, times.batch
    if form.calls.stages.count(stage) == 1:
        return None
    gains = np.zeros_like(times.durations)
    is_found = False
    for node in range(len(form.children) - 1, -1, -1):  # children before parents
        own = form.calls.stages[node]
        for kind, siblings in itertools.groupby(form.children[node], form.calls.stages.__getitem__):
            row = list(siblings)
            if kind == stage != own:
                is_found |= len(row) > 1
                longest = (times.durations[:, row] - gains[:, row]).max(axis=1)
                gains[:, node] += batch.ends[:, row[-1]] - batch.starts[:, row[0]] - longest
            else:
                gains[:, node] += gains[:, row].sum(axis=1)
    return np.asarray(gains[:, 0]) if is_found else None
