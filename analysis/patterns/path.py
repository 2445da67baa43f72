"""Which spans a request waited for: those on its critical path, and all above them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotspan.analysis.tree import NO_PARENT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hotspan.analysis.critical_path import Segment
    from hotspan.analysis.tree import Tree


class OnPath:
    """The spans of one request whose time, or whose children's time, is on the critical path.

    Worked out at the first question: most requests ask none.
    """

    def __init__(self, tree: Tree, segments: Iterable[Segment]) -> None:
        self._tree = tree
        self._segments = segments
        self._found: set[int] | None = None

    def holds(self, index: int) -> bool:
        """Return whether the request waited for a span."""
        if self._found is None:
            self._found = self._ancestors()
        return index in self._found

    def _ancestors(self) -> set[int]:
        found: set[int] = set()
        for segment in self._segments:
            index = segment.span
            while index != NO_PARENT and index not in found:
                found.add(index)
                index = self._tree.parents[index]
        return found
