"""Requests of one form: the same spans, in the same places, at other times.

A service answers most requests in a few ways, so that nearly all traces of a large file have one of a few
dozen forms.  What does not depend on the times (which span is whose call, whose child, of which stage) is
worked out once for a form; what does is summed for many traces at once, in columns: `form_batch` makes them,
`form_sums` adds them up.

Only plain traces have a form: one request, every span of Hotspan's own with its stage, nothing to repair,
nothing outside its parent.  All others go the long way, trace by trace, which defines the figures.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from hotspan.analysis.calls import Calls, attempts_of, calls_of, nearest
from hotspan.analysis.classify import outcome_of
from hotspan.analysis.columns import MAX
from hotspan.analysis.dialects.table import dialect_of
from hotspan.analysis.drafts import spans_of
from hotspan.analysis.patterns.runs import needs_spans
from hotspan.analysis.sighting import STAGES
from hotspan.analysis.tree import NO_PARENT, Tree
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotspan.analysis.classify import Outcome
    from hotspan.analysis.drafts import Draft
    from hotspan.tracer.record import SpanRecord

BATCH: Final = 2_048  # traces that are summed together
_MAX_SPANS: Final = 64  # of a trace with a form: larger ones are hardly ever alike
_MAX_NS: Final = 1 << 55  # a year: the sums of as many spans fit into 64 bits
_MAX_FORMS: Final = 1_024  # a form keeps its first trace
_by_start = itemgetter(3)

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """What the traces of one form have in common.

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

    def below(self, index: int) -> list[int]:
        """Return a span and all below it."""
        found = [index]
        for inner in found:
            found.extend(self.children[inner])
        return found

    def tree(self, starts: Sequence[int], ends: Sequence[int]) -> Tree:
        """Return a trace of this form as a tree, from its times; its spans are those of the first one."""
        return Tree("", self.spans, self.parents, self.children, starts, ends, (0,), {}, ())


class Matched(NamedTuple):
    """A trace with a form."""

    form: Form
    drafts: Sequence[Draft]  # by start


@dataclass(slots=True)
class Forms:
    """The forms that were seen."""

    known: dict[Key, Form] = field(default_factory=dict)

    def match(self, drafts: list[Draft]) -> Matched | None:
        """Return the form of a trace; `None` where it has none, and has to go the long way.

        Args:
            drafts: Its spans, which are sorted by start in place.
        """
        if not 0 < len(drafts) <= _MAX_SPANS:
            return None
        # Hot: a few steps for each span of a file.
        drafts.sort(key=_by_start)
        (_, root_id, above, start, end, body), *others = drafts
        if body.likeness is None or (above is not None and not body.is_entry):
            return None
        if end is None or not 0 < start <= end <= MAX or end - start > _MAX_NS:
            return None
        index_of, ends = {root_id: 0}, [end]
        key: list[object] = [body.likeness]
        for index, (_, span_id, parent_id, start, end, body) in enumerate(others, 1):
            parent = index_of.get(parent_id)  # type: ignore[arg-type]  # a second root has none, and is not found
            if parent is None or end is None or not start <= end <= ends[parent]:
                return None
            index_of[span_id] = index
            ends.append(end)
            key += (parent, body.likeness)
        # Of an entry the parent is elsewhere: where a span here has its id, it goes the long way.
        if len(index_of) < len(drafts) or above in index_of or None in key:
            return None
        found = self._form(tuple(key), drafts)
        return Matched(found, drafts) if found and found.is_plain else None

    def _form(self, key: Key, drafts: Sequence[Draft]) -> Form | None:
        found = self.known.get(key)
        if found is None and len(self.known) < _MAX_FORMS:
            # The first trace is kept, and with it the resources whose ids tell likenesses apart.
            found = self.known[key] = form_of(spans_of(drafts))
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
    tree = Tree("", spans, parents, children, starts, ends, (0,), {}, ())
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
    return not calls.guessed and not calls.aside and not needs_spans(spans, calls)


def _is_doubtful(span: SpanRecord) -> bool:
    dialect = dialect_of(span)
    return dialect is not None and dialect.answers_always
