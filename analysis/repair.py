"""One explicit pass before any arithmetic: `Trace` -> (`Tree`, `Repairs`).

Links ids, drops copies, cuts loops, sets aside what cannot be measured, clips children to their parents, and
returns what it changed, so that a report can say it.
Rules: docs/definitions.md#repair-before-any-arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hotspan.analysis.classify import is_engine_span, is_entry_span
from hotspan.analysis.columns import MAX
from hotspan.analysis.copies import distinct
from hotspan.analysis.dialects import read, translate, waits_for_the_end
from hotspan.analysis.tree import INVALID, MISSING, NO_PARENT, UNFINISHED, EngineSpan, Tree
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotspan.tracer.record import SpanRecord, Trace

_SPAN_DIGITS = 16
_TRACE_DIGITS = 32
_REAL_TIME_NS = 10**17  # in 1973: beyond it a time is one, below it a test's


@dataclass(frozen=True, slots=True)
class Repairs:
    """What was changed or set aside in one trace."""

    n_spans: int = 0  # after copies were dropped
    n_duplicates: int = 0
    n_same_id: int = 0
    n_orphans: int = 0
    n_entries: int = 0  # requests that begin below another library's span, which is not in the files
    n_late: int = 0
    n_early: int = 0  # start before their parent does: clocks of two processes, or a wrong parent
    n_invalid: int = 0
    n_unfinished: int = 0
    n_cycles: int = 0
    # 1 where parts of a request are here, and so is its root, but without an end, or with an impossible time.
    n_unfinished_roots: int = 0
    n_invalid_roots: int = 0
    warnings: tuple[str, ...] = ()


def repair(trace: Trace) -> tuple[Tree, Repairs]:
    """Return the trace as a tree in which every figure can be computed, and what that took.

    Args:
        trace: Spans of one trace in any order; not changed.
    """
    spans, n_same_id = _unique_ids(list(translate(distinct(trace.spans))))
    parents, n_entries, orphaned = _linked(spans)
    n_orphans = sum(orphaned)
    n_cycles, cycle_warnings = _cut_cycles(trace.trace_id, spans, parents, orphaned)
    valid = [is_valid(span) for span in spans]
    _end_with_streams(spans, parents, valid)
    engine_root = [usable and is_engine_span(span) for span, usable in zip(spans, valid, strict=True)]
    builder = _Builder(spans, parents, valid, engine_root, orphaned)
    tree = builder.build(trace.trace_id.lower().zfill(_TRACE_DIGITS))
    n_unfinished = sum(span.end_ns is None for span in spans)
    return tree, Repairs(
        n_spans=len(spans),
        n_duplicates=len(trace.spans) - len(spans),
        n_same_id=n_same_id,
        n_orphans=n_orphans,
        n_entries=n_entries,
        n_late=builder.n_late,
        n_early=builder.n_early,
        n_invalid=len(spans) - sum(valid) - n_unfinished,
        n_unfinished=n_unfinished,
        n_cycles=n_cycles,
        n_unfinished_roots=_worst_fault(tree) == UNFINISHED,
        n_invalid_roots=_worst_fault(tree) == INVALID,
        warnings=tuple(cycle_warnings),
    )


def _worst_fault(tree: Tree) -> str | None:
    found = tree.partial_roots.values()
    return next((fault for fault in (MISSING, UNFINISHED, INVALID) if fault in found), None)


def _unique_ids(spans: list[SpanRecord]) -> tuple[list[SpanRecord], int]:
    """Number the ids of different spans that share one; children stay with the first that can be measured."""
    by_id: dict[str, list[int]] = {}
    for index, span in enumerate(spans):
        by_id.setdefault(span.span_id, []).append(index)
    n_same_id = 0
    for span_id, indices in by_id.items():
        if len(indices) > 1:
            n_same_id += len(indices)
            indices.sort(key=lambda index: (not is_valid(spans[index]), spans[index].start_ns))
            for number, index in enumerate(indices[1:], start=2):
                spans[index] = spans[index]._replace(span_id=f"{span_id}#{number}")
    return spans, n_same_id


def _linked(spans: Sequence[SpanRecord]) -> tuple[list[int], int, list[bool]]:
    """Return each span's parent index, how many requests enter here, and which spans lack their parent."""
    index_of = {span.span_id: index for index, span in enumerate(spans)}
    parents = [index_of.get(span.parent_id, NO_PARENT) if span.parent_id else NO_PARENT for span in spans]
    n_entries, orphaned = 0, [False] * len(spans)
    for index, span in enumerate(spans):
        if parents[index] == NO_PARENT and span.parent_id is not None:
            # What lies between two stages, and is not here, is the time of the outer one.
            outer = str(span.attributes.get(semconv.OUTER_STAGE)).lower().zfill(_SPAN_DIGITS)
            parents[index] = index_of.get(outer, NO_PARENT)
        if parents[index] == NO_PARENT and span.parent_id is not None:
            is_entry = is_entry_span(span) and is_valid(span)
            n_entries += is_entry
            orphaned[index] = not is_entry
    return parents, n_entries, orphaned


def _cut_cycles(
    trace_id: str, spans: Sequence[SpanRecord], parents: list[int], orphaned: list[bool]
) -> tuple[int, list[str]]:
    """Cut every loop of parents, in place, at its span that starts last (of equal ones, the larger id).

    A span that names itself is a root.  What is cut out of a longer loop is a part of some request, whose
    true root nobody can tell.
    """
    warnings = []
    settled = [False] * len(spans)
    for first in range(len(spans)):
        path, on_path = [], set()
        index = first
        while index != NO_PARENT and not settled[index] and index not in on_path:
            path.append(index)
            on_path.add(index)
            index = parents[index]
        if index in on_path:
            loop = path[path.index(index) :]
            cut = max(loop, key=lambda i: (spans[i].start_ns, spans[i].span_id))
            who = f"trace {trace_id}: span {spans[cut].span_id} ({spans[cut].name!r})"
            above = f"and its parent {spans[parents[cut]].span_id} form a loop of {len(loop)}"
            warnings.append(
                f"{who} {above}; it was cut between the two"
                if len(loop) > 1
                else f"{who} is its own parent, a loop of 1; it was taken for a root"
            )
            parents[cut] = NO_PARENT
            orphaned[cut] = len(loop) > 1
        for index in path:
            settled[index] = True
    return len(warnings), warnings


def _end_with_streams(spans: list[SpanRecord], parents: Sequence[int], valid: Sequence[bool]) -> None:
    """Let a span that ended when it returned a model's stream end with it, in place: the two are one call.

    outer  generation  |---|                    it ended at the return
    inner  generation    |--------------|       the consumer reads on
    """
    for index, span in enumerate(spans):
        above = parents[index]
        while above != NO_PARENT and valid[index] and valid[above] and _outlives(span, spans[above]):
            spans[above] = spans[above]._replace(end_ns=span.end_ns)
            above = parents[above]


def _outlives(inner: SpanRecord, outer: SpanRecord) -> bool:
    return (
        (inner.end_ns or 0) > (outer.end_ns or 0)
        and (outer.resource is inner.resource or outer.resource == inner.resource)
        and read(outer).stage == semconv.GENERATION
        and read(inner).stage == semconv.GENERATION
        and not is_engine_span(inner)
    )


def is_valid(span: SpanRecord) -> bool:
    """Return whether a span's times can be measured: the others are in no tree."""
    if span.end_ns is None or not 0 <= span.start_ns <= span.end_ns <= MAX:
        return False
    # No start beside a real end: the writer left it out, and the span is not half a century long.
    return span.start_ns > 0 or span.end_ns < _REAL_TIME_NS


class _Builder:
    """Lays the valid spans out parents first, clips them, and counts what reaches outside its parent."""

    def __init__(
        self,
        spans: Sequence[SpanRecord],
        parents: Sequence[int],
        valid: Sequence[bool],
        is_engine: Sequence[bool],
        orphaned: Sequence[bool],
    ) -> None:
        self._spans = spans
        self._is_valid = valid
        self._is_engine = is_engine
        self._orphaned = orphaned
        self._old_parents = parents
        self.n_late = 0
        self.n_early = 0

        self._out: list[SpanRecord] = []
        self._parents: list[int] = []
        self._children: list[list[int]] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._roots: list[int] = []
        self._partial_roots: dict[int, str] = {}
        self._engine_spans: list[EngineSpan] = []

    def build(self, trace_id: str) -> Tree:
        old_children: list[list[int]] = [[] for _ in self._spans]
        pending: list[tuple[int, int, str]] = []  # old index, new parent, what is wrong with what is above
        for index, parent in enumerate(self._old_parents):
            if parent == NO_PARENT:
                pending.append((index, NO_PARENT, MISSING if self._orphaned[index] else ""))
            else:
                old_children[parent].append(index)
        for index, parent, fault in pending:
            if self._is_engine[index]:
                # What lies below an engine span is the engine's business as well.
                below_it = self._below(index, old_children)
                self._engine_spans.append(EngineSpan(self._spans[index], parent, below_it))
                continue
            below, below_fault = parent, fault or self._fault(index)
            if self._is_valid[index]:
                below, below_fault = self._add(self._spans[index], parent, fault), ""
            pending.extend((child, below, below_fault) for child in old_children[index])
        return Tree(
            trace_id=trace_id,
            spans=self._out,
            parents=self._parents,
            children=self._children,
            starts=self._starts,
            ends=self._ends,
            roots=self._roots,
            partial_roots=self._partial_roots,
            engine_spans=sorted(self._engine_spans, key=lambda engine: engine.span.start_ns),
        )

    def _below(self, index: int, children: Sequence[Sequence[int]]) -> tuple[SpanRecord, ...]:
        found = list(children[index])
        for inner in found:
            found.extend(children[inner])
        return tuple(self._spans[inner] for inner in found if self._is_valid[inner])

    def _fault(self, index: int) -> str:
        return UNFINISHED if self._spans[index].end_ns is None else INVALID

    def _add(self, span: SpanRecord, parent: int, fault: str) -> int:
        index = len(self._out)
        end_ns = span.end_ns if span.end_ns is not None else span.start_ns
        self._out.append(span)
        self._parents.append(parent)
        self._children.append([])
        if parent == NO_PARENT:
            if fault:
                self._partial_roots[index] = fault
            else:
                self._roots.append(index)
            self._starts.append(span.start_ns)
            self._ends.append(end_ns)
            return index
        self._children[parent].append(index)
        if waits_for_the_end(span):
            end_ns = span.start_ns
        low, high = self._starts[parent], self._ends[parent]
        self.n_late += end_ns > high
        self.n_early += span.start_ns < low
        # parent      |-----------|
        # child           |-----------|        cut at the parent's end
        # child                      |----|    late as a whole: empty, at the parent's end
        start = min(max(span.start_ns, low), high)
        self._starts.append(start)
        self._ends.append(min(max(end_ns, start), high))
        return index
