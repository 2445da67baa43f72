"""Parquet: tables with a row for each span, as Hotspan, Phoenix and LangSmith export them.

The columns tell the dialect, as the keys of a JSON object do.  A batch of rows is in memory at a time.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from hotspan.analysis.readers import sniff
from hotspan.analysis.readers.values import Nanoseconds
from hotspan.tracer.errors import MissingDependencyError, TraceFileError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotspan.analysis.readers.items import Item
    from hotspan.analysis.readers.source import Source

_BATCH_ROWS: Final = 1024
_INDEX: Final = "__index_level_0__"  # where pandas keeps an index without a name


def read(source: Source) -> Iterator[Item]:
    """Yield the spans of a Parquet file.

    Raises:
        TraceFileError: It is damaged, or its columns are not those of a known table of spans.
        MissingDependencyError: pyarrow is not installed.
    """
    arrow, parquet = _pyarrow(source.name)
    with source.file() as file:
        try:
            table = parquet.ParquetFile(file)
            columns = frozenset(table.schema_arrow.names)
            dialect = sniff.dialect_of_keys(columns | ({sniff.SPAN_ID} if _INDEX in columns else set()))
            if dialect is None:
                raise _unknown(source, columns)
            yield from dialect.read(enumerate(_rows(arrow, table), start=1))
        except (arrow.ArrowException, OSError) as exc:
            msg = f"{source.name}: is Parquet, and cannot be read ({exc}). Write or copy the file again."
            raise TraceFileError(msg) from exc


def _rows(arrow: Any, table: Any) -> Iterator[dict[str, Any]]:
    for batch in table.iter_batches(batch_size=_BATCH_ROWS):
        columns = {
            name: _values(arrow, column) for name, column in zip(batch.schema.names, batch, strict=True)
        }
        if _INDEX in columns:
            columns.setdefault(sniff.SPAN_ID, columns[_INDEX])
        for index in range(batch.num_rows):
            yield {name: column[index] for name, column in columns.items()}


def _values(arrow: Any, column: Any) -> list[Any]:
    if not arrow.types.is_timestamp(column.type):
        found: list[Any] = column.to_pylist()
        return found
    # As integers: Python's own times have no nanoseconds.
    nanos = column.cast(arrow.timestamp("ns")).cast(arrow.int64()).to_pylist()
    return [None if value is None else Nanoseconds(value) for value in nanos]


def _unknown(source: Source, columns: frozenset[str]) -> TraceFileError:
    shown = ", ".join(sorted(columns)[:8])
    msg = (
        f"{source.name}: is Parquet, but of no known table of spans; it has the columns {shown}. Hotspan "
        "reads its own, Phoenix's data frame of spans (with context.span_id and context.trace_id) and "
        "LangSmith's runs."
    )
    return TraceFileError(msg)


def _pyarrow(name: str) -> tuple[Any, Any]:
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError as exc:
        msg = f'{name}: is Parquet, and pyarrow is not installed. pip install "hotspan[parquet]"'
        raise MissingDependencyError(msg) from exc
