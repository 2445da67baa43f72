"""Traces of one form whose stamps follow each other in one order: what depends on it is the same for all.

Which span a request waited for, and which a span started after, are matters of comparisons between stamps
only.  So one trace in place of many is walked, its times being *places* in the order, and what is found is
looked up in the stamps of them all, in columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hotspan.analysis.critical_path import Segment, critical_path
from hotspan.analysis.what_if import Timeline, timeline_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hotspan.analysis.columns import Longs
    from hotspan.analysis.form_batch import FormBatch
    from hotspan.analysis.forms import Form
    from hotspan.analysis.tree import Tree

MIN_ALIKE: Final = 4  # below, one by one is no slower


@dataclass(frozen=True, slots=True)
class Alike:
    """Some traces of one form, in one order.

    Attributes:
        form: Their form.
        rows: Of the batch that they are of.
        tree: All of them, every time being a place in the order of the stamps.
        stamps: A row a place, earliest first, and a column a trace, ns.
        segments: Their critical path, in places.
    """

    form: Form
    rows: Longs
    tree: Tree
    stamps: Longs
    segments: Sequence[Segment] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "segments", critical_path(self.tree, 0))

    def between(self, start: int, end: int) -> Longs:
        """Return the time from one place to another, of each trace."""
        return np.asarray(self.stamps[end] - self.stamps[start])

    def path_ns(self) -> Longs:
        """Return the time of each span on the critical path: a row a trace, a column a span."""
        found = np.zeros((len(self.tree.spans), len(self.rows)), dtype=np.int64)
        for index, start, end in self.segments:
            found[index] += self.between(start, end)
        return found.T

    def timeline(self) -> Timeline:
        """Return the timeline of all of them."""
        found, zero = timeline_of(self.tree, self.form.calls, 0), self.tree.starts[0]
        starts, ends = (
            [self.between(zero, zero + place) for place in places] for places in (found.starts, found.ends)
        )
        return replace(found, starts=starts, ends=ends)


def alike(batch: FormBatch, rows: Sequence[int]) -> Iterator[Alike]:
    """Yield some of a batch's traces by the order of their stamps, but for those that too few share."""
    if len(rows) < MIN_ALIKE:
        return
    stamps = np.concatenate((batch.starts[rows], batch.ends[rows]), axis=1)
    order = np.argsort(stamps, axis=1, kind="stable")
    stamps = np.take_along_axis(stamps, order, axis=1)
    # Equal ones are in one place, the first: of several orders in which they could follow each other
    # a stable sort takes the same in each trace.
    is_later = np.diff(stamps, axis=1, prepend=stamps[:, :1] - 1) > 0
    places = np.maximum.accumulate(np.where(is_later, np.arange(stamps.shape[1]), 0), axis=1)
    for members in _equal_rows(np.concatenate((order, places), axis=1)):
        if len(members) >= MIN_ALIKE:
            tree = _tree(batch.form, order[members[0]], places[members[0]])
            yield Alike(batch.form, np.asarray(rows)[members], tree, np.ascontiguousarray(stamps[members].T))


def _equal_rows(rows: Longs) -> Iterator[list[int]]:
    groups: dict[bytes, list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(row.tobytes(), []).append(number)
    yield from groups.values()


def _tree(form: Form, order: np.ndarray[Any, Any], places: Longs) -> Tree:
    of_stamps = np.empty_like(places)
    of_stamps[order] = places
    starts, ends = np.split(of_stamps, 2)
    return form.tree(starts.tolist(), ends.tolist())
