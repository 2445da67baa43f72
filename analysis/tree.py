"""A repaired trace as index arrays: what every pass of the analysis walks, without recursion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hotspan.tracer.record import SpanRecord

NO_PARENT = -1
# What is wrong with the true root of a part of a request.
MISSING: Final = "is missing"
UNFINISHED: Final = "never ended"
INVALID: Final = "has an impossible time"


@dataclass(frozen=True, slots=True)
class EngineSpan:
    """An inference server's own account of one model call."""

    span: SpanRecord
    anchor: int  # index of the nearest ancestor that is no engine span; NO_PARENT where there is none
    below: Sequence[SpanRecord] = ()  # what the server wrote below it, in no order


@dataclass(frozen=True, slots=True)
class Tree:
    """The valid spans of one trace, parents before children; index i is the same span in every field.

    `spans` hold the times as measured.  `starts` and `ends` are clipped to the clipped parent, so that what
    is computed from them adds up.
    """

    trace_id: str
    spans: Sequence[SpanRecord]
    parents: Sequence[int]  # NO_PARENT for a root
    children: Sequence[Sequence[int]]
    starts: Sequence[int]  # ns
    ends: Sequence[int]  # ns, starts[i] <= ends[i]
    roots: Sequence[int]  # of whole requests: spans without a parent in this program
    partial_roots: Mapping[int, str]  # of parts of requests -> what is wrong with the true root
    engine_spans: Sequence[EngineSpan]  # by start, on the engine's clock

    def duration_ns(self, index: int) -> int:
        """Return the clipped duration of a span."""
        return self.ends[index] - self.starts[index]

    def below(self, root: int) -> list[int]:
        """Return a span and all its descendants, parents before children."""
        order = [root]
        for index in order:
            order.extend(self.children[index])
        return order
