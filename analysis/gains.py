"""What only the twin of a model call tells: its tokens; when its first chunk came, its first and last token.

Of two spans of one call the report keeps one; the other may be the one whose writer looked at the stream.
Source: docs/definitions.md#trace-request-stage.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hotspan.analysis.call_table import PLAIN
from hotspan.analysis.generation import tpot_ns
from hotspan.analysis.phases import STAMPS
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from hotspan.analysis.call_table import CallTable
    from hotspan.tracer.record import SpanRecord

MOMENTS: Final = (
    semconv.TTFB_NS,
    semconv.FIRST_CHUNK_NS,
    semconv.TTFT_NS,
    semconv.TTFA_NS,
    semconv.LAST_TOKEN_NS,
)
READ: Final = (*MOMENTS, semconv.SEND_OFFSET_NS, semconv.HELD_STAMPS)  # all that is asked of a span
_COLUMNS: Final = ("ttfb", "first_chunk", "ttft", "ttfa")  # of the first four of these
_FIRST, _LAST, _SEND = (
    STAMPS.index(key) for key in (semconv.TTFT_NS, semconv.LAST_TOKEN_NS, semconv.SEND_OFFSET_NS)
)
_COUNTS: Final = ("prompt", "output")  # columns
_MOST: Final = 20_000  # gains that are remembered
_MOST_NAMES: Final = 3

Place = tuple[int, int]  # start and duration of a call, ns


def moments_of(inside: Sequence[SpanRecord]) -> Mapping[str, int]:
    """Return what the last span of a call that knows its stream says of it: our keys, and Unix time."""
    for span in sorted(inside, key=lambda span: -span.start_ns):
        if found := dict(_said(span)):
            return found
    return {}


def _said(span: SpanRecord) -> Iterator[tuple[str, int]]:
    sent_ns = span.start_ns + (_duration(span.attributes.get(semconv.SEND_OFFSET_NS)) or 0)
    for key in MOMENTS:
        ns = _duration(span.attributes.get(key))
        if ns is not None and not (key == semconv.LAST_TOKEN_NS and semconv.HELD_STAMPS in span.attributes):
            yield key, sent_ns + ns


def _duration(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


@dataclass(slots=True)
class Gains:
    """The tokens and the moments that calls gain from their twins, and who measured these."""

    n_calls: int = 0
    _tokens: dict[Place, dict[str, int]] = field(default_factory=dict)  # by column
    _moments: dict[Place, Mapping[str, int]] = field(default_factory=dict)
    _writers: dict[str, None] = field(default_factory=dict)

    def note(
        self, kept: Place, lacks: Mapping[str, int], offered: Mapping[str, int], by: Collection[str]
    ) -> None:
        """Remember what the call at a place gains; one that knows its first token gains nothing.

        Args:
            kept: Where the call is in the table.
            lacks: Its own moments; it gains those that are not among them.
            offered: Its twin's.
            by: The scopes of the twin.
        """
        gained = {key: ns for key, ns in offered.items() if key not in lacks}
        if not gained or semconv.TTFT_NS in lacks or len(self._moments) >= _MOST:
            return
        self._moments[kept] = {**self._moments.get(kept, {}), **gained}
        self._writers |= dict.fromkeys(sorted(by))

    def note_tokens(self, kept: Place, own: Sequence[int | None], offered: Sequence[int | None]) -> None:
        """Remember the tokens, in and out, that the call at a place does not tell, and its twin does.

        Some writers write 0 for what they do not know.
        """
        gained = {name: n for name, mine, n in zip(_COUNTS, own, offered, strict=True) if n and not mine}
        if gained and len(self._tokens) < _MOST:
            self._tokens[kept] = {**gained, **self._tokens.get(kept, {})}

    def apply(self, table: CallTable) -> None:
        """Write what was gained into the rows of their calls; before any phases are worked out."""
        if not (self._moments or self._tokens):
            return
        rows = table.rows()
        order = np.argsort(rows["start_ns"], kind="stable")
        starts = rows["start_ns"][order]
        for place in {**self._tokens, **self._moments}:
            first, behind = (int(np.searchsorted(starts, place[0], side)) for side in ("left", "right"))
            here = (rows[number] for number in order[first:behind])
            row = next((row for row in here if row["duration_ns"] == place[1]), None)
            if row is not None:
                for name, n in self._tokens.get(place, {}).items():
                    row[name] = n if row[name] <= 0 else row[name]
                self.n_calls += _write(row, self._moments.get(place, {}))

    def warnings(self) -> Iterator[str]:
        """Yield whose measure the report shows for calls that were kept under another writer's span."""
        if self.n_calls:
            names = ", ".join(list(self._writers)[:_MOST_NAMES])
            yield (
                f"model calls that were written twice, and whose first chunk or token only the span that was "
                f"left out tells: {self.n_calls}; it is shown as {names} measured it"
            )


def _write(row: Any, moments: Mapping[str, int]) -> bool:
    """Write what lies within its call into a row, counted from its send; return whether anything did."""
    stamps, duration_ns = row["stamps"], int(row["duration_ns"])
    offset = int(row["backoff_ns"]) + max(int(stamps[_SEND]), 0)
    sent_ns = int(row["start_ns"]) + offset
    found = {key: ns - sent_ns for key, ns in moments.items() if 0 <= ns - sent_ns <= duration_ns - offset}
    for key, column in zip(MOMENTS, _COLUMNS, strict=False):
        if key in found:
            row[column] = found[key]
    if row["flags"] & PLAIN:
        for key, place in ((semconv.TTFT_NS, _FIRST), (semconv.LAST_TOKEN_NS, _LAST)):
            if key in found:
                stamps[place] = found[key]
        tpot = tpot_ns(None, None, int(stamps[_FIRST]), int(stamps[_LAST]), int(row["output"]))
        if tpot is not None and np.isnan(row["tpot"]):
            row["tpot"] = tpot
    return bool(found.keys() - {semconv.LAST_TOKEN_NS})
