"""What a reader yields: spans, and what is to be said of those that are none."""

from __future__ import annotations

from typing import NamedTuple

from hotspan.tracer.record import Resource, SpanRecord


class RefusedSpan(NamedTuple):
    """A span that could not be read, and why."""

    reason: str
    line: int = 0  # where the object that holds it begins in the file; 0 where there are no lines


class LostNote(NamedTuple):
    """A resource without spans: what its writer says about itself, such as how many spans it lost."""

    resource: Resource


Item = SpanRecord | RefusedSpan | LostNote
