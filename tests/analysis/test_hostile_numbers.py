"""Numbers that no clock and no tokenizer gives: the report says what it can, and nothing overflows."""

from __future__ import annotations

import json
import math

import pytest

from hotspan import analyse
from hotspan.analysis.generation import TOKENS
from hotspan.analysis.phases import STAMPS
from hotspan.tracer import semconv
from hotspan.tracer.record import Resource, Scope, SpanRecord, Trace

SCOPE = Scope(semconv.SCOPE_NAME)
NUMBERS = (
    0,
    -1,
    1 << 62,
    1 << 63,
    1 << 64,
    10**400,
    math.inf,
    -math.inf,
    math.nan,
    True,
    "7",
    None,
    (1,),
    {},
    ({},),
    b"\xff",
)
RESOURCE_KEYS = (
    semconv.OVERHEAD_NS,
    semconv.CHUNK_OVERHEAD_NS,
    semconv.SAMPLE_RATIO,
    semconv.SERVICE_NAME,
    semconv.SERVICE_INSTANCE_ID,
    semconv.HOST_NAME,
    semconv.PROCESS_PID,
)
KEYS = (
    *STAMPS,
    *TOKENS,
    semconv.TPOT_NS,
    semconv.TTFB_NS,
    semconv.TTFA_NS,
    semconv.ATTEMPTS,
    semconv.CHUNKS,
    semconv.CHUNK_GAPS_NS,
    semconv.RESPONSE_ID,
    semconv.RESPONSE_MODEL,
    semconv.OUTCOME,
)


def _span(number, stage, start, end, **changes):
    span = SpanRecord("", f"{number:016x}", None, stage, start, end, {semconv.STAGE: stage}, scope=SCOPE)
    return span._replace(**changes)


def _traces(key, value, *, n_calls=3):
    """Return two requests whose model calls all say `value`; the second one goes the long way."""
    said = {semconv.STAGE: "generation", key: value}
    for number, first in ((1, 10), (2, 5)):
        calls = [
            _span(i + 2, "generation", first + i, 90, parent_id=f"{1:016x}", attributes=said)
            for i in range(n_calls)
        ]
        spans = [_span(1, "request", 10, 100), *calls]
        yield Trace(f"{number:032x}", [span._replace(trace_id=f"{number:032x}") for span in spans])


@pytest.mark.parametrize("value", NUMBERS, ids=lambda value: str(value)[:20])
@pytest.mark.parametrize("key", KEYS)
def test_any_value_of_any_measure_leaves_a_report(key, value):
    """Of any size and any type: the calls are counted, and the JSON has no number that JSON has not."""
    report = analyse(_traces(key, value))

    assert report.generation.n_calls == 6
    json.dumps(report.to_dict(), allow_nan=False)


@pytest.mark.parametrize("value", NUMBERS, ids=lambda value: str(value)[:20])
def test_any_stage_leaves_a_report(value):
    """What is no text is no stage."""
    report = analyse(_traces(semconv.STAGE, value))

    assert report.evidence.n_spans == 8
    json.dumps(report.to_dict(), allow_nan=False)


@pytest.mark.parametrize("value", NUMBERS, ids=lambda value: str(value)[:20])
@pytest.mark.parametrize("key", RESOURCE_KEYS)
def test_any_value_of_any_resource_attribute_leaves_a_report(key, value):
    """What a writer says of itself may be anything, too."""
    resource = Resource({key: value})
    traces = [
        Trace(trace.trace_id, [span._replace(resource=resource) for span in trace.spans])
        for trace in _traces(semconv.OUTPUT_TOKENS, 5)
    ]
    report = analyse(traces)

    assert report.generation.n_calls == 6
    json.dumps(report.to_dict(), allow_nan=False)


@pytest.mark.parametrize("gaps", [(1 << 70, 5), (math.nan, 5.0), ("x", 5), (True, 5)], ids=str)
def test_one_wrong_gap_costs_itself_only(gaps):
    """The gap beside it still counts."""
    report = analyse(_traces(semconv.CHUNK_GAPS_NS, gaps))

    assert report.generation.chunk_gap_ns is not None
    assert 5.0 in {report.generation.chunk_gap_ns.min, report.generation.chunk_gap_ns.max}


@pytest.mark.parametrize("end_ns", [1 << 55, (1 << 62) - 1, 1 << 62, 1 << 63, 1 << 100])
def test_times_beyond_all_calendars_are_no_measure(end_ns):
    """Spans that fit into 64 bits are summed exactly, others are counted as invalid."""
    spans = [_span(1, "request", 1, end_ns)]
    spans += [_span(i, "generation", 1, end_ns, parent_id=f"{1:016x}") for i in range(2, 8)]

    report = analyse([Trace(f"{1:032x}", spans)])

    assert report.evidence.n_spans == 7
    assert report.evidence.n_invalid_spans == (7 if end_ns > 1 << 62 else 0)
    for row in report.stages:
        assert row.busy_ns == row.n_calls * (end_ns - 1)
