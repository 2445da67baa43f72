"""Parquet tables of spans: Hotspan's own layout, Phoenix's data frame, LangSmith's export."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import json
import sys

import dialect_files as files
import pytest
from dialect_files import CHAT, SEARCH

from hotspan.analysis import load
from hotspan.tracer import semconv
from hotspan.tracer.errors import MissingDependencyError, TraceFileError
from hotspan.tracer.record import Event, Link, Resource, Scope, SpanRecord

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

TRACE = files.TRACE
RECORD = SpanRecord(
    TRACE,
    CHAT,
    SEARCH,
    "chat tiny",
    1_790_000_000_123_456_789,
    1_790_000_001_123_456_789,
    {"gen_ai.usage.input_tokens": 12, "ratio": 0.5, "finish": ("stop",)},
    kind="client",
    status="error",
    status_message="no answer",
    events=(Event("first_token", 1_790_000_000_223_456_789, {"n": 1}, 2),),
    links=(Link(TRACE, SEARCH, {"why": "retry"}, "a=b"),),
    resource=Resource({"service.name": "handbook"}),
    scope=Scope("my.lib", "1.2"),
    trace_state="a=b",
    flags=1,
    n_dropped_attributes=3,
)


def _row(span):
    """Return a record as a row: structures as JSON texts."""
    row = span._asdict() | {
        "attributes": json.dumps(span.attributes),
        "events": json.dumps([event._asdict() for event in span.events]),
        "links": json.dumps([link._asdict() for link in span.links]),
        "resource": json.dumps(span.resource.attributes),
    }
    return row | {"scope": None, "scope.name": span.scope.name, "scope.version": span.scope.version}


def _spans(path):
    return {span.span_id: span for trace in load(path) for span in trace.spans}


def _write(path, rows, **options):
    parquet.write_table(arrow.Table.from_pylist(rows), path, **options)
    return path


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_table_in_our_layout_gives_the_record_back(tmp_path, compression):
    """Law 5: every field, the time to the nanosecond."""
    path = _write(tmp_path / "t", [_row(RECORD)], compression=compression)

    assert _spans(path)[CHAT] == RECORD


def test_times_and_attributes_may_be_columns_of_their_own(tmp_path):
    """Timestamps of any unit, maps, and columns named `attributes.KEY`."""
    start = arrow.array([RECORD.start_ns], arrow.timestamp("ns", "UTC"))
    table = arrow.table({
        "trace_id": [TRACE],
        "span_id": [CHAT],
        "name": ["chat"],
        "start_ns": start,
        "end_ns": arrow.array([RECORD.start_ns // 1000 + 5], arrow.timestamp("us")),
        "attributes": arrow.array([[("a", "1")]], arrow.map_(arrow.string(), arrow.string())),
        "attributes.n": [7],
        "resource.service.name": ["handbook"],
    })  # fmt: skip
    parquet.write_table(table, tmp_path / "t")

    span = _spans(tmp_path / "t")[CHAT]

    assert span.start_ns == RECORD.start_ns
    assert span.end_ns == RECORD.start_ns // 1000 * 1000 + 5000
    assert span.attributes == {"a": "1", "n": 7}
    assert span.resource.attributes == {"service.name": "handbook"}


def test_the_data_frame_of_phoenix_is_read(tmp_path):
    """Flat columns with dotted names; times with microseconds, which its JSON has not."""
    rows = [files.phoenix_row(span_id, *times) for span_id, times in files.TIMES_US.items()]
    for row in rows:
        for key, offset in zip(
            ("start_time", "end_time"), files.TIMES_US[row["context.span_id"]], strict=True
        ):
            moment = dt.datetime.fromtimestamp(0, dt.UTC)
            row[key] = moment + dt.timedelta(microseconds=files.START_US + offset)
        row["events"] = [{"name": event["name"], "timestamp": event["timestamp"]} for event in row["events"]]

    spans = _spans(_write(tmp_path / "t", rows))

    assert {span_id: span.parent_id for span_id, span in spans.items()} == files.PARENTS
    assert spans[CHAT].start_ns == (files.START_US + files.TIMES_US[CHAT][0]) * 1000
    assert spans[CHAT].attributes[semconv.OPENINFERENCE_MODEL] == "tiny"
    assert [event.name for event in spans[CHAT].events] == ["new_token"]


def test_runs_of_langsmith_are_read_from_its_bulk_export(tmp_path):
    """What is an object in JSON is a JSON text in the table."""
    rows = [files.langsmith_run(span_id, *times) for span_id, times in files.TIMES_US.items()]
    for row in rows:
        row |= {key: json.dumps(row[key]) for key in ("extra", "inputs", "outputs", "events")}

    spans = _spans(_write(tmp_path / "t", rows))

    assert {span_id: span.parent_id for span_id, span in spans.items()} == files.PARENTS
    assert spans[CHAT].attributes[semconv.REQUEST_MODEL] == "tiny"


def test_a_table_on_standard_input_or_compressed_is_copied_and_read(tmp_path, monkeypatch):
    """Parquet must be sought: what cannot be, is copied first."""
    data = _write(tmp_path / "t", [_row(RECORD)]).read_bytes()
    (tmp_path / "t.gz").write_bytes(gzip.compress(data))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    assert _spans(tmp_path / "t.gz") == _spans("-") == {CHAT: RECORD}


def test_other_tables_and_damaged_ones_are_refused(tmp_path):
    """With the columns that are there, or what is wrong."""
    _write(tmp_path / "other", [{"price": 1, "day": 2}])
    whole = _write(tmp_path / "t", [_row(RECORD)]).read_bytes()
    (tmp_path / "damaged").write_bytes(whole[: len(whole) // 2])

    with pytest.raises(TraceFileError, match="it has the columns day, price"):
        list(load(tmp_path / "other"))
    with pytest.raises(TraceFileError, match=r"damaged: is Parquet, and cannot be read"):
        list(load(tmp_path / "damaged"))


def test_parquet_without_its_package_is_a_sentence(tmp_path, monkeypatch):
    """It names the extra that brings it."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "t").write_bytes(b"PAR1")

    with pytest.raises(MissingDependencyError, match=r"hotspan\[parquet\]"):
        list(load(tmp_path / "t"))
