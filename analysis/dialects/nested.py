"""Two spans of one call, of which the outer one alone knows when the first chunk came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hotspan.analysis.dialects.reading import read
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hotspan.tracer.record import SpanRecord

_FIRSTS: Final = (semconv.TTFT_NS, semconv.FIRST_CHUNK_NS)
_AFTER_FIRST: Final = (semconv.CHUNK_GAPS_NS, semconv.BUFFERED)  # by whom it is told, no moment


def with_firsts_inside(spans: list[SpanRecord]) -> list[SpanRecord]:
    """Return the spans with the first chunk and token of each call on the innermost span, from its start.

        framework  |------*---------|     tells the first chunk
        client         |------------|     sent the request, and does not

    The innermost span is asked for them, being nearest to the sending; of several, the last one was answered.
    """
    parents = {span.parent_id for span in spans}
    telling = [
        index
        for index, span in enumerate(spans)
        if span.span_id in parents and any(key in span.attributes for key in _FIRSTS)
    ]
    if not telling:
        return spans
    inside = _inside(spans)
    innermost: dict[int, int] = {}
    for outer in telling:
        inner = _innermost(outer, inside, innermost)
        if inner != outer and semconv.STAGE not in spans[inner].attributes:
            spans[inner] = _told(spans[inner], spans[outer])
    return spans


def _innermost(index: int, inside: Mapping[int, int], known: dict[int, int]) -> int:
    path: dict[int, None] = {}
    while index in inside and index not in known and index not in path:
        path[index] = None
        index = inside[index]
    found = known.get(index, index)
    known.update(dict.fromkeys(path, found))
    return found


def _inside(spans: Sequence[SpanRecord]) -> dict[int, int]:
    """Return the model call's span inside another one, by that; the last one where there are several.

    Inside is what has no other stage between.
    """
    index_of = {span.span_id: index for index, span in enumerate(spans)}
    parents = [index_of.get(span.parent_id or "") for span in spans]
    stages = [None if (said := read(span)).is_guess else said.stage for span in spans]
    above: dict[int | None, int | None] = {}  # nearest span with a stage above one without
    found: dict[int, int] = {}
    for index, stage in enumerate(stages):
        if stage != semconv.GENERATION:
            continue
        path: list[int] = []
        at = parents[index]
        while at is not None and stages[at] is None and at not in above:
            above[at] = None  # until it is known; a loop of parents leads nowhere
            path.append(at)
            at = parents[at]
        outer = above.get(at, at)
        above.update(dict.fromkeys(path, outer))
        if outer is not None and outer != index and stages[outer] == semconv.GENERATION:
            last = found.setdefault(outer, index)
            if spans[index].start_ns > spans[last].start_ns:
                found[outer] = index
    return found


def _told(inner: SpanRecord, outer: SpanRecord) -> SpanRecord:
    found, offset = dict(inner.attributes), inner.start_ns - outer.start_ns
    # A last token belongs to the first one of the same writer.
    last = () if semconv.TTFT_NS in found else (semconv.LAST_TOKEN_NS,)
    for key in (*_FIRSTS, *last):
        value = outer.attributes.get(key)
        if key not in found and isinstance(value, int) and value > offset:
            found[key] = value - offset
    for key in _AFTER_FIRST:
        if (said := outer.attributes.get(key)) is not None:
            found.setdefault(key, said)
    return inner._replace(attributes=found)
