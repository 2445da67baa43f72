"""Case 082: microseconds in Jaeger's JSON, nanoseconds as texts in OTLP's, and numbers that were floats."""

from __future__ import annotations

import json

import pytest

from hotspan.analysis import analyse, load
from hotspan.tracer.errors import UnusableTraceError

TRACE = "7c1f0e9a52b84d6e9d0b3a4c5e6f7081"
SPAN = "b1b2c3d4e5f60718"
START_NS, DURATION_NS = 1_790_000_000_123_456_000, 44_321_000


def _otlp(convert):
    span = {
        "traceId": TRACE,
        "spanId": SPAN,
        "name": "answer",
        "startTimeUnixNano": convert(START_NS),
        "endTimeUnixNano": convert(START_NS + DURATION_NS),
    }
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


def _jaeger(convert=int):
    span = {
        "traceID": TRACE,
        "spanID": SPAN,
        "operationName": "answer",
        "startTime": convert(START_NS // 1000),
        "duration": convert(DURATION_NS // 1000),
    }
    return {"data": [{"traceID": TRACE, "spans": [span], "processes": {}}]}


def _read(tmp_path, document):
    path = tmp_path / "traces.json"
    path.write_text(json.dumps(document))
    reader = load(path)
    ((span,),) = (trace.spans for trace in reader)
    return span, reader.evidence


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(_otlp(str), id="otlp-texts"),
        pytest.param(_otlp(int), id="otlp-numbers"),
        pytest.param(_otlp(float), id="otlp-floats"),
        pytest.param(_jaeger(), id="jaeger-numbers"),
        pytest.param(_jaeger(float), id="jaeger-floats"),
        pytest.param(_jaeger(str), id="jaeger-texts"),
    ],
)
def test_the_same_trace_in_every_unit_has_the_same_duration(tmp_path, document):
    """To a microsecond, also where 1.79e18 went through a float, and nothing is said."""
    span, evidence = _read(tmp_path, document)

    assert abs(span.duration_ns - DURATION_NS) < 1_000
    assert abs(span.start_ns - START_NS) < 1_000
    assert evidence.warnings == []


@pytest.mark.parametrize("n_digits", [3, 6])
def test_an_epoch_that_is_off_by_a_thousand_is_reported(tmp_path, n_digits):
    """The report itself says it: nothing is corrected in silence."""
    span, evidence = _read(tmp_path, _otlp(lambda number: str(number)[:-n_digits]))

    assert span.duration_ns == DURATION_NS // 10**n_digits
    (warning,) = evidence.warnings
    assert str(tmp_path / "traces.json") in warning
    assert f"{10**n_digits} times too short" in warning
    report = analyse(load(tmp_path / "traces.json"))
    assert warning in report.evidence.warnings


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(_jaeger(lambda number: number * 1000), id="jaeger"),
        pytest.param(_otlp(lambda number: str(number * 1000)), id="otlp"),
    ],
)
def test_an_epoch_that_is_a_thousand_times_too_large_is_no_time(tmp_path, document):
    """No such nanosecond exists in OTLP: the span is left out and counted, and nothing is left to report."""
    (tmp_path / "t.json").write_text(json.dumps(document))
    reader = load(tmp_path / "t.json")

    with pytest.raises(UnusableTraceError, match="the writer's unit is not that of the format"):
        analyse(reader)

    assert reader.evidence.n_refused_spans == 1
