"""The model calls of a run, a row each: what is left of a call when its trace was read.

A row has a fixed length, whatever its spans say: two hundred thousand calls take some seventy megabytes.
"""

from __future__ import annotations

import math
import struct
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hotspan.analysis.columns import MAX, Longs, floats
from hotspan.analysis.generation import chunk_gaps, tpot_ns
from hotspan.analysis.model import PHASES
from hotspan.analysis.phases import STAMPS, phases_of
from hotspan.analysis.plain_phases import plain_phases, plain_sources
from hotspan.tracer import semconv
from hotspan.tracer.record import Resource, SpanRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hotspan.analysis.call_columns import CallColumns
    from hotspan.analysis.engine import EngineAccount
    from hotspan.analysis.generation import ModelCall
    from hotspan.analysis.phases import Phases
    from hotspan.tracer.record import AttributeValue

Rows = np.ndarray[Any, np.dtype[np.void]]

NO_REQUEST: Final = -1  # a call in a trace without a whole request
NONE: Final = -1  # in a column of integers; NaN in one of floats
_MAX_NAMES: Final = 10_000
OUTCOMES: Final = ("ok", "error", "truncated", "cancelled", "abandoned", "interrupted")
# Flags, a bit each.
BUFFERED, ESTIMATED, DISORDERED, CLIPPED, HAS_ENGINE, RETRIED, PLAIN, HELD = (1 << bit for bit in range(8))

_CODES: Final = {outcome: code for code, outcome in enumerate(OUTCOMES)}
FLOATS: Final = (semconv.TTFB_NS, semconv.FIRST_CHUNK_NS, semconv.TTFT_NS, semconv.TTFA_NS)
FIRST, LAST = STAMPS.index(semconv.TTFT_NS), STAMPS.index(semconv.LAST_TOKEN_NS)
MODEL_KEYS: Final = (semconv.RESPONSE_MODEL, semconv.REQUEST_MODEL)
ENGINE_KEYS: Final = (semconv.ENGINE,)

# Field, type in a struct, type in numpy, how many.
_FIELDS: Final = (
    ("request", "q", "<i8", 1),  # row of its request
    ("start_ns", "q", "<i8", 1),
    ("duration_ns", "q", "<i8", 1),  # as measured
    ("critical_ns", "q", "<i8", 1),  # of the request's critical path
    ("n_attempts", "q", "<i8", 1),
    ("prompt", "q", "<i8", 1),  # tokens
    ("cached", "q", "<i8", 1),
    ("output", "q", "<i8", 1),
    ("reasoning", "q", "<i8", 1),
    ("queue_ns", "q", "<i8", 1),  # the engine's
    ("prefill_ns", "q", "<i8", 1),
    ("decode_ns", "q", "<i8", 1),
    ("backoff_ns", "q", "<i8", 1),  # from the first attempt's start to the last one's
    ("last_ns", "q", "<i8", 1),  # duration of the last attempt
    ("stamps", f"{len(STAMPS)}q", "<i8", len(STAMPS)),  # of the last attempt
    ("ttfb", "d", "<f8", 1),  # ns
    ("first_chunk", "d", "<f8", 1),
    ("ttft", "d", "<f8", 1),
    ("ttfa", "d", "<f8", 1),
    ("tpot", "d", "<f8", 1),
    ("outcome", "h", "<i2", 1),  # in OUTCOMES
    ("flags", "h", "<i2", 1),
    ("model", "h", "<i2", 1),  # in `models`
    ("engine", "h", "<i2", 1),  # in `engines`
)
_OF_PHASES: Final = (
    ("phases", f"{len(PHASES)}q", "<i8", len(PHASES)),
    ("sources", f"{len(PHASES)}h", "<i2", len(PHASES)),  # of the phases, in `sources`
)
_ROW: Final = struct.Struct("<" + "".join(code for _, code, _, _ in _FIELDS))
_TAIL: Final = struct.Struct("<" + "".join(code for _, code, _, _ in _OF_PHASES))
_DTYPE: Final = np.dtype([
    (name, kind) if n == 1 else (name, kind, (n,)) for name, _, kind, n in (*_FIELDS, *_OF_PHASES)
])  # fmt: skip
_NO_PHASES: Final = _TAIL.pack(*[NONE] * 2 * len(PHASES))


@dataclass(slots=True)
class Names:
    """Numbers names in the order of first appearance."""

    codes: dict[str, int] = field(default_factory=dict)

    def code(self, name: str | None) -> int:
        """Return the number of a name; none of no name, nor of more names than anyone reads."""
        if name is None:
            return NONE
        found = self.codes.get(name)
        if found is None:
            found = len(self.codes) if len(self.codes) < _MAX_NAMES else NONE
            if found != NONE:
                self.codes[name] = found
        return found

    def codes_of(self, names: Sequence[str | None]) -> list[int]:
        """Return the numbers of many names."""
        code_of = {name: self.code(name) for name in dict.fromkeys(names)}
        return [code_of[name] for name in names]

    def known(self) -> tuple[str, ...]:
        """Return the names by number."""
        return tuple(self.codes)


@dataclass(frozen=True, slots=True)
class Picked:
    """Some rows of a table, a column at a time: the rows themselves are not copied."""

    rows: Rows
    where: Longs  # their numbers

    def __len__(self) -> int:
        return len(self.where)

    def __getitem__(self, column: str) -> Any:
        return self.rows[column][self.where]

    def those(self, mask: Any) -> Picked:
        """Return the rows for which a mask of as many is true."""
        return Picked(self.rows, self.where[mask])


@dataclass(slots=True)
class CallTable:
    """Rows of model calls, added one after the other."""

    models: Names = field(default_factory=Names)
    engines: Names = field(default_factory=Names)
    sources: Names = field(default_factory=Names)
    gaps_ns: array[float] = field(default_factory=floats)  # between chunks, of the calls that succeeded
    _data: bytearray = field(default_factory=bytearray)

    def __len__(self) -> int:
        return len(self._data) // _DTYPE.itemsize

    def rows(self) -> Rows:
        """Return the rows as a structured array that shares their memory: let go of it before `add`."""
        return np.frombuffer(self._data, dtype=_DTYPE)

    def every(self) -> Picked:
        """Return all rows."""
        rows = self.rows()
        return Picked(rows, np.arange(len(rows)))

    def succeeded(self) -> Picked:
        """Return the rows of the calls that succeeded."""
        rows = self.rows()
        return Picked(rows, np.flatnonzero(rows["outcome"] == OUTCOMES.index("ok")))

    def n_open_ended(self) -> int:
        """Return of how many successful calls the first token's time is known, and not the last one's."""
        rows = self.rows()
        first, last = rows["stamps"][:, FIRST], rows["stamps"][:, LAST]
        is_open = (first >= 0) & (last < 0) & (rows["decode_ns"] < 0)
        return int((is_open & (rows["outcome"] == OUTCOMES.index("ok"))).sum())

    def add(self, call: ModelCall, request: int) -> int:
        """Take in one call, and return its row."""
        span, last, outcome, attributes = call.span, call.last, call.outcome, call.last.attributes
        stamps = [or_none(attributes.get(key)) for key in STAMPS]
        first, end = stamps[FIRST], stamps[LAST]
        tokens = [or_none(tokens) for tokens in call.tokens().values()]
        flags = _flags(call) | (DISORDERED if 0 <= end < first else 0)
        phases = None
        if outcome == "ok":
            self.gaps_ns += gaps_in(attributes.get(semconv.CHUNK_GAPS_NS))
            if call.engine is None and call.is_one_span:
                flags |= PLAIN
            else:
                phases = phases_of(span, call.attempts, call.engine)
                flags |= CLIPPED if phases.is_clipped else 0
        self._data += _ROW.pack(
            request,
            span.start_ns,
            span.duration_ns,
            call.critical_ns,
            min(call.n_attempts, MAX),
            *tokens,
            *_engine_columns(call.engine),
            last.start_ns - call.attempts[0].start_ns,
            last.duration_ns,
            *stamps,
            *[or_nan(attributes.get(key)) for key in FLOATS],
            or_nan(
                tpot_ns(
                    attributes.get(semconv.TPOT_NS),
                    attributes.get(semconv.HELD_STAMPS) is not None,
                    first,
                    end,
                    or_none(attributes.get(semconv.OUTPUT_TOKENS)),
                )
            ),
            _CODES[outcome],
            flags,
            self.models.code(_name_of(call, MODEL_KEYS)),
            self.engines.code(_name_of(call, ENGINE_KEYS)),
        )
        self._data += _NO_PHASES if phases is None else self._pack(phases)
        return len(self) - 1

    def _pack(self, phases: Phases) -> bytes:
        return _TAIL.pack(
            *[phases.ns.get(name, NONE) for name in PHASES], *self._source_codes(phases.sources)
        )

    def _source_codes(self, sources: Mapping[str, str]) -> list[int]:
        code = self.sources.code
        return [code(sources[name]) if name in sources else NONE for name in PHASES]

    def extend(self, columns: CallColumns, requests: Longs) -> int:
        """Take in many calls, and return the row of the first.

        Args:
            columns: The calls.
            requests: The row of each one's request.
        """
        first, rows = len(self), columns.rows
        rows["request"] = requests
        rows["model"] = self.models.codes_of(columns.models)
        rows["engine"] = self.engines.codes_of(columns.engines)
        self._data += rows.tobytes()
        self.gaps_ns += columns.gaps_ns
        return first

    def settle(self) -> None:
        """Work out the phases of the plain calls; call it when the last call is in and joined."""
        rows = self.rows()
        plain = (rows["flags"] & PLAIN) > 0
        if plain.any():
            stamps = rows["stamps"][plain]
            phases = plain_phases(rows["duration_ns"][plain], stamps)
            rows["phases"][plain] = phases
            rows["sources"][plain] = plain_sources(phases, stamps, self.sources.code)
            rows["flags"][plain] &= ~PLAIN

    def join(self, row: int, engine: EngineAccount) -> None:
        """Give a call the account of its server that was found when its row was there already."""
        rows = self.rows()
        found = rows[row]
        found["queue_ns"], found["prefill_ns"], found["decode_ns"] = _engine_columns(engine)
        found["flags"] = (found["flags"] | HAS_ENGINE) & ~PLAIN
        if found["outcome"] == OUTCOMES.index("ok"):
            span, attempts = _spans_of(found)
            phases = phases_of(span, attempts, engine)
            found["phases"] = [phases.ns.get(name, NONE) for name in PHASES]
            found["sources"] = self._source_codes(phases.sources)
            found["flags"] = (found["flags"] & ~CLIPPED) | (CLIPPED if phases.is_clipped else 0)


def blank_rows(n: int) -> Rows:
    """Return rows of which nothing is known."""
    rows = np.zeros(n, dtype=_DTYPE)
    for name in ("queue_ns", "prefill_ns", "decode_ns", "phases", "sources"):
        rows[name] = NONE
    return rows


def _name_of(call: ModelCall, keys: Iterable[str]) -> str | None:
    spans = (call.span,) if call.is_one_span else (call.last, call.span)
    for key in keys:
        for span in spans:
            value = span.attributes.get(key)
            if isinstance(value, str) and value:
                return value
    return None


def gaps_in(gaps: object) -> array[float]:
    """Return the times between a call's chunks, of what its span says."""
    try:
        if isinstance(gaps, tuple | list):
            return array("d", gaps)
    except (TypeError, OverflowError):
        pass
    return floats(min(gap, MAX) for gap in chunk_gaps(gaps))


def _spans_of(row: Any) -> tuple[SpanRecord, list[SpanRecord]]:
    """Return as much of a call's spans as its phases rest on."""
    start, duration, backoff = int(row["start_ns"]), int(row["duration_ns"]), int(row["backoff_ns"])
    stamps: dict[str, AttributeValue] = {
        key: int(value) for key, value in zip(STAMPS, row["stamps"], strict=True) if value != NONE
    }
    call = SpanRecord("", "", None, "", start, start + duration, resource=Resource())
    last = call._replace(
        start_ns=start + backoff, end_ns=start + backoff + int(row["last_ns"]), attributes=stamps
    )
    return call, [call, last] if row["flags"] & RETRIED else [last]


def _engine_columns(engine: EngineAccount | None) -> tuple[int, int, int]:
    if engine is None:
        return NONE, NONE, NONE
    return or_none(engine.queue_ns), or_none(engine.prefill_ns), or_none(engine.decode_ns)


def _flags(call: ModelCall) -> int:
    last = call.last.attributes
    flags = BUFFERED if last.get(semconv.BUFFERED) is True else 0
    if last.get(semconv.HELD_STAMPS) is not None:
        flags |= HELD
    for span in call.attempts:
        if span.attributes.get(semconv.TOKENS_ESTIMATED) is True:
            flags |= ESTIMATED
    if len(call.attempts) > 1:
        flags |= RETRIED
    return flags if call.engine is None else flags | HAS_ENGINE


def or_none(value: object) -> int:
    """Return a count, cut if it is too large; any other value is none."""
    if not isinstance(value, int) or value is True or value is False or value < 0:
        return NONE
    return min(MAX, value)


def or_nan(value: object) -> float:
    """Return a number that is not negative, cut if it is too large; any other value is none."""
    if not isinstance(value, int | float) or value is True or value is False or not value >= 0:
        return math.nan
    return min(MAX, value)
