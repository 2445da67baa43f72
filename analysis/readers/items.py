"""What a reader yields: spans, what is to be said of those that are none, and points that were measured."""

from __future__ import annotations

from typing import NamedTuple

from hotspan.analysis.drafts import Draft
from hotspan.tracer.metric import MetricPoint
from hotspan.tracer.record import Resource, SpanRecord


class RefusedSpan(NamedTuple):
    """A span that could not be read, and why."""

    reason: str
    line: int = 0  # where the object that holds it begins in the file; 0 where there are no lines


class Flaw(NamedTuple):
    """Something of a span that could not be used; the span itself is handed on without it."""

    reason: str
    line: int = 0


class LostNote(NamedTuple):
    """A resource without spans: what its writer says about itself, such as how many spans it lost."""

    resource: Resource


class OtherLines(NamedTuple):
    """Lines of a console's output that are the program's own, and belong to no span."""

    n: int


class Drafts(list[Draft]):
    """Spans that are not made yet, of one line."""


Item = SpanRecord | Drafts | RefusedSpan | Flaw | LostNote | OtherLines | MetricPoint
