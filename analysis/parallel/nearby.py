"""Traces in a part of a file, each taken to be complete when nothing of it came for a while after its root.

That spares the pass over the file that counts them.  It is a guess, and checked: a span that comes later,
here or in another part, is an `UnfitError`; then one process reads everything.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from hotspan.analysis.drafts import spans_of
from hotspan.analysis.parallel.ranges import UnfitError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from hotspan.analysis.drafts import Draft
    from hotspan.tracer.record import SpanRecord

_MAX_OPEN: Final = 200_000  # spans
# Of what the pool reads a part of: more of it than one line that was cut is mostly another writer's.
_MAX_SPLIT_LINES: Final = 16
_MAX_SPLIT: Final = 256


class Nearby:
    """The traces of one part.

    Args:
        near_bytes: Of text, behind a root, in which more of its trace may come.
        before: Ids of traces that have spans shortly before the part: theirs are kept apart.

    Attributes:
        foreign: The spans of those that have some here, too, and of those that somebody else reads a part of.
        done: Ids of the traces that were complete.
    """

    def __init__(self, near_bytes: int, before: AbstractSet[str]) -> None:
        self.foreign: dict[str, list[Draft]] = {}
        self.done: set[str] = set()
        self._near_bytes = near_bytes
        self._elsewhere = set(before)
        self._n_split = self._n_split_lines = 0
        self._open: dict[str, list[Draft]] = {}
        self._n_open = 0
        self._n_bytes = 0
        self._rooted: deque[tuple[int, str]] = deque()  # when a root came, and of which trace

    def put(self, drafts: Sequence[Draft], n_bytes: int) -> Iterator[list[Draft]]:
        """Take the spans of a line of so many bytes; yield the traces that are now complete.

        Raises:
            UnfitError: A span comes too late, or too many wait.
        """
        # Hot: a few steps for each span of a file.
        opened, self._n_bytes = self._open, self._n_bytes + n_bytes
        self._n_open += len(drafts)
        for draft in drafts:
            trace_id, _, parent_id, _, _, body = draft
            waiting = opened.get(trace_id)
            if waiting is None:
                waiting = self._begun(trace_id)
            waiting.append(draft)
            if parent_id is None or body.is_entry:
                self._rooted.append((self._n_bytes, trace_id))
        rooted, until = self._rooted, self._n_bytes - self._near_bytes
        while rooted and rooted[0][0] < until:
            _, trace_id = rooted.popleft()
            if trace_id in opened:  # not with an earlier root
                complete = opened.pop(trace_id)
                self._n_open -= len(complete)
                self.done.add(trace_id)
                yield complete
        if self._n_open > _MAX_OPEN:
            raise UnfitError

    def _begun(self, trace_id: str) -> list[Draft]:
        if trace_id in self.done:
            raise UnfitError
        if trace_id in self._elsewhere:
            return self.foreign.setdefault(trace_id, [])
        waiting = self._open[trace_id] = []
        return waiting

    def split(self, trace_ids: AbstractSet[str]) -> None:
        """Leave the traces of a line to somebody who reads another part of them.

        Raises:
            UnfitError: One was taken to be complete, or there are too many of the kind.
        """
        new = trace_ids - self._elsewhere
        self._n_split_lines += bool(new)
        self._n_split += len(new)
        if (
            self._n_split_lines > _MAX_SPLIT_LINES
            or self._n_split > _MAX_SPLIT
            or not self.done.isdisjoint(new)
        ):
            raise UnfitError
        self._elsewhere |= new
        for trace_id in new & self._open.keys():
            self.foreign[trace_id] = self._open.pop(trace_id)

    def rest(self, shared: AbstractSet[str]) -> Iterator[list[Draft]]:
        """Yield the traces that nothing more can come of: those that are not shared with other parts."""
        for trace_id in [trace_id for trace_id in self._open if trace_id not in shared]:
            self.done.add(trace_id)
            yield self._open.pop(trace_id)

    def left(self) -> list[Sequence[SpanRecord]]:
        """Return the spans of the traces of which other parts have spans, too; call it last."""
        return [spans_of(drafts) for drafts in (*self._open.values(), *self.foreign.values())]
