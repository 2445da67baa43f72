"""Lines of OTLP/JSON in the usual layout, taken apart as text: spans that are alike are decoded once.

Hotspan and the OpenTelemetry Collector write a span's ids first, then its name and times, then all else.  So
a line is cut at the ids, and what stands behind the times is decoded only where it was not seen before.
Nothing is taken for granted: every byte of a line either fits the layout or goes through the decoder.  A line
that does not fit is left to `otlp_json`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from hotspan.analysis.drafts import Body, likeness_of
from hotspan.analysis.readers.ids import TRACE_DIGITS
from hotspan.analysis.readers.items import Drafts
from hotspan.analysis.readers.otlp_shapes import Shapes
from hotspan.analysis.readers.plausible import FROM_NS, TO_NS

if TYPE_CHECKING:
    from hotspan.analysis.readers.otlp_json import Decoder
    from hotspan.tracer.record import Resource, Scope

_CUT: Final = '{"traceId":"'  # unescaped: in no text of anyone's
_SPAN: Final = re.compile(
    r'((?!0{32})[0-9a-f]{32})","spanId":"((?!0{16})[0-9a-f]{16})",'
    r'(?:"parentSpanId":"(?:((?!0{16})[0-9a-f]{16})"|"),)?'
    r'((?:"flags":[0-9]{1,9},)?"name":"[^"\\]*(?:\\.[^"\\]*)*","kind":[0-5]),'
    r'"startTimeUnixNano":"([0-9]{19})","endTimeUnixNano":"([0-9]{19})",'
    r"(.*)",
    re.DOTALL,
)
_LAST: Final = re.compile(r'"status":\{(?:"message":"[^"\\]*(?:\\.[^"\\]*)*",?)?(?:"code":[0-9])?\}\}')
_CUT_BYTES: Final = _CUT.encode()
_MAX_FRAMES: Final = 256
_MAX_BODIES: Final = 4_096  # that are remembered, of one writer
_MAX_BODY_CHARS: Final = 1_024  # of each: longer ones hold measures, and do not come twice


class _Group(NamedTuple):
    """The spans of one writer and scope; those of them that may come again, and their shapes."""

    resource: Resource
    scope: Scope
    bodies: dict[tuple[str, str], Body]
    shapes: Shapes


def trace_ids(line: bytes) -> set[str]:
    """Return the ids of the traces that have spans in a line of this layout."""
    return {text[:TRACE_DIGITS].decode(errors="replace") for text in line.split(_CUT_BYTES)[1:]}


class TextDecoder:
    """Takes lines apart; keeps what the lines of one file share."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._groups_of: dict[tuple[str, ...], list[_Group]] = {}

    def drafts(self, line: bytes) -> Drafts | None:
        """Return the spans of a line; `None` where it has another layout, or something is wrong with it."""
        try:
            before, *texts = line.decode().split(_CUT)
        except UnicodeDecodeError:
            return None
        lasts = [index for index, text in enumerate(texts) if text[-2:] != "},"]
        if not texts or not lasts or lasts[-1] != len(texts) - 1:
            return None
        frame = [before]
        for index in lasts:
            end = _LAST.search(texts[index])
            if end is None:
                return None
            frame.append(texts[index][end.end() :])
            texts[index] = texts[index][: end.end()] + ","
        groups = self._groups(tuple(frame))
        if len(groups) != len(lasts):
            return None
        found, first = Drafts(), 0
        for group, last in zip(groups, lasts, strict=True):
            if not self._cut(texts[first : last + 1], group, found):
                return None
            first = last + 1
        return found

    def _cut(self, texts: list[str], group: _Group, found: Drafts) -> bool:
        """Add the spans of one group; return whether all fit the layout."""
        # Hot: one match a span, and for most spans one look-up.
        match, bodies = _SPAN.match, group.bodies
        for text in texts:
            cut = match(text)
            if cut is None:
                return False
            trace_id, span_id, parent_id, head, start_ns, end_ns, tail = cut.groups()
            body = bodies.get((head, tail)) if len(tail) <= _MAX_BODY_CHARS else None
            if body is None:
                body = group.shapes.body(head, tail) or self._decoded(head, tail, group)
                if body is None:
                    return False
            start = int(start_ns)
            if not FROM_NS <= start <= TO_NS:
                return False
            found.append((trace_id, span_id, parent_id, start, int(end_ns), body))
        return True

    def _decoded(self, head: str, tail: str, group: _Group) -> Body | None:
        span = self._decoder.body(f"{{{head},{tail[:-1]}", group.resource, group.scope)
        if span is None:
            return None
        group.shapes.learn(head, tail, span)
        body = Body(span, likeness_of(span))
        if len(tail) <= _MAX_BODY_CHARS:
            if len(group.bodies) >= _MAX_BODIES:
                group.bodies.clear()
            group.bodies[head, tail] = body
        return body

    def _groups(self, frame: tuple[str, ...]) -> list[_Group]:
        """Return the groups of a line, from the text around their spans; none where they cannot be told."""
        found = self._groups_of.get(frame)
        if found is None:
            owners = self._decoder.owners(frame)
            found = [_Group(resource, scope, {}, Shapes()) for resource, scope in owners]
            if len(self._groups_of) >= _MAX_FRAMES:
                self._groups_of.clear()
            self._groups_of[frame] = found
        return found
