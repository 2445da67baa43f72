"""What one span says it is: by its writer's entry, the vendors' kinds, the conventions, last by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotspan.analysis.dialects import kinds
from hotspan.analysis.dialects.answers import is_embedding
from hotspan.analysis.dialects.names import guess
from hotspan.analysis.dialects.rules import NO_STAGE, NOTHING, VAGUE, Reading, kind_of
from hotspan.analysis.dialects.table import dialect_of
from hotspan.analysis.dialects.transport import transport_reading
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from hotspan.tracer.record import SpanRecord

_GENERAL = (kinds.OPERATION,)


def read(span: SpanRecord) -> Reading:
    """Return the stage that a span says, by the first of the rules that says one.

    A pure function of the span's name, kind, scope and attributes.
    Source: docs/definitions.md#trace-request-stage.
    """
    own = span.attributes.get(semconv.STAGE)
    if isinstance(own, str) and own:
        return Reading(own)
    dialect = dialect_of(span)
    said, is_guess = NO_STAGE if dialect is None else dialect.verdict(span)
    if said is None:
        said = kind_of(span, kinds.VENDORS)
    if said is None:
        said = kind_of(span, _GENERAL)
    if said is None or said == VAGUE:
        if dialect is None:
            return _by_name(span, span.name)
        given = span.attributes.get(dialect.name_key) if dialect.name_key else None
        name = given if isinstance(given, str) else span.name
        return _by_name(span, name) if dialect.has_telling_names else NO_STAGE
    if said == semconv.GENERATION and is_embedding(span):
        return Reading(semconv.EMBEDDING, is_guess)
    return NO_STAGE if said == NOTHING else Reading(said, is_guess)


def _by_name(span: SpanRecord, name: str) -> Reading:
    transport = transport_reading(span)
    if transport is not None:
        return transport
    if span.kind in {"server", "producer", "consumer"}:
        return NO_STAGE
    stage = guess(name)
    return NO_STAGE if stage is None else Reading(stage, is_guess=True)
