"""Many traces of one form as columns: all that their sums need, made from their spans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from hotspan.analysis.call_columns import CallColumns, columns_of, integers
from hotspan.analysis.columns import total
from hotspan.analysis.drafts import BODY, END, START, Bodies
from hotspan.analysis.phases import STAMPS
from hotspan.analysis.requests import may_weigh
from hotspan.analysis.sighting import STAGES, TELLING
from hotspan.analysis.twins import OwnCalls
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hotspan.analysis.columns import Longs
    from hotspan.analysis.drafts import Body, Draft
    from hotspan.analysis.forms import Form, Matched
    from hotspan.tracer.record import SpanRecord

_HOLD: Final = STAMPS.index(semconv.STREAM_HOLD_NS)


@dataclass(frozen=True, slots=True)
class FormBatch:
    """Traces of one form: a row a trace in every column.

    Attributes:
        form: What they have in common.
        starts: A column a span, ns.
        ends: The same.
        overlapping: Rows of the traces in which two children of one span run at once.
        n_chunks: Of all their spans.
        weighed: Roots that say something of their own weight.
        calls: Their model calls, as many a trace as the form has, trace by trace.
        own_calls: Their calls that another writer may have written as well.
        holds: How long their consumers held the streams of other spans than model calls, a column for each
            span that says it; -1 for none.
    """

    form: Form
    starts: Longs
    ends: Longs
    overlapping: Sequence[int]
    n_chunks: int
    weighed: Sequence[SpanRecord]
    calls: CallColumns | None
    own_calls: Sequence[OwnCalls]
    holds: Mapping[int, Longs]

    def held(self, index: int) -> Longs | None:
        """Return how long the consumers of one span held its stream; `None` where no trace says it."""
        tops = list(self.form.attempts)
        if self.calls is None or index not in tops:
            return self.holds.get(index)
        stamps = self.calls.rows["stamps"][tops.index(index) :: len(tops), _HOLD]
        return stamps if (stamps >= 0).any() else None

    def __len__(self) -> int:
        return len(self.starts)


def batches_of(traces: Sequence[Matched], *, has_own_calls: bool = True) -> list[FormBatch]:
    """Return traces as columns, those of one form together.

    Args:
        traces: The traces.
        has_own_calls: Whether the columns hold the calls that another writer may have written as well.
    """
    numbers_of: dict[Form, list[int]] = {}
    for number, trace in enumerate(traces):
        numbers_of.setdefault(trace.form, []).append(number)
    return [
        _batch(form, numbers, [traces[i] for i in numbers], has_own_calls=has_own_calls)
        for form, numbers in numbers_of.items()
    ]


def _batch(
    form: Form, numbers: Sequence[int], traces: Sequence[Matched], *, has_own_calls: bool
) -> FormBatch:
    drafts = [trace.drafts for trace in traces]
    size = len(drafts), len(form.spans)
    bodies = [Bodies([spans[index][BODY] for spans in drafts]) for index in range(size[1])]
    starts = np.array([span[START] for spans in drafts for span in spans], dtype=np.int64).reshape(size)
    ends = np.array([span[END] for spans in drafts for span in spans], dtype=np.int64).reshape(size)
    return FormBatch(
        form=form,
        starts=starts,
        ends=ends,
        overlapping=_overlapping(form, starts, ends),
        n_chunks=sum(map(_n_chunks, bodies)),
        weighed=_weighed([spans[0][BODY] for spans in drafts], bodies[0]),
        calls=_calls(form, drafts, bodies),
        own_calls=_own_calls(form, numbers, starts, ends, bodies) if has_own_calls else (),
        holds={
            index: integers(of_span, semconv.STREAM_HOLD_NS)
            for index, of_span in enumerate(bodies)
            if index not in form.attempts and of_span.have(semconv.STREAM_HOLD_NS)
        },
    )


def _overlapping(form: Form, starts: Longs, ends: Longs) -> list[int]:
    found = np.zeros(len(starts), dtype=bool)
    for children in form.children:
        if len(children) > 1:
            latest = np.maximum.accumulate(ends[:, children], axis=1)
            found |= (starts[:, children[1:]] < latest[:, :-1]).any(axis=1)
    rows: list[int] = np.flatnonzero(found).tolist()
    return rows


def _weighed(roots: Sequence[Body], bodies: Bodies) -> list[SpanRecord]:
    if not any(map(may_weigh, bodies.templates())):
        return []
    return [root.span for root in roots if may_weigh(root.template)]


def _n_chunks(bodies: Bodies) -> int:
    """Return the items of traced streams, and chunks of model calls."""
    keys = [key for key in (semconv.STREAM_ITEMS, semconv.CHUNKS) if bodies.have(key)]
    if not keys:
        return 0
    if len(keys) == 1 and (found := bodies.integers(keys[0])) is not None:
        return total(found)
    rows = zip(*map(bodies.column, keys), strict=True)
    return sum([n for n in (next(filter(None, row), 0) for row in rows) if isinstance(n, int)])


def _calls(form: Form, drafts: Sequence[Sequence[Draft]], bodies: Sequence[Bodies]) -> CallColumns | None:
    tops = list(form.attempts)
    if not tops:
        return None
    calls = [spans[top] for spans in drafts for top in tops]
    of_calls = bodies[tops[0]] if len(tops) == 1 else Bodies([call[BODY] for call in calls])
    return columns_of(calls, of_calls, [form.outcomes[top] for top in tops] * len(drafts))


def _own_calls(
    form: Form, numbers: Sequence[int], starts: Longs, ends: Longs, bodies: Sequence[Bodies]
) -> list[OwnCalls]:
    return [
        OwnCalls(
            place=index,
            numbers=numbers,
            starts=starts[:, index],
            ends=ends[:, index],
            said={key: bodies[index].column(key) for key in TELLING if bodies[index].have(key)},
        )
        for index, stage in enumerate(form.calls.stages)
        if stage in STAGES
    ]
