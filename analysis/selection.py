"""A part of a run: the requests, or the calls in them, that fulfil conditions.

A request is kept whole when it fulfils the conditions on requests and has a call that fulfils those on calls.
Calls of it that do not are kept too, marked as `not selected`: what they took is part of the request, and
what they are tells what the others are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from hotspan.analysis.calls import NO_OWNER, NOT_SELECTED, Calls, calls_of, nearest
from hotspan.analysis.copies import originals
from hotspan.analysis.frame import Stages
from hotspan.analysis.misses import Misses
from hotspan.analysis.parts import Selection
from hotspan.analysis.repair import repair
from hotspan.analysis.tree import NO_PARENT, Tree
from hotspan.analysis.twins import Laid
from hotspan.analysis.unstaged import Beginnings
from hotspan.tracer import semconv
from hotspan.tracer.record import SpanRecord, Trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hotspan.analysis.model import Report
    from hotspan.analysis.where import Condition, Where

_ID_DIGITS: Final = 16


class Selected(Iterator[Trace]):
    """The traces that are left of others; iterate it once.

    `selection` says afterwards how much was kept, `evidence` is that of the reader.
    """

    def __init__(self, traces: Iterable[Trace], where: Where) -> None:
        self.evidence: Any = getattr(traces, "evidence", None)
        self._where = where
        self._n_read = self._n_kept = 0
        self._stages: dict[str, None] = {}
        self._misses = Misses(where.conditions)
        self._beginnings = Beginnings()
        self._untold: list[tuple[Trace, Laid]] = []  # without a stage: requests, if others begin as they do
        self._traces = self._select(traces)

    def __next__(self) -> Trace:
        return next(self._traces)

    @property
    def selection(self) -> Selection:
        """What was kept so far."""
        return Selection(self._where.text, self._n_read, self._n_kept, has_calls=bool(self._where.of_calls))

    def why_nothing(self) -> list[str]:
        """Return, where no request was kept, what there is instead of what was asked for: sentences."""
        return [] if self._n_kept else self._misses.reasons()

    def applied(self, report: Report) -> Report:
        """Return a report on the kept traces as one on the selected calls.

        Without findings where calls were selected: rules need whole requests.
        """
        if not self._where.of_calls:
            return replace(report, selection=self.selection)
        other = next((row for row in report.stages if row.stage == NOT_SELECTED), None)
        ns, ratio = (0, 0.0) if report.request.n else (None, None)
        if other is not None and other.critical_path_ns is not None:
            ns, ratio = other.critical_path_ns, other.critical_path_ratio
        return replace(
            report,
            selection=replace(self.selection, other_ns=ns, other_ratio=ratio),
            stages=Stages(row for row in report.stages if row.stage in self._stages),
            what_if=tuple(item for item in report.what_if if not item.change.startswith(NOT_SELECTED)),
            findings=(),
        )

    def _select(self, traces: Iterable[Trace]) -> Iterator[Trace]:
        for trace in traces:
            kept = self._kept(trace)
            if kept is not None:
                yield kept
        for trace, laid in self._untold:
            kept = self._kept_unstaged(trace, self._beginnings.applied(laid))
            if kept is not None:
                yield kept

    def _kept(self, trace: Trace) -> Trace | None:
        tree, repairs = repair(trace)
        laid = Laid(tree, repairs, calls_of(tree))
        if laid.calls.has_any_stage(tree):
            self._beginnings.note(tree, laid.calls)
            return self._left(trace, tree, laid.calls)
        if tree.engine_spans:
            return trace  # an engine's account of a call in another trace
        if self._beginnings.has_to_wait(tree):
            self._untold.append((trace, laid))
            return None
        return self._kept_unstaged(trace, self._beginnings.applied(laid))

    def _kept_unstaged(self, trace: Trace, laid: Laid) -> Trace | None:
        """Return what is left of a trace without a stage, which from then on says that it is a request."""
        tree, calls = laid.tree, laid.calls
        left = self._left(trace, tree, calls) if calls.has_any_stage(tree) else None
        if left is None:
            return None
        roots = {_key(tree.spans[root]) for root in tree.roots if calls.has_stages[root]}
        return Trace(left.trace_id, [_named(span) if _key(span) in roots else span for span in left.spans])

    def _left(self, trace: Trace, tree: Tree, calls: Calls) -> Trace | None:
        spans_of = _spans_of_calls(tree, calls)
        dropped: set[int] = set()
        unselected: set[int] = set()
        for root in (*tree.roots, *tree.partial_roots):
            below = tree.below(root)
            selected = self._selected(tree, calls, root, spans_of)
            self._n_read += calls.is_request(root) and root in tree.roots
            if not (selected or self._n_kept):
                self._note(tree, calls, root, spans_of)
            if not selected:
                dropped.update(below)
                continue
            self._n_kept += calls.is_request(root) and root in tree.roots
            self._stages.update(dict.fromkeys(str(calls.stages[top]) for top in selected))
            whole = {NO_OWNER, *selected}
            unselected.update(index for index in below if calls.tops[index] not in whole)
        if len(dropped) == len(tree.spans):
            return None
        return _changed(trace, tree, calls, dropped, unselected)

    def _selected(
        self, tree: Tree, calls: Calls, root: int, spans_of: dict[int, list[SpanRecord]]
    ) -> frozenset[int]:
        """Return the calls of one request that fulfil the conditions; none where the request does not."""
        whole = self._where.of_requests
        if whole and (root in tree.partial_roots or not _fulfils(whole, calls, root, spans_of)):
            return frozenset()
        tops = (index for index in tree.below(root) if calls.is_call(index))
        return frozenset(top for top in tops if _fulfils(self._where.of_calls, calls, top, spans_of))

    def _note(self, tree: Tree, calls: Calls, root: int, spans_of: dict[int, list[SpanRecord]]) -> None:
        """Take in what is there instead of what was asked for."""
        if root in tree.roots:
            self._misses.note(calls.stages[root], spans_of[root], of_request=True)
        if not self._misses.wants_calls:
            return
        for top in filter(calls.is_call, tree.below(root)):
            self._misses.note(calls.stages[top], spans_of[top], of_request=False)


def _fulfils(
    conditions: Sequence[Condition], calls: Calls, top: int, spans_of: dict[int, list[SpanRecord]]
) -> bool:
    return all(condition.holds(calls.stages[top], spans_of[top]) for condition in conditions)


def _spans_of_calls(tree: Tree, calls: Calls) -> dict[int, list[SpanRecord]]:
    """Return the spans of every call, by its outermost one, that first; a root is always among them."""
    found: dict[int, list[SpanRecord]] = {root: [] for root in (*tree.roots, *tree.partial_roots)}
    for index, top in enumerate(calls.tops):
        if top != NO_OWNER:
            found.setdefault(top, []).append(tree.spans[index])
    for root in (*tree.roots, *tree.partial_roots):
        found[root] = found[root] or [tree.spans[root]]
    return found


def _changed(trace: Trace, tree: Tree, calls: Calls, dropped: set[int], unselected: set[int]) -> Trace:
    """Return the trace without the dropped spans, and with a mark on the unselected ones."""
    gone = {_key(tree.spans[index]) for index in dropped}
    other = {_key(tree.spans[index]) for index in unselected}
    for engine in tree.engine_spans:
        if engine.anchor != NO_PARENT:
            owner = nearest(tree, calls, engine.anchor, semconv.GENERATION)
            if owner in unselected or engine.anchor in dropped:
                gone.update(map(_key, (engine.span, *engine.below)))
    if not gone and not other:
        return trace
    kept = originals(trace.spans)
    spans = ((span, _key(one)) for span, one in zip(trace.spans, kept, strict=True))
    return Trace(
        trace.trace_id, [_marked(span) if key in other else span for span, key in spans if key not in gone]
    )


def _key(span: SpanRecord) -> tuple[str, int]:
    """Return what a span is known by before and after the repair, which numbers spans that share an id."""
    return span.span_id.partition("#")[0].lower().zfill(_ID_DIGITS), span.start_ns


def _marked(span: SpanRecord) -> SpanRecord:
    return span._replace(attributes={**span.attributes, semconv.NOT_SELECTED: True})


def _named(span: SpanRecord) -> SpanRecord:
    return span._replace(attributes={**span.attributes, semconv.STAGE: semconv.REQUEST})


def select(traces: Iterable[Trace], where: Where) -> Selected:
    """Return the requests of `traces` that fulfil conditions, for `analyse`.

    Args:
        traces: From `load`, or any other iterable; read once.
        where: From `parse_where`.
    """
    return Selected(traces, where)
