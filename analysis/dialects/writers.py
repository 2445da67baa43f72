"""Who wrote the spans of a file without scopes, where no attribute tells it: the trace does, as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.analysis.dialects.table import DIALECTS
from hotspan.tracer import semconv
from hotspan.tracer.record import Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotspan.analysis.dialects.rules import Dialect
    from hotspan.tracer.record import SpanRecord

_SIGNED: Final = tuple((dialect, Scope(dialect.scopes[0])) for dialect in DIALECTS if dialect.signs)


def with_writers(spans: list[SpanRecord]) -> list[SpanRecord]:
    """Return the spans, those without a scope under that of the OpenInference library whose signs they bear.

    Its entry in the table is then the one that is asked.  With the signs of none, or of two, it is not known.
    """
    without = [
        index
        for index, span in enumerate(spans)
        if not span.scope.name and semconv.OPENINFERENCE_KIND in span.attributes
    ]
    if not without:
        return spans
    found = [scope for dialect, scope in _SIGNED if _bears([spans[index] for index in without], dialect)]
    if len(found) == 1:
        for index in without:
            spans[index] = spans[index]._replace(scope=found[0])
    return spans


def _bears(spans: Sequence[SpanRecord], dialect: Dialect) -> bool:
    return all(any(sign.fits(span) for span in spans) for sign in dialect.signs)
