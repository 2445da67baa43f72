"""Sums over many traces of one form at once: what `Collector` adds up trace by trace, in columns.

Every function here is the twin of one that takes a single trace, and gives the same figures exactly;
the tests hold them against each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from hotspan.analysis.columns import Floats, Longs, total, view
from hotspan.analysis.critical_path import critical_path
from hotspan.analysis.tail import UNATTRIBUTED
from hotspan.analysis.twins import STAGES
from hotspan.analysis.what_if import HALF, timeline_of
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotspan.analysis.collect import Collector
    from hotspan.analysis.critical_path import Segment
    from hotspan.analysis.forms import Form, Matched

BATCH: Final = 4_096  # traces that wait to be summed


def add_matched(collector: Collector, matched: Matched) -> None:
    """Take a trace into its form, and its model calls into their table."""
    form, spans = matched.form, matched.spans
    row = len(collector.requests)
    form.rows.append(row)
    form.starts.extend(matched.starts)
    form.ends.extend(matched.ends)
    if not matched.is_sequential:
        form.overlapping[form.n_traces - 1] = form.tree(spans[0].trace_id, spans)
    duration_ns = matched.ends[0] - matched.starts[0]
    collector.rows.begin(matched.starts[0], duration_ns, succeeded=form.outcomes[0] == "ok")
    calls = form.model_calls(spans)
    collector.requests.add_counts(form.request_calls(calls))
    collector.requests.add_no_times()
    collector.add_root(spans[0], spans)
    for index, stage in enumerate(form.calls.stages):
        if stage in STAGES:
            collector.twins.pass_by(stage, spans[index])
    for call in calls:
        form.call_rows.append(len(collector.calls))
        collector.add_call(call, row)


def sum_form(collector: Collector, form: Form) -> None:
    """Add up the traces of one form, and let go of them."""
    n, n_spans = form.n_traces, len(form.spans)
    if not n:
        return
    times = _Times(
        form,
        np.array(form.starts, dtype=np.int64).reshape(n, n_spans),
        np.array(form.ends, dtype=np.int64).reshape(n, n_spans),
    )
    collector.n_traces += n
    collector.gaps.add_stages(form.calls, n)
    collector.repairs["n_spans"] += n * n_spans
    collector.repairs["n_entries"] += n * (form.spans[0].parent_id is not None)
    for span in form.spans:
        collector.writers.add(span, n)
    _add_calls(collector, times)
    _add_requests(collector, times)
    _add_paths(collector, times)
    collector.patterns.add_form(form, times.starts, times.ends, times.segments)
    form.let_go()


@dataclass(slots=True)
class _Times:
    """The times of the traces of one form: a row a trace, a column a span."""

    form: Form
    starts: Longs
    ends: Longs
    durations: Longs = field(init=False)
    own: Longs = field(init=False)  # self times, of spans
    path: Longs = field(init=False)  # time on the critical path, of spans
    # Critical paths of the traces in which calls run at once, by row.
    segments: dict[int, list[Segment]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        calls = self.form.calls
        self.durations = self.ends - self.starts
        self.own = self._alone(calls.staged_children)
        self.path = (
            self.own if calls.staged_children == self.form.children else self._alone(self.form.children)
        )
        if self.form.overlapping:
            self.path = self.path.copy()
        for number, tree in self.form.overlapping.items():
            self.path[number] = 0
            self.segments[number] = critical_path(tree, 0)
            for index, start, end in self.segments[number]:
                self.path[number, index] += end - start

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
        starts, ends = self.starts[:, spans], self.ends[:, spans]
        latest = np.maximum.accumulate(ends, axis=1)
        covered = ends[:, 1:] - np.maximum(starts[:, 1:], latest[:, :-1])
        return np.asarray(ends[:, 0] - starts[:, 0] + np.maximum(covered, 0).sum(axis=1))


def _add_calls(collector: Collector, times: _Times) -> None:
    form = times.form
    for index, span in enumerate(form.spans):
        totals = collector.totals(str(form.calls.stages[index]))
        totals.self_ns += total(times.own[:, index])
        if form.calls.is_call(index):
            inside = [i for i, top in enumerate(form.calls.tops) if top == index]
            totals.add_calls(
                span.name,
                form.outcomes[index],
                times.starts[:, index],
                times.durations[:, index],
                times.own[:, inside].sum(axis=1),
            )
    for stage in dict.fromkeys(form.calls.stages):
        tops = [i for i, other in enumerate(form.calls.stages) if other == stage and form.calls.is_call(i)]
        if tops:
            totals = collector.totals(str(stage))
            totals.wall_ns += total(times.union(tops))
            totals.calls_per_request.extend([len(tops)] * form.n_traces)


def _add_requests(collector: Collector, times: _Times) -> None:
    form, requests = times.form, collector.requests
    rows = view(form.rows)
    durations = times.durations[:, 0]
    collector.request_ns += total(durations)
    if form.outcomes[0] == "ok":
        collector.request_durations_ns.frombytes(durations.tobytes())
    tops = list(form.attempts)
    if tops:
        # By position in the row, as `model_calls` hands them out: each on the path, and for how long.
        critical = times.path[:, tops]
        calls = collector.calls.rows()
        calls["critical_ns"][view(form.call_rows)] = critical.ravel()
        view(requests.depth)[rows] = (critical > 0).sum(axis=1)
        view(requests.busy_ns)[rows] = times.durations[:, tops].sum(axis=1)
        view(requests.wall_ns)[rows] = times.union(sorted(tops))
        view(requests.time_ratio)[rows] = _time_ratios(times, tops, critical)


def _time_ratios(times: _Times, tops: Sequence[int], critical: Longs) -> Floats:
    ok = [top for top in tops if times.form.outcomes[top] == "ok"]
    ratios = np.full(len(critical), np.nan)
    if ok:
        medians = np.median(times.durations[:, ok], axis=1)
        has = medians > 0
        ratios[has] = critical.sum(axis=1)[has] / medians[has]
    return ratios


def _add_paths(collector: Collector, times: _Times) -> None:
    form, rows = times.form, np.array(times.form.rows, dtype=np.int64)
    by_stage: dict[str, list[int]] = {}
    for index, stage in enumerate(form.calls.stages):
        name = UNATTRIBUTED if stage in semconv.ENVELOPES else str(stage)
        by_stage.setdefault(name, []).append(index)
    path = {name: times.path[:, inside].sum(axis=1) for name, inside in by_stage.items()}
    for name, ns in path.items():
        collector.rows.add_paths(name, rows, ns)
        if name == UNATTRIBUTED:
            collector.unattributed_ns += total(ns)
        else:
            collector.totals(name).critical_ns += total(ns)
    if form.outcomes[0] == "ok":
        _add_halvings(collector, times, {name: ns for name, ns in path.items() if name != UNATTRIBUTED})


def _add_halvings(collector: Collector, times: _Times, path: dict[str, Longs]) -> None:
    form, halvings = times.form, collector.halvings
    sequential = np.ones(form.n_traces, dtype=bool)
    sequential[list(form.overlapping)] = False
    durations = times.durations[sequential, 0]
    first = len(halvings.durations_ns)
    halvings.durations_ns.frombytes(durations.tobytes())
    rows = np.arange(first, first + len(durations))
    for stage, ns in path.items():
        # Where one thing follows the other, what a stage gives up is what the request gains.
        where, halved = halvings.columns(stage)
        where.frombytes(rows.tobytes())
        halved.frombytes((durations - ns[sequential] * HALF).tobytes())
    for tree in form.overlapping.values():
        halvings.add(timeline_of(tree, form.calls, 0))
