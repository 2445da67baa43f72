"""The stages of a report as a data frame, through the Arrow PyCapsule interface."""

from __future__ import annotations

import sys

import pytest
from made_traces import Call, answer, many, request

from hotspan.analysis import analyse
from hotspan.analysis.frame import COLUMNS
from hotspan.tracer.errors import MissingDependencyError


@pytest.fixture
def stages():
    """Twenty requests of a search and an answer."""
    return analyse(many(20, lambda k: request(k, 100, Call("retrieval", "s", 0, 40), answer(40, 100)))).stages


def test_it_is_a_sequence_of_rows_as_well(stages):
    """Iterating, indexing and comparing are those of a tuple of rows."""
    assert [row.stage for row in stages] == ["request", "generation", "retrieval"]
    assert (len(stages), stages[1].stage, stages[-1].stage) == (3, "generation", "retrieval")
    assert stages == tuple(stages)
    assert stages != tuple(stages)[:1]


def test_an_arrow_table(stages):
    """One row a stage, promised columns and types, null where there is nothing."""
    pa = pytest.importorskip("pyarrow")

    table = pa.table(stages)

    assert {field.name: str(field.type) for field in table.schema} == {
        name: {"float64": "double"}.get(kind, kind) for name, (kind, _) in COLUMNS.items()
    }
    assert table["stage"].to_pylist() == ["request", "generation", "retrieval"]
    assert table["critical_path_ratio"].to_pylist() == [None, pytest.approx(0.6), pytest.approx(0.4)]
    assert table["duration_p50_ms"].to_pylist() == [100, 60, 40]
    assert table["duration_p95_low_ms"].to_pylist() == [None] * 3  # too few requests for an interval


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_a_frame_of(library, stages):
    """Polars and pandas make one by themselves."""
    pytest.importorskip("pyarrow")
    module = pytest.importorskip(library)
    make = module.DataFrame if library == "polars" else module.DataFrame.from_arrow

    frame = make(stages)

    assert list(frame.columns) == list(COLUMNS)
    assert list(frame["calls"]) == [20, 20, 20]


def test_a_run_without_stages_is_an_empty_frame():
    """The columns and their types are there, no row."""
    pa = pytest.importorskip("pyarrow")

    assert pa.table(analyse([]).stages).num_rows == 0


def test_without_pyarrow_it_says_what_to_install(stages, monkeypatch):
    """The extra is named; columns come without it."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as Python marks what is not there

    with pytest.raises(MissingDependencyError, match=r"hotspan\[parquet\]"):
        stages.__arrow_c_stream__()
    assert stages.columns()["calls"] == [20, 20, 20]
