"""Model calls of one span each, many at once: their rows in the table of calls, made column by column.

The twin of `CallTable.add` for such calls; the tests hold the two against each other.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hotspan.analysis.call_table import (
    BUFFERED,
    DISORDERED,
    ENGINE_KEYS,
    ESTIMATED,
    FIRST,
    FLOATS,
    HELD,
    LAST,
    MODEL_KEYS,
    NO_REQUEST,
    NONE,
    OUTCOMES,
    PLAIN,
    blank_rows,
    gaps_in,
    or_nan,
    or_none,
)
from hotspan.analysis.columns import MAX, Floats, Longs, floats
from hotspan.analysis.drafts import BODY, END, START
from hotspan.analysis.engine import NAMING, EngineAccount, account_in_response
from hotspan.analysis.generation import MIN_TOKENS, TOKENS, ModelCall, tpot_ns
from hotspan.analysis.patterns.refusals import may_refuse
from hotspan.analysis.phases import STAMPS
from hotspan.tracer import semconv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotspan.analysis.call_table import Rows
    from hotspan.analysis.classify import Outcome
    from hotspan.analysis.drafts import Bodies, Draft

_TOKEN_FIELDS: Final = ("prompt", "cached", "output", "reasoning")
_FLOAT_FIELDS: Final = ("ttfb", "first_chunk", "ttft", "ttfa")


@dataclass(slots=True)
class CallColumns:
    """Calls of one span each, in the order of their rows.

    Attributes:
        rows: As in the table, but for what is not known before they are in it: request, names.
        models: The model of each.
        engines: The engine of each.
        names: Under which its server may know it, of each: by attribute.
        gaps_ns: Between the chunks, of those that succeeded.
        accounts: What a server said in its answer, by position.
        refusals: Of those with a failed attempt: why each failed, and how many attempts there were.
    """

    rows: Rows
    models: Sequence[str | None]
    engines: Sequence[str | None]
    names: dict[str, Sequence[object]]
    gaps_ns: array[float] = field(default_factory=floats)
    accounts: list[tuple[int, EngineAccount]] = field(default_factory=list)
    refusals: list[ModelCall] = field(default_factory=list)


def columns_of(drafts: Sequence[Draft], bodies: Bodies, outcomes: Sequence[Outcome]) -> CallColumns:
    """Return some model calls as columns.

    Args:
        drafts: The span of each call.
        bodies: Of these.
        outcomes: How each ended.
    """
    found = CallColumns(
        _rows(drafts, bodies, outcomes),
        _texts(bodies, MODEL_KEYS),
        _texts(bodies, ENGINE_KEYS),
        {key: bodies.column(key) for key in NAMING if bodies.have(key)},
    )
    for gaps in bodies.arrays(semconv.CHUNK_GAPS_NS, [outcome == "ok" for outcome in outcomes]):
        if gaps is not None:
            found.gaps_ns += (
                array("d", gaps.astype(float).tobytes()) if isinstance(gaps, np.ndarray) else gaps_in(gaps)
            )
    for position, source in enumerate(bodies.column(semconv.ACCOUNT_SOURCE)):
        if source is not None and (account := account_in_response([drafts[position][BODY].span])):
            found.accounts.append((position, account))
    found.refusals = _refusals(drafts, bodies)
    return found


def _refusals(drafts: Sequence[Draft], bodies: Bodies) -> list[ModelCall]:
    statuses = bodies.integers(semconv.HTTP_STATUS)
    if statuses is not None and not any(may_refuse(span, int(statuses.max())) for span in bodies.templates()):
        return []  # nearly always: nothing is looked at one by one
    of_calls = zip(drafts, bodies.column(semconv.HTTP_STATUS), strict=True)
    refused = [body.span for (*_, body), status in of_calls if may_refuse(body.template, status)]
    return [ModelCall(span, [span]) for span in refused]


def _texts(bodies: Bodies, keys: Sequence[str]) -> Sequence[str | None]:
    """Return the first text that is under one of the keys, of each call."""
    columns = [bodies.column(key) for key in keys if bodies.have(key)]
    if not columns:
        return [None] * bodies.n
    if all(columns[0]) and set(map(type, columns[0])) == {str}:
        return columns[0]  # type: ignore[return-value]  # as just told
    return [
        next((value for value in values if isinstance(value, str) and value), None)
        for values in zip(*columns, strict=True)
    ]


def _rows(drafts: Sequence[Draft], bodies: Bodies, outcomes: Sequence[Outcome]) -> Rows:
    rows = blank_rows(len(drafts))
    rows["request"] = NO_REQUEST
    rows["start_ns"] = [draft[START] for draft in drafts]
    rows["duration_ns"] = np.array([draft[END] for draft in drafts], dtype=np.int64) - rows["start_ns"]
    rows["last_ns"] = rows["duration_ns"]
    rows["n_attempts"] = np.maximum(integers(bodies, semconv.ATTEMPTS), 1)
    for name, key in zip(_TOKEN_FIELDS, TOKENS, strict=True):
        rows[name] = integers(bodies, key)
    for number, key in enumerate(STAMPS):
        rows["stamps"][:, number] = integers(bodies, key)
    for name, key in zip(_FLOAT_FIELDS, FLOATS, strict=True):
        rows[name] = _floats(bodies, key)
    first, last = rows["stamps"][:, FIRST], rows["stamps"][:, LAST]
    rows["tpot"] = _tpots(bodies, first, last, rows["output"])
    rows["outcome"] = list(map(OUTCOMES.index, outcomes))
    rows["flags"] = (
        BUFFERED * _is_true(bodies, semconv.BUFFERED)
        | ESTIMATED * _is_true(bodies, semconv.TOKENS_ESTIMATED)
        | HELD * _is_said(bodies, semconv.HELD_STAMPS)
        | DISORDERED * _is_disordered(first, last)
        | PLAIN * (rows["outcome"] == OUTCOMES.index("ok"))
    )
    return rows


def integers(bodies: Bodies, key: str) -> Longs:
    """Return an attribute of each call, `NONE` where it is no count."""
    found = bodies.integers(key)
    if found is not None:
        return np.where(found < 0, NONE, np.minimum(found, MAX))
    values = bodies.column(key)
    kinds = set(map(type, values))
    if kinds == {int}:  # nearly always else: nothing is looked at one by one
        try:
            found = np.array(values, dtype=np.int64)
        except OverflowError:
            pass
        else:
            return np.where(found < 0, NONE, np.minimum(found, MAX))
    if kinds == {NoneType}:
        return np.full(len(values), NONE)
    return np.array([or_none(value) for value in values], dtype=np.int64)


def _floats(bodies: Bodies, key: str) -> Floats:
    """Return an attribute of each call, not a number where it is none or negative."""
    whole = bodies.integers(key)
    if whole is not None:
        return np.where(whole >= 0, np.minimum(whole, MAX), np.nan)
    values = bodies.column(key)
    kinds = set(map(type, values))
    if kinds == {NoneType}:
        return np.full(len(values), np.nan)
    if kinds in _NUMBERS:
        try:
            found = np.array(values, dtype=np.float64)
        except OverflowError:
            pass
        else:
            return np.where(found >= 0, np.minimum(found, MAX), np.nan)
    return np.array([or_nan(value) for value in values])


_NUMBERS: Final[tuple[set[type], ...]] = ({int}, {float}, {int, float})


def _tpots(bodies: Bodies, first: Longs, last: Longs, n_tokens: Longs) -> Floats:
    """Return what `tpot_ns` does, of each call."""
    said, held = bodies.column(semconv.TPOT_NS), bodies.column(semconv.HELD_STAMPS)
    kinds = set(map(type, said))
    if kinds == {float}:
        tpots = np.array(said)
        return np.where((tpots > 0) & ~_is_disordered(first, last), np.minimum(tpots, MAX), np.nan)
    if kinds == {NoneType} and not bodies.have(semconv.HELD_STAMPS):
        is_known = (np.minimum(first, last) >= 0) & (n_tokens >= MIN_TOKENS)
        tpots = (last - first) / np.where(is_known, n_tokens - 1, 1)
        return np.where(is_known & (tpots > 0), tpots, np.nan)
    of_calls = zip(said, held, first.tolist(), last.tolist(), n_tokens.tolist(), strict=True)
    return np.array([or_nan(tpot_ns(a, b is not None, c, d, n)) for a, b, c, d, n in of_calls])


def _is_disordered(first: Longs, last: Longs) -> np.ndarray[Any, np.dtype[np.bool_]]:
    disordered: np.ndarray[Any, np.dtype[np.bool_]] = (last >= 0) & (last < first)
    return disordered


def _is_true(bodies: Bodies, key: str) -> Longs:
    if not bodies.have(key):
        return np.zeros(bodies.n, dtype=np.int64)
    return np.array([value is True for value in bodies.column(key)], dtype=np.int64)


def _is_said(bodies: Bodies, key: str) -> Longs:
    if not bodies.have(key):
        return np.zeros(bodies.n, dtype=np.int64)
    return np.array([value is not None for value in bodies.column(key)], dtype=np.int64)
