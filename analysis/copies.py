"""The same span more than once: from files that overlap, or from one run in two formats.

A format that keeps microseconds or milliseconds has cut or rounded every time; it may not know a span's kind,
and writes its attributes in its own way.  Some writers write a span when it begins, and again at its end.
Rule: docs/definitions.md#repair-before-any-arithmetic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotspan.tracer.record import SpanRecord

_SPAN_DIGITS: Final = 16
_MS: Final = 1_000_000
_UNITS_NS: Final = (_MS, 1_000, 1)  # in which formats keep their times, coarsest first
_UNKNOWN_KIND: Final = "unspecified"


def distinct(spans: Sequence[SpanRecord]) -> list[SpanRecord]:
    """Return the spans in their order, with clean ids and without copies."""
    clean = [_clean_ids(span) for span in spans]
    return [clean[index] for index, kept in enumerate(_kept(clean)) if index == kept]


def originals(spans: Sequence[SpanRecord]) -> list[SpanRecord]:
    """Return for each span, in their order, the one that `distinct` keeps for it."""
    clean = [_clean_ids(span) for span in spans]
    return [clean[kept] for kept in _kept(clean)]


def _kept(spans: Sequence[SpanRecord]) -> list[int]:
    """Return for each span the index of the one that is kept: its own, or that of a finer copy."""
    alike: dict[tuple[str, str], list[int]] = {}
    for index, span in enumerate(spans):
        alike.setdefault((span.span_id, span.name), []).append(index)
    kept = list(range(len(spans)))
    if len(alike) < len(spans):
        for indices in alike.values():
            if len(indices) > 1:
                _merge(spans, indices, kept)
    return kept


def _merge(spans: Sequence[SpanRecord], indices: list[int], kept: list[int]) -> None:
    # Finest first, each held against what begins at most a millisecond from it: one id may have many spans.
    seen: dict[int, list[int]] = {}
    for index in sorted(indices, key=lambda i: _coarseness(spans[i])):
        span = spans[index]
        place = span.start_ns // _MS
        near = (other for at in (place - 1, place, place + 1) for other in seen.get(at, ()))
        found = next((other for other in near if _is_copy(span, spans[other])), None)
        if found is None:
            seen.setdefault(place, []).append(index)
        else:
            kept[index] = found


def _coarseness(span: SpanRecord) -> tuple[bool, int, bool, int]:
    return span.end_ns is None, _unit_ns(span), span.kind == _UNKNOWN_KIND, -len(span.attributes)


def _unit_ns(span: SpanRecord) -> int:
    """Return the unit in which the span's times are whole numbers."""
    return next(unit for unit in _UNITS_NS if span.start_ns % unit == (span.end_ns or 0) % unit == 0)


def _is_copy(coarse: SpanRecord, fine: SpanRecord) -> bool:
    """Return whether two spans of one id and name are one; attributes differ by format and do not count."""
    if coarse.parent_id != fine.parent_id:
        return False
    if coarse.kind != fine.kind and _UNKNOWN_KIND not in (coarse.kind, fine.kind):
        return False  # client and server of one call
    if (coarse.end_ns is None) != (fine.end_ns is None):
        return coarse.start_ns == fine.start_ns  # written when it began, and again when it had ended
    unit = _unit_ns(coarse)
    if abs(coarse.start_ns - fine.start_ns) >= unit:
        return False
    # Jaeger's format keeps no end, but a duration, and start and duration are both cut.
    return abs((coarse.end_ns or 0) - (fine.end_ns or 0)) < 2 * unit - 1


def _clean_ids(span: SpanRecord) -> SpanRecord:
    span_id = span.span_id.lower().zfill(_SPAN_DIGITS)
    parent_id = span.parent_id.lower().zfill(_SPAN_DIGITS) if span.parent_id else None
    if span_id == span.span_id and parent_id == span.parent_id:
        return span
    return span._replace(span_id=span_id, parent_id=parent_id)
