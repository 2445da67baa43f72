"""The text of a metrics endpoint, as far as a known server's series are in it.

Hand-written, because it runs beside the traced program and takes the GIL from it: of the thousand and more
lines of a server's endpoint, some twenty are wanted, and the others are passed over by their names.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from hotspan.tracer.engines import ENGINES, Engine, Series, engine_of_series

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINE: Final = re.compile(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)")
_LABEL: Final = re.compile(r'([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"')
_ESCAPED: Final = re.compile(r"\\(.)")
_PREFIXES: Final = tuple({re.split(r"(?<=[:_])", name, maxsplit=1)[0] for e in ENGINES for name in e.series})


class Reading(NamedTuple):
    """The present value of one series; of a histogram the sum of what was observed."""

    engine: Engine
    name: str  # without a counter's `_total`, a histogram's `_sum`
    series: Series
    labels: tuple[tuple[str, str], ...]
    value: float
    n_observed: int | None = None


def readings(text: str) -> list[Reading]:
    """Return the series of known servers in the Prometheus text format; an odd line costs itself only."""
    found: list[Reading] = []
    counts: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
    for reading, is_count in _lines(text):
        if is_count:
            counts[reading.name, reading.labels] = round(reading.value)
        else:
            found.append(reading)
    return [
        one._replace(n_observed=counts.get((one.name, one.labels))) if one.series.kind == "histogram" else one
        for one in found
    ]


def _lines(text: str) -> Iterator[tuple[Reading, bool]]:
    for line in text.splitlines():
        # Nine in ten are buckets, which nothing here reads.
        if not line.startswith(_PREFIXES) or line.partition("{")[0].endswith("_bucket"):
            continue
        if not (match := _LINE.match(line)):
            continue
        name, labels, number = match.groups()
        base, _, ending = name.rpartition("_")
        if ending not in {"total", "sum", "count"}:
            base, ending = name, ""
        if (engine := engine_of_series(base)) is None:
            base, ending = name, ""  # a gauge whose own name ends like that
            if (engine := engine_of_series(base)) is None:
                continue
        series, value = engine.series[base], _number(number)
        pairs = _labels(labels or "")
        if value is None or not _fits(series, ending) or (series.only and series.only not in pairs):
            continue
        yield Reading(engine, base, series, pairs, value), ending == "count"


def _fits(series: Series, ending: str) -> bool:
    return (ending in {"sum", "count"}) == (series.kind == "histogram")


def _labels(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, _ESCAPED.sub(_unescaped, value)) for name, value in _LABEL.findall(text))


def _unescaped(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
