"""Case 093: failures left out of percentiles flatter them, counted as infinite they break the arithmetic."""

from __future__ import annotations

import pytest
from made_traces import answer, many, request

from hotspan.analysis import analyse
from hotspan.analysis.requests import with_failures
from hotspan.exporters.reports import console
from hotspan.exporters.reports.screen import Screen


def test_percentiles_are_of_successes_and_the_share_of_failures_stands_beside_them():
    """Nine requests of 100 ms and one that failed fast: p90 is 100 ms of nine, and 10 % failed."""
    failed = request(99, 1, answer(0, 1), status="error")
    report = analyse([*many(9, lambda k: request(k, 100, answer(0, 100))), failed])
    text = console.render(report, Screen(width=200))

    assert report.request.duration_ns.n == 9
    assert report.request.duration_ns.min == 100e6
    assert report.request.error_ratio == pytest.approx(0.1)
    assert "1 error (10.0 %)" in text
    assert text.index("10.0 % of the requests failed") < text.index("p50 100 ms")


@pytest.mark.parametrize(
    ("n_ok", "n_failed", "expected"),
    [
        pytest.param(9, 1, {"p50": 100, "p90": 100, "p95": None, "p99": None}, id="one-of-ten"),
        pytest.param(95, 5, {"p50": 100, "p90": 100, "p95": 100, "p99": None}, id="five-of-a-hundred"),
        pytest.param(1, 9, {"p50": None, "p90": None, "p95": None, "p99": None}, id="nearly-all"),
        pytest.param(0, 3, {"p50": None, "p90": None, "p95": None, "p99": None}, id="all"),
        pytest.param(1, 0, {"p50": 100, "p90": 100, "p95": 100, "p99": 100}, id="none"),
        pytest.param(0, 0, {}, id="nothing"),
    ],
)
def test_with_failures_as_the_slowest_by_nearest_rank(n_ok, n_failed, expected):
    """A failed request never ends: a percentile is a duration that occurred or a failure, not inf or NaN."""
    assert with_failures([100] * n_ok, n_failed) == expected


def test_both_views_are_in_the_json():
    """A program finds the percentiles of the successes, the share, and the percentiles with failures."""
    failed = request(99, 1, answer(0, 1), status="error")
    found = analyse([*many(9, lambda k: request(k, 100, answer(0, 100))), failed]).to_dict()["request"]

    assert found["duration_ms"]["p99"] == 100
    assert found["error_ratio"] == pytest.approx(0.1)
    assert found["duration_with_failures_ms"] == {"p50": 100, "p90": 100, "p95": None, "p99": None}
