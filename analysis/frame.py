"""The table of stages as columns, for data frames and files: one row a stage, one kind of value a column."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from hotspan.tracer.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from hotspan.analysis.model import StageRow

_MS_PER_NS: Final = 1e-6
_PERCENTILES: Final = ("mean", "min", "p50", "p90", "p95", "p99", "max")


def _per_request(name: str) -> Callable[[StageRow], Any]:
    return lambda row: None if row.calls_per_request is None else getattr(row.calls_per_request, name)


def _duration(name: str) -> Callable[[StageRow], Any]:
    return lambda row: None if row.duration_ns is None else getattr(row.duration_ns, name) * _MS_PER_NS


def _p95_interval(end: int) -> Callable[[StageRow], Any]:
    def bound(row: StageRow) -> float | None:
        interval = None if row.duration_ns is None else row.duration_ns.p95_interval
        return None if interval is None else interval[end] * _MS_PER_NS

    return bound


def _ms(name: str) -> Callable[[StageRow], Any]:
    def value(row: StageRow) -> float | None:
        ns = getattr(row, name)
        return None if ns is None else ns * _MS_PER_NS

    return value


# Column -> its type in Arrow's spelling, and how a row fills it.  Times in ms, absent is null.
COLUMNS: Final[Mapping[str, tuple[str, Callable[[StageRow], Any]]]] = {
    "stage": ("string", lambda row: row.stage),
    "calls": ("int64", lambda row: row.n_calls),
    "errors": ("int64", lambda row: row.n_errors),
    "cancelled": ("int64", lambda row: row.n_cancelled),
    **{
        f"calls_per_request_{name}": ("float64", _per_request(name)) for name in ("mean", "p50", "p95", "max")
    },
    "duration_n": ("int64", lambda row: 0 if row.duration_ns is None else row.duration_ns.n),
    **{f"duration_{name}_ms": ("float64", _duration(name)) for name in _PERCENTILES},
    "duration_p95_low_ms": ("float64", _p95_interval(0)),
    "duration_p95_high_ms": ("float64", _p95_interval(1)),
    "busy_ms": ("float64", _ms("busy_ns")),
    "wall_ms": ("float64", _ms("wall_ns")),
    "self_ms": ("float64", _ms("self_ns")),
    "critical_path_ms": ("float64", _ms("critical_path_ns")),
    "critical_path_ratio": ("float64", lambda row: row.critical_path_ratio),
}


class Stages:
    """The stages of a report: rows in order, and a table as well.

    `polars.DataFrame(report.stages)`, `pandas.DataFrame.from_arrow(report.stages)`, `pyarrow.table(...)` and
    whatever else takes the Arrow PyCapsule interface make a frame of it: one row a stage, columns as
    `columns()` has them.  That needs pyarrow (the `parquet` extra).

    Not a tuple and no `Sequence`: frame libraries would take it for a list of unknown things.

    Args:
        rows: The rows, in the order of the report.
    """

    __slots__ = ("_rows",)

    def __init__(self, rows: Iterable[StageRow] = ()) -> None:
        self._rows = tuple(rows)

    def __iter__(self) -> Iterator[StageRow]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> StageRow:
        return self._rows[index]

    def __eq__(self, other: object) -> bool:
        return self._rows == (other._rows if isinstance(other, Stages) else other)

    def __hash__(self) -> int:
        return hash(self._rows)

    def __repr__(self) -> str:
        return f"Stages({list(self._rows)!r})"

    def columns(self) -> dict[str, list[Any]]:
        """Return the columns by name: counts, times in ms, ratios in [0, 1]; `None` where nothing is."""
        return {name: [value(row) for row in self._rows] for name, (_, value) in COLUMNS.items()}

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return an Arrow C stream of the table (the Arrow PyCapsule interface).

        Raises:
            MissingDependencyError: pyarrow is not installed.
        """
        try:
            pa: Any = importlib.import_module("pyarrow")
        except ImportError as error:
            msg = "A frame of the stages needs pyarrow: pip install 'hotspan[parquet]'."
            raise MissingDependencyError(msg) from error
        schema = pa.schema([(name, pa.type_for_alias(kind)) for name, (kind, _) in COLUMNS.items()])
        stream: object = pa.table(self.columns(), schema=schema).__arrow_c_stream__(requested_schema)
        return stream
