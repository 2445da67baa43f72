"""Law 5: what Hotspan writes, it reads back as it was."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hotspan.analysis import analyse, load
from hotspan.exporters.files import FileExporter
from hotspan.tracer.record import KINDS, STATUSES, Event, Link, Resource, Scope, SpanRecord

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
counts = st.integers(0, 2**32 - 1)
times = st.integers(946_684_800_000_000_000, 2**63)  # from 2000: earlier ones are said to be in a wrong unit
hexadecimal = "0123456789abcdef"
trace_ids = st.text(hexadecimal, min_size=32, max_size=32).filter(lambda digits: digits.strip("0"))
span_ids = st.text(hexadecimal, min_size=16, max_size=16).filter(lambda digits: digits.strip("0"))
values = st.recursive(
    st.none()
    | texts
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
attributes = st.dictionaries(texts, values, max_size=3)
spans = st.builds(
    SpanRecord,
    trace_id=trace_ids,
    span_id=span_ids,
    parent_id=st.none() | span_ids,
    name=texts,
    start_ns=times,
    end_ns=st.none() | times,
    attributes=attributes,
    kind=st.sampled_from(KINDS),
    status=st.sampled_from(STATUSES),
    status_message=texts,
    events=st.lists(st.builds(Event, texts, times, attributes, counts), max_size=2).map(tuple),
    links=st.lists(st.builds(Link, trace_ids, span_ids, attributes, texts), max_size=2).map(tuple),
    resource=st.builds(Resource, attributes, texts),
    scope=st.builds(Scope, texts, texts, attributes, texts),
    trace_state=texts,
    flags=counts,
    n_dropped_attributes=counts,
    n_dropped_events=counts,
    n_dropped_links=counts,
)


def _comparable(value):
    """Return a value in which NaN equals itself and a mapping is its items."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, dict) or hasattr(value, "items"):
        return {key: _comparable(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return tuple(_comparable(inner) for inner in value)
    return value


@given(st.lists(spans, min_size=1, max_size=4))
def test_what_was_written_is_read_back(written):
    """Every field of every span, with the type of every attribute value."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.jsonl")
        FileExporter(path).export(written)
        reader = load(path)
        read = [span for trace in reader for span in trace.spans]

    assert reader.evidence.warnings == []
    # A file groups spans by process and instrumentation: their order is not kept.
    assert sorted(map(repr, map(_comparable, read))) == sorted(map(repr, map(_comparable, written)))


def test_a_loss_that_was_reported_is_read_back(tmp_path):
    """The exporter's note of lost spans reaches the report."""
    exporter = FileExporter(tmp_path / "run.jsonl")
    exporter.export([SpanRecord("1" * 32, "1" * 16, None, "request", 1, 2, {"hotspan.stage": "request"})])
    exporter.report_lost(3)

    assert analyse(load(tmp_path / "run.jsonl")).evidence.n_dropped_spans == 3
