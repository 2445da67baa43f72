"""Adds up traces, one at a time: what a report is made of."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np

from hotspan.analysis import form_sums
from hotspan.analysis.call_table import NO_REQUEST, NONE, CallTable, or_none
from hotspan.analysis.calls import NO_OWNER, Calls, as_selected, attempts_of, calls_of, nearest
from hotspan.analysis.classify import Outcome, outcome_of
from hotspan.analysis.columns import longs, total
from hotspan.analysis.critical_path import Segment, critical_path
from hotspan.analysis.drafts import drafts_of
from hotspan.analysis.engine import EngineJoin, account_in_response
from hotspan.analysis.form_batch import batches_of
from hotspan.analysis.forms import BATCH, Forms
from hotspan.analysis.gaps import Gaps
from hotspan.analysis.generation import ModelCall
from hotspan.analysis.patterns.collector import PatternCollector
from hotspan.analysis.repair import Repairs, repair
from hotspan.analysis.request_table import RequestCalls, RequestTable
from hotspan.analysis.requests import RequestWeights
from hotspan.analysis.self_time import self_times, union_ns
from hotspan.analysis.tail import NO_STAGE, RequestRows
from hotspan.analysis.tree import NO_PARENT, Tree
from hotspan.analysis.twins import Laid, TwinFilter
from hotspan.analysis.unstaged import Beginnings
from hotspan.analysis.what_if import Replays, timeline_of
from hotspan.analysis.writers import Writers
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from array import array
    from collections.abc import Mapping, Sequence

    from hotspan.analysis.call_columns import CallColumns
    from hotspan.analysis.columns import Longs
    from hotspan.analysis.form_batch import FormBatch
    from hotspan.analysis.forms import Matched
    from hotspan.tracer.record import Attributes, SpanRecord, Trace

_CANCELLED: frozenset[Outcome] = frozenset({"cancelled", "abandoned", "interrupted"})


@dataclass(slots=True)
class SelfTimes:
    """The self times of the calls of one span name, less their consumers' holds; the first to start apart."""

    first: tuple[int, int] | None = None  # start and self time, ns
    later_ns: array[int] = field(default_factory=longs)

    def add_all(self, starts_ns: Longs, self_ns: Longs) -> None:
        """Take in some calls at once."""
        earliest = np.flatnonzero(starts_ns == starts_ns.min())
        first = int(earliest[self_ns[earliest].argmin()])
        self.later_ns.frombytes(self_ns[:first].tobytes())
        self.later_ns.frombytes(self_ns[first + 1 :].tobytes())
        self.add(int(starts_ns[first]), int(self_ns[first]))

    def add(self, start_ns: int, self_ns: int) -> None:
        """Take in one call; they come in any order."""
        found = start_ns, self_ns
        if self.first is None:
            self.first = found
            return
        self.first, later = min(self.first, found), max(self.first, found)
        self.later_ns.append(later[1])


@dataclass(slots=True)
class StageTotals:
    """One stage, summed over what was read so far."""

    durations_ns: array[int] = field(default_factory=longs)  # of the calls that succeeded
    n_calls: int = 0
    n_errors: int = 0
    n_cancelled: int = 0
    busy_ns: int = 0
    wall_ns: int = 0
    self_ns: int = 0
    critical_ns: int = 0
    calls_per_request: array[int] = field(default_factory=longs)  # of requests with at least one
    self_times_of: dict[str, SelfTimes] = field(default_factory=dict)  # span name -> its successful calls

    @property
    def is_in_requests(self) -> bool:
        """Whether any call lies in a complete request: without one nothing of a request is known."""
        return bool(self.calls_per_request)

    def add_call(self, span: SpanRecord, self_ns: int) -> None:
        """Count one call, as it was measured, and its self time less its consumer's hold."""
        outcome = outcome_of(span)
        self._count(outcome, 1)
        self.busy_ns += span.duration_ns
        if outcome == "ok":
            self.durations_ns.append(span.duration_ns)
            self.self_times_of.setdefault(span.name, SelfTimes()).add(span.start_ns, self_ns)

    def add_calls(
        self, name: str, outcome: Outcome, starts_ns: Longs, durations_ns: Longs, self_ns: Longs
    ) -> None:
        """Count calls of one name and outcome, each as `add_call` does."""
        self._count(outcome, len(starts_ns))
        self.busy_ns += total(durations_ns)
        if outcome == "ok":
            self.durations_ns.frombytes(durations_ns.tobytes())
            self.self_times_of.setdefault(name, SelfTimes()).add_all(starts_ns, self_ns)

    def _count(self, outcome: Outcome, n_calls: int) -> None:
        self.n_calls += n_calls
        if outcome in _CANCELLED:
            self.n_cancelled += n_calls
        elif outcome != "ok":
            self.n_errors += n_calls


@dataclass(slots=True)
class Collector:
    """Everything that a report needs, added up over traces."""

    stages: dict[str, StageTotals] = field(default_factory=dict)
    request_outcomes: Counter[Outcome] = field(default_factory=Counter)
    weights: RequestWeights = field(default_factory=RequestWeights)
    request_durations_ns: array[int] = field(default_factory=longs)  # of those that succeeded
    request_ns: int = 0  # duration of all requests together, however they ended
    n_request_spans: int = 0
    n_request_chunks: int = 0  # items of traced streams, and chunks of model calls
    unattributed_ns: int = 0
    calls: CallTable = field(default_factory=CallTable)
    requests: RequestTable = field(default_factory=RequestTable)
    replays: Replays = field(default_factory=Replays)
    rows: RequestRows = field(default_factory=RequestRows)
    patterns: PatternCollector = field(default_factory=PatternCollector)
    repairs: Counter[str] = field(default_factory=Counter)
    writers: Writers = field(default_factory=Writers)
    n_traces: int = 0
    n_partial_traces: int = 0
    n_unstaged_traces: int = 0
    beginnings: Beginnings = field(default_factory=Beginnings)
    gaps: Gaps = field(default_factory=Gaps)
    twins: TwinFilter = field(default_factory=TwinFilter)
    engines: EngineJoin = field(default_factory=EngineJoin)
    warnings: list[str] = field(default_factory=list)
    forms: Forms | None = field(default_factory=Forms)  # None: every trace goes the long way
    _waiting: list[Matched] = field(default_factory=list)  # traces with a form that are not yet summed
    _untold: list[Laid] = field(default_factory=list)  # without a stage: requests, if others begin as they do

    @property
    def n_requests(self) -> int:
        """Complete requests."""
        return self.request_outcomes.total()

    def add(self, trace: Trace) -> None:
        """Take in one trace; it may wait for others: of its form, or with its model call in them too."""
        if (
            self.forms is not None
            and not self.twins.has_others
            and (matched := self.forms.match(drafts_of(trace)))
        ):
            self._waiting.append(matched)
            if len(self._waiting) >= BATCH:
                self._sum_forms()
            return
        tree, repairs = repair(trace)
        laid = Laid(tree, repairs, calls_of(tree))
        # What an inference server wrote tells of calls elsewhere.
        if not laid.calls.has_any_stage(tree) and not tree.engine_spans:
            self._take_unstaged(laid)
            return
        self.beginnings.note(tree, laid.calls)
        for ready in self.twins.put(laid, self._sum_forms):
            self._add(ready)

    def sum_up(self) -> None:
        """Take in what waits for others; call it after the last trace."""
        for laid in self.twins.rest():
            self._add(laid)
        self._sum_forms()

    def finish(self) -> None:
        """Take in all that still waits; call it when it is known how all requests of the run begin."""
        self.sum_up()
        for laid in self._untold:
            self._add(self.beginnings.applied(laid))
        self._untold.clear()

    def _take_unstaged(self, laid: Laid) -> None:
        if self.beginnings.has_to_wait(laid.tree):
            self._untold.append(laid)
        else:
            self._add(self.beginnings.applied(laid))

    def _sum_forms(self) -> None:
        self.add_batches(batches_of(self._waiting))
        self._waiting.clear()

    def add_batches(self, batches: Sequence[FormBatch]) -> None:
        """Take in traces that have a form, and were read together."""
        for batch in batches:
            form_sums.add_batch(self, batch)
        self.twins.pass_by([(batch.form, own) for batch in batches for own in batch.own_calls])

    def _add(self, laid: Laid) -> None:
        tree, repairs, calls = laid
        calls = as_selected(tree, calls)
        self.n_traces += 1
        self.gaps.add(tree, calls)
        self._note_repairs(repairs)
        for span in (*tree.spans, *(engine.span for engine in tree.engine_spans)):
            self.writers.add(span)
        roots = [root for root in tree.roots if calls.is_request(root)]
        self.n_partial_traces += bool(tree.partial_roots)
        self.n_unstaged_traces += not calls.has_any_stage(tree)
        model_calls = self._model_calls(tree, calls)
        own_ns = self_times(tree, calls.staged_children)
        worked_ns = _worked(tree, calls, own_ns)
        for index, span in enumerate(tree.spans):
            stage = calls.stages[index]
            if stage is not None and calls.is_call(index) and _counts(tree, calls, index):
                self.totals(stage).add_call(span, worked_ns[index])
        request_of: dict[int, int] = {}
        for root in roots:
            request_of.update(self._add_request(tree, calls, root, own_ns, model_calls))
        for top, call in model_calls.items():
            self.add_call(call, request_of.get(top, NO_REQUEST))

    def add_root(self, root: SpanRecord, spans: Sequence[SpanRecord]) -> Outcome:
        """Count one request of these spans, and return how it ended."""
        outcome = outcome_of(root)
        self.request_outcomes[outcome] += 1
        self.weights.add(root, outcome)
        self.n_request_spans += len(spans)
        self.n_request_chunks += sum([_n_chunks(span.attributes) for span in spans])
        return outcome

    def add_call(self, call: ModelCall, request: int) -> None:
        """Take in one model call, when everything is known of it that its own trace says."""
        self.engines.add_row(len(self.calls), call)
        if call.engine is None or call.engine.is_empty:
            spans = [call.span] if call.is_one_span else [call.last, call.span]
            call.engine = account_in_response(spans) or call.engine
        self.patterns.add_call(call)
        self.calls.add(call, request)

    def add_columns(self, columns: CallColumns, requests: Longs) -> None:
        """Take in many model calls, as `add_call` does one by one.

        Args:
            columns: The calls.
            requests: The row of each one's request.
        """
        first = self.calls.extend(columns, requests)
        for key, said in columns.names.items():
            self.engines.add_names(first, key, said)
        for position, account in columns.accounts:
            self.calls.join(first + position, account)
        for call in columns.refusals:
            self.patterns.add_call(call)

    def _note_repairs(self, repairs: Repairs) -> None:
        for entry in fields(repairs):
            value = getattr(repairs, entry.name)
            if isinstance(value, int):
                self.repairs[entry.name] += value
        self.warnings.extend(repairs.warnings)

    def totals(self, stage: str) -> StageTotals:
        """Return the sums of one stage."""
        totals = self.stages.get(stage)
        if totals is None:
            totals = self.stages[stage] = StageTotals()
        return totals

    def _model_calls(self, tree: Tree, calls: Calls) -> dict[int, ModelCall]:
        attempts = attempts_of(tree, calls)
        found = {
            top: ModelCall(tree.spans[top], [tree.spans[index] for index in inner])
            for top, inner in attempts.items()
        }
        self.engines.add(tree, calls, attempts, found)
        return found

    def _add_request(
        self,
        tree: Tree,
        calls: Calls,
        root: int,
        own_ns: Sequence[int],
        model_calls: dict[int, ModelCall],
    ) -> dict[int, int]:
        """Take in one request; return the row of it for each of its model calls."""
        below = tree.below(root)
        outcome = self.add_root(tree.spans[root], [tree.spans[index] for index in below])
        self.request_ns += tree.duration_ns(root)
        if outcome == "ok":
            self.request_durations_ns.append(tree.duration_ns(root))
            self.replays.add(timeline_of(tree, calls, root))
        segments = critical_path(tree, root)
        path_ns = self._add_path(calls, segments, model_calls)
        self.rows.add(
            tree.starts[root],
            tree.duration_ns(root),
            path_ns,
            succeeded=outcome == "ok",
            is_call=calls.stages[root] not in semconv.ENVELOPES,
        )
        self.patterns.add(tree, calls, below, segments)
        self._add_stages(tree, calls, below, own_ns)
        row = len(self.requests)
        self.requests.add(_request_calls(tree, calls, below, model_calls))
        return {top: row for top in below if top in model_calls}

    def _add_path(
        self, calls: Calls, segments: Sequence[Segment], model_calls: dict[int, ModelCall]
    ) -> dict[str, int]:
        """Add up a request's critical path; return its time by stage."""
        path_ns: dict[str, int] = {}
        for index, start_ns, end_ns in segments:
            owner = calls.owners[index]
            stage = calls.stages[owner]
            name = NO_STAGE if stage is None or stage in semconv.ENVELOPES else stage
            path_ns[name] = path_ns.get(name, 0) + end_ns - start_ns
            if call := model_calls.get(calls.call_of(owner)) if stage == semconv.GENERATION else None:
                call.critical_ns += end_ns - start_ns
        for name, ns in path_ns.items():
            if name == NO_STAGE:
                self.unattributed_ns += ns
            else:
                self.totals(name).critical_ns += ns
        return path_ns

    def _add_stages(self, tree: Tree, calls: Calls, below: Sequence[int], own_ns: Sequence[int]) -> None:
        intervals: dict[str, list[tuple[int, int]]] = {}
        for index in below:
            stage = calls.stages[index]
            if stage is None or calls.tops[index] == NO_OWNER:
                continue
            self.totals(stage).self_ns += own_ns[index]
            if calls.is_call(index):
                intervals.setdefault(stage, []).append((tree.starts[index], tree.ends[index]))
        for stage, covered in intervals.items():
            totals = self.totals(stage)
            totals.wall_ns += union_ns(covered)
            totals.calls_per_request.append(len(covered))


def _n_chunks(attributes: Attributes) -> int:
    found = attributes.get(semconv.STREAM_ITEMS) or attributes.get(semconv.CHUNKS)
    return found if isinstance(found, int) else 0


def _worked(tree: Tree, calls: Calls, own_ns: Sequence[int]) -> Mapping[int, int]:
    """Return how long each call worked alone: less the time in which its consumer held its stream.

    A call may be several spans, framework and SDK: the outermost knows what is the consumer's.
    """
    worked_ns: Counter[int] = Counter()
    inner_ns: dict[int, int] = {}
    for index, top in enumerate(calls.tops):
        worked_ns[top] += own_ns[index]
        if semconv.STREAM_HOLD_NS in tree.spans[index].attributes:
            held = or_none(tree.spans[index].attributes[semconv.STREAM_HOLD_NS])
            inner_ns[top] = max(inner_ns.get(top, NONE), held)
    for top, inner in inner_ns.items():
        own = or_none(tree.spans[top].attributes.get(semconv.STREAM_HOLD_NS))
        worked_ns[top] = max(worked_ns[top] - max(inner if own == NONE else own, 0), 0)
    return worked_ns


def _counts(tree: Tree, calls: Calls, index: int) -> bool:
    """Return whether a call is to be counted: the root of a trace without any stage is not a request."""
    return tree.parents[index] != NO_PARENT or calls.has_stages[index]


def _request_calls(
    tree: Tree, calls: Calls, below: Sequence[int], model_calls: dict[int, ModelCall]
) -> RequestCalls:
    tops = sorted((index for index in below if index in model_calls), key=lambda i: tree.spans[i].start_ns)
    return RequestCalls(
        calls=[model_calls[index] for index in tops],
        agents=[nearest(tree, calls, index, semconv.AGENT) for index in tops],
        intervals=[(tree.starts[index], tree.ends[index]) for index in tops],
        has_agent=any(calls.stages[index] == semconv.AGENT for index in below),
    )
