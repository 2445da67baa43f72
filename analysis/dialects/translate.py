"""Other writers' spans in our words: one pass over a trace, before the repair.

Tokens, models, first tokens and hidden errors are written under the keys of `tracer/semconv.py`, so that
nothing after this pass knows whose spans they were.  Names, times and parents stay, but for a call that its
writer ended too early and finished in a second span.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.analysis.dialects.attempts import with_attempts
from hotspan.analysis.dialects.continued import with_endings
from hotspan.analysis.dialects.failures import has_failed, with_failures
from hotspan.analysis.dialects.first_token import first_of
from hotspan.analysis.dialects.reading import read
from hotspan.analysis.dialects.steps import with_steps
from hotspan.analysis.dialects.usage import model_of, usage_of
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotspan.tracer.record import SpanRecord

_WITH_FIGURES: Final = frozenset({semconv.GENERATION, semconv.EMBEDDING})


def translate(spans: Sequence[SpanRecord]) -> Sequence[SpanRecord]:
    """Return the spans of one trace with what their writers say under our keys, in the same order.

    Args:
        spans: Of one trace, ids in one spelling; not changed.

    Returns:
        The same sequence where every span is Hotspan's own or says nothing that needs a word of ours.
    """
    if all(semconv.STAGE in span.attributes or span.scope.name == semconv.SCOPE_NAME for span in spans):
        return spans
    translated = [_translated(span) for span in spans]
    return with_failures(with_attempts(with_endings(with_steps(translated))))


def _translated(span: SpanRecord) -> SpanRecord:
    if semconv.STAGE in span.attributes:
        return span
    if has_failed(span):
        span = span._replace(status="error")
    if read(span).stage not in _WITH_FIGURES:
        return span
    found: dict[str, int | str] = dict(usage_of(span.attributes))
    if (model := model_of(span.attributes)) is not None:
        found[semconv.REQUEST_MODEL] = model
    for key, ns in first_of(span):
        found.setdefault(key, ns)
    return span._replace(attributes={**span.attributes, **found}) if found else span
