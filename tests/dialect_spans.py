"""Spans of other writers, as one pass over their trace leaves them."""

from __future__ import annotations

from hotspan.analysis.dialects import translate
from hotspan.tracer.record import Scope
from hotspan.tracer.testing import build_trace

MS = 1_000_000


def translated(*spans, attributes=None, scopes=None, status=None, events=None):
    """Return the translated spans by name; times are in milliseconds."""
    timed = [(name, start * MS, end * MS, *parent) for name, start, end, *parent in spans]
    trace = build_trace(*timed, attributes=attributes)
    written = [
        span._replace(
            scope=Scope((scopes or {}).get(span.name, "app")),
            status=(status or {}).get(span.name, "unset"),
            events=tuple((events or {}).get(span.name, ())),
        )
        for span in trace.spans
    ]
    return {span.name: span for span in translate(written)}
