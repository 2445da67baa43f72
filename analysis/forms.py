"""Requests of one form: the same spans, in the same places, at other times.

A service answers most requests in a few ways, so that nearly all traces of a large file have one of a few
dozen forms.  What does not depend on the times (which span is whose call, whose child, of which stage) is
worked out once for a form; what does is kept as columns, and summed for many traces at once by `form_sums`.

Only plain traces have a form: one request, every span of Hotspan's own with its stage, nothing to repair,
nothing outside its parent.  All others go the long way, trace by trace, which defines the figures.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from hotspan.analysis.calls import Calls, attempts_of, calls_of, nearest
from hotspan.analysis.classify import is_entry_span, outcome_of
from hotspan.analysis.columns import MAX, longs
from hotspan.analysis.dialects.table import dialect_of
from hotspan.analysis.generation import ModelCall
from hotspan.analysis.patterns.repeats import INPUTS
from hotspan.analysis.patterns.runs import may_run
from hotspan.analysis.request_table import RequestCalls
from hotspan.analysis.tree import NO_PARENT, Tree
from hotspan.analysis.twins import STAGES
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from array import array
    from collections.abc import Sequence

    from hotspan.analysis.classify import Outcome
    from hotspan.tracer.record import SpanRecord, Trace

_MAX_SPANS: Final = 64  # of a trace with a form: larger ones are hardly ever alike
_MAX_NS: Final = 1 << 55  # a year: the sums of as many spans fit into 64 bits
_MAX_FORMS: Final = 1_024  # a form keeps its first trace
_by_start = attrgetter("start_ns")

Key = tuple[object, ...]


@dataclass(slots=True, eq=False)
class Form:
    """What the traces of one form have in common, and their times, not yet summed.

    Span i of the form is the span that starts i-th.
    """

    spans: Sequence[SpanRecord]  # of the first trace; names, outcomes and resources are those of all
    parents: Sequence[int]
    children: Sequence[Sequence[int]]
    calls: Calls
    attempts: dict[int, list[int]]  # innermost spans of each model call, by its outermost
    agents: Sequence[int]  # agent run of each model call
    outcomes: Sequence[Outcome]  # of each span
    is_plain: bool  # False: a request of this form goes the long way all the same
    starts: array[int] = field(default_factory=longs)  # as many a trace as there are spans
    ends: array[int] = field(default_factory=longs)
    rows: array[int] = field(default_factory=longs)  # of the requests
    call_rows: array[int] = field(
        default_factory=longs
    )  # of the model calls, as many a trace as there are calls
    overlapping: dict[int, Tree] = field(
        default_factory=dict
    )  # traces by number, in which siblings run at once

    @property
    def n_traces(self) -> int:
        """Traces that wait to be summed."""
        return len(self.rows)

    def model_calls(self, spans: Sequence[SpanRecord]) -> list[ModelCall]:
        """Return the model calls of a trace of this form."""
        return [ModelCall(spans[top], [spans[i] for i in inner]) for top, inner in self.attempts.items()]

    def request_calls(self, calls: Sequence[ModelCall]) -> RequestCalls:
        """Return what a request's model calls are, without their times."""
        return RequestCalls(calls, self.agents, (), has_agent=semconv.AGENT in self.calls.stages)

    def tree(self, trace_id: str, spans: Sequence[SpanRecord]) -> Tree:
        """Return a trace of this form as a tree."""
        starts, ends = [span.start_ns for span in spans], [span.end_ns or 0 for span in spans]
        return Tree(trace_id, spans, self.parents, self.children, starts, ends, (0,), (), ())

    def let_go(self) -> None:
        """Forget the traces, when they are summed."""
        for column in (self.starts, self.ends, self.rows, self.call_rows):
            del column[:]
        self.overlapping.clear()


@dataclass(slots=True)
class Matched:
    """A trace with a form."""

    form: Form
    spans: list[SpanRecord]  # by start
    starts: list[int]
    ends: list[int]
    is_sequential: bool  # no two children of one span run at once


@dataclass(slots=True)
class Forms:
    """The forms that were seen."""

    known: dict[Key, Form] = field(default_factory=dict)

    def match(self, trace: Trace) -> Matched | None:
        """Return the form of a trace; `None` where it has none, and has to go the long way."""
        if not 0 < len(trace.spans) <= _MAX_SPANS:
            return None
        spans = sorted(trace.spans, key=_by_start)
        starts: list[int] = []
        ends: list[int] = []
        free: list[int] = []  # from when on each span has no child, as far as was seen
        # An entry's parent is elsewhere: a span here that has its id, or names it too, goes the long way.
        entered_from = spans[0].parent_id if is_entry_span(spans[0]) else None
        index_of: dict[str, int] = {entered_from: NO_PARENT} if entered_from else {}
        key: list[object] = [entered_from is not None]
        is_sequential = True
        for index, span in enumerate(spans):
            (_, span_id, parent_id, name, start, end, attributes, _, status, _, _, _, resource, scope) = span[
                :14
            ]
            parent = NO_PARENT if parent_id is None else index_of.get(parent_id, len(spans))
            stage = attributes.get(semconv.STAGE)
            if (
                end is None
                or not 0 < start <= end <= MAX
                or type(stage) is not str
                or (index == 0) != (parent == NO_PARENT)
                or parent >= index
                or not INPUTS.isdisjoint(attributes)
                or span_id in index_of
                or semconv.NOT_SELECTED in attributes
                or not stage
                or end - start > _MAX_NS
            ):
                return None
            if index:
                if end > ends[parent]:
                    return None
                if start < free[parent]:
                    is_sequential = False
                free[parent] = max(free[parent], end)
            index_of[span_id] = index
            starts.append(start)
            ends.append(end)
            free.append(start)
            key += (parent, stage, name, status, attributes.get(semconv.OUTCOME), id(resource), scope.name)
        found = self._form(tuple(key), spans)
        return Matched(found, spans, starts, ends, is_sequential) if found and found.is_plain else None

    def _form(self, key: Key, spans: list[SpanRecord]) -> Form | None:
        try:
            found = self.known.get(key)
        except TypeError:  # an outcome that is a list, or the like
            return None
        if found is None and len(self.known) < _MAX_FORMS:
            # The first trace is kept, and with it the resources whose ids are in the key.
            found = self.known[key] = form_of(spans)
        return found


def form_of(spans: Sequence[SpanRecord]) -> Form:
    """Return the form of a trace, from its spans in order of start, each after its parent."""
    index_of = {span.span_id: index for index, span in enumerate(spans)}
    parents = [index_of.get(span.parent_id or "", NO_PARENT) for span in spans]
    children: list[list[int]] = [[] for _ in spans]
    for index, parent in enumerate(parents):
        if parent != NO_PARENT:
            children[parent].append(index)
    starts, ends = [span.start_ns for span in spans], [span.end_ns or 0 for span in spans]
    tree = Tree("", spans, parents, children, starts, ends, (0,), (), ())
    calls = calls_of(tree)
    attempts = attempts_of(tree, calls)
    return Form(
        spans=spans,
        parents=parents,
        children=children,
        calls=calls,
        attempts=attempts,
        agents=[nearest(tree, calls, top, semconv.AGENT) for top in attempts],
        outcomes=[outcome_of(span) for span in spans],
        is_plain=_is_plain(spans, calls, attempts),
    )


def _is_plain(spans: Sequence[SpanRecord], calls: Calls, attempts: dict[int, list[int]]) -> bool:
    if any(span.scope.name != semconv.SCOPE_NAME or _is_doubtful(span) for span in spans):
        return False  # its attributes say more than its stage
    if any(inner != [top] for top, inner in attempts.items()):
        return False  # which attempt answered is a matter of times
    if any(stage in STAGES and calls.tops[i] != i for i, stage in enumerate(calls.stages)):
        return False  # as above
    if calls.stages[0] in STAGES:
        return False  # may be what another trace holds as well
    return not calls.guessed and not calls.aside and not may_run(spans, calls)


def _is_doubtful(span: SpanRecord) -> bool:
    dialect = dialect_of(span)
    return dialect is not None and dialect.answers_always
