"""Lines of OTLP/JSON in the usual layout, taken apart as text: spans that are alike are decoded once.

Hotspan and the OpenTelemetry Collector write a span's ids first, then its name and times, then all else.  So
a line is cut at the ids, and what stands behind the times is decoded only where it was not seen before.
Nothing is taken for granted: every byte of a line either fits the layout or goes through the decoder.  A line
that does not fit is left to `otlp_json`.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from hotspan.analysis.drafts import Body, likeness_of
from hotspan.analysis.readers.ids import SPAN_DIGITS, TRACE_DIGITS
from hotspan.analysis.readers.items import Drafts
from hotspan.analysis.readers.otlp_shapes import Shapes
from hotspan.analysis.readers.plausible import FROM_NS, TO_NS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hotspan.analysis.readers.otlp_json import Decoder
    from hotspan.tracer.record import Resource, Scope

_CUT: Final = b'{"traceId":"'  # unescaped: in no text of anyone's
_SPAN: Final = re.compile(
    r'\{"traceId":"(.{32})","spanId":"(.{16})",(?:"parentSpanId":"(?:(.{16})"|"),)?'
    r'((?:"flags":[0-9]{1,9},)?"name":"[^"\\]*+(?:\\.[^"\\]*+)*+","kind":[0-5]),'
    r'"startTimeUnixNano":"(.{19})","endTimeUnixNano":"(.{19})",',
    re.DOTALL,
)
_N_PIECES: Final = _SPAN.groups + 1  # of a span, with what is behind its times
_ZERO: Final = "0" * SPAN_DIGITS
_NO_END: Final = "0" * 19
_LAST: Final = re.compile(r'"status":\{(?:"message":"[^"\\]*+(?:\\.[^"\\]*+)*+",?)?(?:"code":[0-9])?\}\}')
_are_digits: Final = re.compile("[0-9]*").fullmatch
_MAX_FRAMES: Final = 256
_MAX_BODIES: Final = 4_096  # that are remembered, of all writers
_MAX_BODY_CHARS: Final = 1_024  # of each: longer ones hold measures, and do not come twice


class _Group(NamedTuple):
    """The spans of one writer and scope; those of them that may come again, and their shapes."""

    resource: Resource
    scope: Scope
    bodies: dict[tuple[str, str], Body]
    shapes: Shapes


def trace_ids(lines: Iterable[bytes | memoryview]) -> set[str]:
    """Return the ids of the traces that have spans in lines of this layout."""
    found = {text[:TRACE_DIGITS] for line in lines for text in bytes(line).split(_CUT)[1:]}
    return {text.decode(errors="replace") for text in found}


class TextDecoder:
    """Takes lines apart; keeps what the lines of one file share."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._groups_of: dict[tuple[str, ...], list[_Group]] = {}
        self._n_bodies = 0

    def drafts(self, line: bytes | memoryview) -> Drafts | None:
        """Return the spans of a line; `None` where it has another layout, or something is wrong with it."""
        # Hot: whatever can be is done for all spans of a line at once; what is left is a look-up for most.
        try:
            before, *pieces = _SPAN.split(str(line, "utf-8"))
        except UnicodeDecodeError:
            return None
        traces, spans, parents, heads, starts, ends, tails = (pieces[i::_N_PIECES] for i in range(_N_PIECES))
        found = _framed(before, tails)
        if not found or not (_are_ids(traces, spans, parents) and _are_digits("".join((*starts, *ends)))):
            return None
        frame, lasts = found
        groups = self._groups(frame)
        if len(groups) != len(lasts):
            return None
        texts, bodies = list(zip(heads, tails, strict=True)), []
        for group, (first, last) in zip(groups, itertools.pairwise((0, *lasts)), strict=True):
            bodies += self._bodies(group, texts[first:last])
        times = list(map(int, starts))
        if None in bodies or _NO_END in ends or not FROM_NS <= min(times) <= max(times) <= TO_NS:
            return None
        return Drafts(zip(traces, spans, parents, times, map(int, ends), bodies, strict=True))

    def _bodies(self, group: _Group, texts: list[tuple[str, str]]) -> list[Body | None]:
        """Return what spans of one group say, but for their ids and times; `None` for one in doubt."""
        found = list(map(group.bodies.get, texts))
        for index, body in enumerate(found):
            if body is None:
                head, tail = texts[index]
                found[index] = group.shapes.body(head, tail) or self._decoded(head, tail, group)
        return found

    def _decoded(self, head: str, tail: str, group: _Group) -> Body | None:
        span = self._decoder.body(f"{{{head},{tail[:-1]}", group.resource, group.scope)
        if span is None:
            return None
        group.shapes.learn(head, tail, span)
        body = Body(span, likeness_of(span))
        if len(tail) <= _MAX_BODY_CHARS:
            if self._n_bodies >= _MAX_BODIES:
                self._forget()
            group.bodies[head, tail] = body
            self._n_bodies += 1
        return body

    def _forget(self) -> None:
        for group in itertools.chain(*self._groups_of.values()):
            group.bodies.clear()
        self._n_bodies = 0

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


def _framed(before: str, tails: list[str]) -> tuple[tuple[str, ...], list[int]] | None:
    """Return the text around the lists of spans, and how many spans there are until the end of each list.

    Args:
        before: The text before the first span.
        tails: What is behind the times of each span; of the last one of a list the text behind it is cut off.
    """
    lasts = [index for index, tail in enumerate(tails) if tail[-2:] != "},"]
    if not lasts or lasts[-1] != len(tails) - 1:
        return None
    frame = [before]
    for index in lasts:
        end = _LAST.search(tails[index])
        if end is None:
            return None
        frame.append(tails[index][end.end() :])
        tails[index] = tails[index][: end.end()] + ","
    return tuple(frame), [index + 1 for index in lasts]


def _are_ids(traces: list[str], spans: list[str], parents: list[str | None]) -> bool:
    """Return whether texts of the right lengths are ids; a span may have no parent."""
    ids = [*traces, *spans, *filter(None, parents)]
    joined = "".join(ids)
    try:
        n_bytes = len(bytes.fromhex(joined))
    except ValueError:
        return False
    if 2 * n_bytes != len(joined) or joined != joined.lower():  # blanks are no error, nor are capital letters
        return False
    return _ZERO not in joined or all(one.strip("0") for one in set(ids))
