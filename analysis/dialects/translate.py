"""Other writers' spans in our words: one pass over a trace, before the repair.

Tokens, models, first tokens and hidden errors are written under the keys of `tracer/semconv.py`, so that
nothing after this pass knows whose spans they were.  Names, times and parents stay, but for a call that its
writer began too late, or ended too early, and for what was put beside the span that it is part of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotspan.analysis.dialects.added import MEASURED, WITH_FIGURES, has_more
from hotspan.analysis.dialects.attempts import with_attempts
from hotspan.analysis.dialects.beside import with_requests_beside
from hotspan.analysis.dialects.chunk_events import after_first
from hotspan.analysis.dialects.consumers import with_consumers
from hotspan.analysis.dialects.continued import until_last_chunk, with_endings
from hotspan.analysis.dialects.envelopes import with_envelopes
from hotspan.analysis.dialects.failures import has_failed, with_failures
from hotspan.analysis.dialects.first_token import first_of, is_whole
from hotspan.analysis.dialects.nested import with_firsts_inside
from hotspan.analysis.dialects.outcomes import outcome_in
from hotspan.analysis.dialects.raw_requests import with_raw_requests
from hotspan.analysis.dialects.reading import read
from hotspan.analysis.dialects.returned_streams import with_returned_streams
from hotspan.analysis.dialects.steps import with_steps
from hotspan.analysis.dialects.usage import USAGE, is_unknown_usage, model_of, usage_of
from hotspan.analysis.dialects.writers import with_writers
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotspan.tracer.record import AttributeValue, SpanRecord


def translate(spans: Sequence[SpanRecord]) -> Sequence[SpanRecord]:
    """Return the spans of one trace with what their writers say under our keys, in the same order.

    Args:
        spans: Of one trace, ids in one spelling; not changed.

    Returns:
        The same sequence where every span is Hotspan's own or says nothing that needs a word of ours.
    """
    if all(_is_own(span) and not has_more(span) for span in spans):
        return spans
    written = with_requests_beside(with_raw_requests(with_writers(list(spans))))
    translated = [_translated(span) for span in written]
    if all(_is_own(span) or semconv.STAGE in span.attributes for span in spans):
        is_same = all(mine is span for mine, span in zip(translated, spans, strict=True))
        return spans if is_same else translated
    ended = with_consumers(with_returned_streams(with_endings(with_steps(with_envelopes(translated)))))
    return with_failures(with_attempts(with_firsts_inside(ended)))


def _is_own(span: SpanRecord) -> bool:
    return span.scope.name == semconv.SCOPE_NAME


def _translated(span: SpanRecord) -> SpanRecord:
    if _is_own(span) and not has_more(span):
        return span
    if (outcome := outcome_in(span)) is not None:
        span = span._replace(status="unset", attributes={**span.attributes, semconv.OUTCOME: outcome})
    elif semconv.STAGE not in span.attributes and has_failed(span):
        span = span._replace(status="error")
    stage = read(span).stage
    if stage not in WITH_FIGURES:
        return span
    if stage == semconv.GENERATION:
        span = until_last_chunk(span)
    found: dict[str, AttributeValue] = dict(usage_of(span.attributes))
    if (model := model_of(span.attributes)) is not None:
        found[semconv.REQUEST_MODEL] = model
    if MEASURED.isdisjoint(span.attributes):
        _add_stream(span, stage, found)
    said = {**span.attributes, **found} if found else span.attributes
    if is_unknown_usage(said):
        said = {key: value for key, value in said.items() if key not in USAGE}
    return span if said is span.attributes else span._replace(attributes=said)


def _add_stream(span: SpanRecord, stage: str | None, found: dict[str, AttributeValue]) -> None:
    """Add when the first chunk and the tokens came to what was found in a span."""
    for key, ns in first_of(span):
        found.setdefault(key, ns)
    if span.events and stage == semconv.GENERATION and not is_whole(span):
        found.update(after_first(span, {**span.attributes, **found}))
