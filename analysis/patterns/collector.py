"""Adds up the patterns of all requests."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hotspan.analysis.patterns import Patterns
from hotspan.analysis.patterns.asking import asking
from hotspan.analysis.patterns.decode_load import decode_load, token_time
from hotspan.analysis.patterns.growth import prompt_growth
from hotspan.analysis.patterns.overlaps import overlapped_by_all, overlapped_ns
from hotspan.analysis.patterns.path import OnPath
from hotspan.analysis.patterns.refusals import failure_of, refusals_of
from hotspan.analysis.patterns.repeats import RepeatCollector
from hotspan.analysis.patterns.runs import RunCollector
from hotspan.analysis.patterns.stalls import StallCollector
from hotspan.analysis.patterns.strays import strays

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotspan.analysis.call_table import CallTable
    from hotspan.analysis.calls import Calls
    from hotspan.analysis.critical_path import Segment
    from hotspan.analysis.form_sums import FormTimes
    from hotspan.analysis.generation import ModelCall
    from hotspan.analysis.request_table import RequestTable
    from hotspan.analysis.tail import RequestRows
    from hotspan.analysis.tree import Tree


@dataclass(slots=True)
class PatternCollector:
    """Adds up patterns, one request at a time."""

    _runs: RunCollector = field(default_factory=RunCollector)
    _repeats: RepeatCollector = field(default_factory=RepeatCollector)
    _stalls: StallCollector = field(default_factory=StallCollector)
    _refusals: Counter[str] = field(default_factory=Counter)
    _failures: Counter[str] = field(default_factory=Counter)
    _retried: Counter[str] = field(default_factory=Counter)
    _overlapped_ns: int = 0

    def add_call(self, call: ModelCall) -> None:
        """Take in one model call, in a request or not."""
        reasons = list(refusals_of(call))
        self._refusals.update(reasons)
        if failure := failure_of(call):
            self._failures[failure] += 1
        self._retried.update(reasons[: call.n_attempts - 1])  # the last attempt was not tried again

    def add(self, tree: Tree, calls: Calls, below: Sequence[int], segments: Sequence[Segment]) -> None:
        """Take in one request: the root and all below it, and its critical path."""
        path = OnPath(tree, segments)
        self._runs.add(tree, calls, below, path)
        self._repeats.add(tree, calls, below, path)
        self._stalls.add(tree, calls, below)
        self._overlapped_ns += overlapped_ns(tree, calls, below, segments)

    def add_form(self, times: FormTimes) -> None:
        """Take in the requests of one form, in which nothing repeats."""
        batch = times.batch
        self._runs.add_form(times)
        for traces in times.alike:
            self._overlapped_ns += overlapped_by_all(traces)
        for row, tree in times.trees.items():
            below = range(len(batch.form.spans))
            self._overlapped_ns += overlapped_ns(tree, batch.form.calls, below, times.segments[row])
        self._repeats.pass_over(len(batch))
        self._stalls.add_form(batch.form, batch.starts, batch.ends)

    def result(self, calls: CallTable, requests: RequestTable, rows: RequestRows) -> Patterns:
        """Return the patterns.

        Args:
            calls: All model calls.
            requests: Those of each request.
            rows: The requests, in the same order.
        """
        return Patterns(
            runs=self._runs.result(),
            repeats=self._repeats.result(),
            growth=prompt_growth(requests, calls),
            asking=asking(requests, rows),
            token_time=token_time(calls),
            decode_load=decode_load(calls),
            stalls=self._stalls.result(),
            refusals=dict(self._refusals),
            failures=dict(self._failures),
            retried=dict(self._retried),
            strays=strays(rows),
            overlapped_ns=self._overlapped_ns,
        )
