"""The model calls of a run, a row each: what is left of a call when its trace was read.

A row has a fixed length, whatever its spans say: two hundred thousand calls take some seventy megabytes.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hotspan.analysis.columns import MAX, floats
from hotspan.analysis.generation import chunk_gaps, number, tpot_ns
from hotspan.analysis.model import PHASES
from hotspan.analysis.phases import STAMPS, is_disordered, phases_of
from hotspan.tracer import semconv
from hotspan.tracer.record import Resource, SpanRecord

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterable

    from hotspan.analysis.engine import EngineAccount
    from hotspan.analysis.generation import ModelCall
    from hotspan.analysis.phases import Phases
    from hotspan.tracer.record import AttributeValue

Rows = np.ndarray[Any, np.dtype[np.void]]

NO_REQUEST: Final = -1  # a call in a trace without a whole request
NONE: Final = -1  # in a column of integers; NaN in one of floats
_MAX_NAMES: Final = 10_000
OUTCOMES: Final = ("ok", "error", "truncated", "cancelled", "abandoned", "interrupted")
BUFFERED, ESTIMATED, DISORDERED, CLIPPED, HAS_ENGINE, RETRIED = 1, 2, 4, 8, 16, 32  # flags

_TOKENS: Final = (
    semconv.INPUT_TOKENS,
    semconv.CACHED_TOKENS,
    semconv.OUTPUT_TOKENS,
    semconv.REASONING_TOKENS,
)
_MODEL_KEYS: Final = (semconv.RESPONSE_MODEL, semconv.REQUEST_MODEL)

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
    ("phases", f"{len(PHASES)}q", "<i8", len(PHASES)),
    ("ttfb", "d", "<f8", 1),  # ns
    ("first_chunk", "d", "<f8", 1),
    ("ttft", "d", "<f8", 1),
    ("ttfa", "d", "<f8", 1),
    ("tpot", "d", "<f8", 1),
    ("outcome", "h", "<i2", 1),  # in OUTCOMES
    ("flags", "h", "<i2", 1),
    ("model", "h", "<i2", 1),  # in `models`
    ("engine", "h", "<i2", 1),  # in `engines`
    ("sources", f"{len(PHASES)}h", "<i2", len(PHASES)),  # of the phases, in `sources`
)
_ROW: Final = struct.Struct("<" + "".join(code for _, code, _, _ in _FIELDS))
_DTYPE: Final = np.dtype([(name, kind) if n == 1 else (name, kind, (n,)) for name, _, kind, n in _FIELDS])
_NO_PHASES: Final = (NONE,) * len(PHASES)


@dataclass(slots=True)
class Names:
    """Numbers names in the order of first appearance."""

    codes: dict[str, int] = field(default_factory=dict)

    def code(self, name: str) -> int:
        """Return the number of a name; of more names than anyone reads, none."""
        found = self.codes.get(name)
        if found is None:
            found = len(self.codes) if len(self.codes) < _MAX_NAMES else NONE
            if found != NONE:
                self.codes[name] = found
        return found

    def known(self) -> tuple[str, ...]:
        """Return the names by number."""
        return tuple(self.codes)


@dataclass(slots=True)
class CallTable:
    """Rows of model calls, added one after the other."""

    models: Names = field(default_factory=Names)
    engines: Names = field(default_factory=Names)
    sources: Names = field(default_factory=Names)
    gaps_ns: array[float] = field(default_factory=floats)  # between chunks, of the calls that succeeded
    _data: bytearray = field(default_factory=bytearray)

    def __len__(self) -> int:
        return len(self._data) // _ROW.size

    def rows(self) -> Rows:
        """Return the rows as a structured array that shares their memory: let go of it before `add`."""
        return np.frombuffer(self._data, dtype=_DTYPE)

    def add(self, call: ModelCall, request: int) -> int:
        """Take in one call, and return its row."""
        span, last, outcome = call.span, call.last, call.outcome
        attributes = last.attributes
        phases = phases_of(span, call.attempts, call.engine) if outcome == "ok" else None
        if phases is not None:
            self.gaps_ns.extend(chunk_gaps(call))
        self._data += _ROW.pack(
            request,
            span.start_ns,
            span.duration_ns,
            call.critical_ns,
            min(call.n_attempts, MAX),
            *(_or_none(call.total(key)) for key in _TOKENS),
            *_engine_columns(call.engine),
            last.start_ns - call.attempts[0].start_ns,
            last.duration_ns,
            *(_or_none(number(last, key)) for key in STAMPS),
            *(_NO_PHASES if phases is None else (phases.ns.get(name, NONE) for name in PHASES)),
            _or_nan(number(last, semconv.TTFB_NS)),
            _or_nan(number(last, semconv.FIRST_CHUNK_NS)),
            _or_nan(number(last, semconv.TTFT_NS)),
            _or_nan(number(last, semconv.TTFA_NS)),
            _or_nan(tpot_ns(call)),
            OUTCOMES.index(outcome),
            _flags(call, is_disordered=is_disordered(attributes), phases=phases),
            self._name(self.models, call, _MODEL_KEYS),
            self._name(self.engines, call, (semconv.ENGINE,)),
            *self._source_codes(phases),
        )
        return len(self) - 1

    def _source_codes(self, phases: Phases | None) -> Iterable[int]:
        if phases is None:
            return _NO_PHASES
        code, sources = self.sources.code, phases.sources
        return [code(sources[name]) if name in sources else NONE for name in PHASES]

    def _name(self, names: Names, call: ModelCall, keys: Iterable[str]) -> int:
        values = (span.attributes.get(key) for key in keys for span in (call.last, call.span))
        name = next((value for value in values if isinstance(value, str) and value), None)
        return NONE if name is None else names.code(name)

    def join(self, row: int, engine: EngineAccount) -> None:
        """Give a call the account of its server that was found when its row was there already."""
        rows = self.rows()
        found = rows[row]
        found["queue_ns"], found["prefill_ns"], found["decode_ns"] = _engine_columns(engine)
        found["flags"] |= HAS_ENGINE
        if found["outcome"] == OUTCOMES.index("ok"):
            span, attempts = _spans_of(found)
            phases = phases_of(span, attempts, engine)
            found["phases"] = [phases.ns.get(name, NONE) for name in PHASES]
            found["sources"] = list(self._source_codes(phases))
            found["flags"] = (found["flags"] & ~CLIPPED) | (CLIPPED if phases.is_clipped else 0)


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
    return _or_none(engine.queue_ns), _or_none(engine.prefill_ns), _or_none(engine.decode_ns)


def _flags(call: ModelCall, *, is_disordered: bool, phases: Phases | None) -> int:
    flags = BUFFERED if call.last.attributes.get(semconv.BUFFERED) is True else 0
    if any(span.attributes.get(semconv.TOKENS_ESTIMATED) is True for span in call.attempts):
        flags |= ESTIMATED
    if is_disordered:
        flags |= DISORDERED
    if phases is not None and phases.is_clipped:
        flags |= CLIPPED
    if len(call.attempts) > 1:
        flags |= RETRIED
    return flags | HAS_ENGINE if call.engine is not None else flags


def _or_none(value: int | None) -> int:
    return NONE if value is None else min(value, MAX)


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value
