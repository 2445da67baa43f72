"""The slowest requests against all: stages, phases, tokens, calls, and what ran when they started."""

from __future__ import annotations

import pytest
from made_traces import Call, answer, engine, many, request

from hotspan.analysis import analyse
from hotspan.tracer.errors import ConfigurationError

MS = 1_000_000
SEARCH = Call("retrieval", "search", 0, 100)


def mixed(number):
    """Ninety requests of 200 ms; ten of 1200 that start beside others, queue for 1 s and write more."""
    if number <= 90:
        return request(number, 200, SEARCH, answer(100, 200, prompt=10, output=5))
    wait = answer(100, 1200, ttft=1010, last=1100, prompt=10, output=50)
    return request(number, 1200, SEARCH, wait, engine(1000, 10, 90), at=5_000_000 + number)


def test_the_slowest_differ_in_what_they_differ_in():
    """The queue and the longer answers; retrieval is as long for all; each met those that began before it."""
    tail = analyse(many(100, mixed), tail=90).tail

    assert (tail.n_requests, tail.n_all, tail.slow_ns) == (10, 100, 1200 * MS)
    parts = {(part.stage, part.phase): part for part in tail.parts}
    assert tail.parts[0].stage == "generation"
    assert parts["generation", "queue"].slow_ns == pytest.approx(1000 * MS)
    assert parts["generation", "queue"].all_ns == pytest.approx(100 * MS)
    assert parts["retrieval", None].slow_ns == parts["retrieval", None].all_ns == 100 * MS
    factors = {factor.name: (factor.all_mean, factor.slow_mean) for factor in tail.factors}
    assert factors["model_calls"] == (1, 1)
    assert factors["output_tokens"] == (9.5, 50)
    assert factors["prompt_tokens"] == (10, 10)
    assert factors["requests_in_flight_at_start"] == (0.45, 4.5)


def test_the_shares_of_all_and_of_the_slowest_add_up():
    """Stages and the unattributed rest are the whole of either."""
    tail = analyse(many(100, mixed)).tail
    stages = [part for part in tail.parts if part.phase is None]

    assert sum(part.all_ratio for part in stages) == pytest.approx(1)
    assert sum(part.slow_ratio for part in stages) == pytest.approx(1)


@pytest.mark.parametrize(
    "beside",
    [
        pytest.param((), id="in-columns"),
        pytest.param((Call(None, "helper", 0, 10, inside="theirs"),), id="one-by-one"),
    ],
)
def test_a_stage_of_the_users_that_is_called_unattributed_is_a_stage(beside):
    """Half of each request lies in it, and a quarter in no stage: two figures, of which none is the other."""
    theirs = Call("unattributed", "theirs", 0, 100), *beside
    report = analyse(many(100, lambda number: request(number, 200, *theirs, answer(100, 150))))
    stage = next(row for row in report.stages if row.stage == "unattributed")
    ratios = [part.all_ratio for part in report.tail.parts if part.phase is None]

    assert stage.critical_path_ratio == pytest.approx(0.5)
    assert report.unattributed.critical_path_ratio == pytest.approx(0.25)
    assert sorted(ratios) == pytest.approx([0.25, 0.25, 0.5])
    assert {part.to_dict()["stage"] for part in report.tail.parts} == {"unattributed", "generation"}


def test_requests_in_flight_are_the_others():
    """One that starts while two run meets two; the one that ends as it starts is gone."""
    traces = [
        request(1, 100, at=0),
        request(2, 200, at=50),
        request(3, 500, at=90),
        request(4, 300, at=100),
    ]

    tail = analyse([*traces, request(5, 10, answer(0, 10), at=5_000)], tail=99).tail

    (factor,) = (one for one in tail.factors if one.name == "requests_in_flight_at_start")
    assert factor.slow_mean == 2
    assert factor.all_mean == pytest.approx((0 + 1 + 2 + 2 + 0) / 5)


def test_failed_requests_are_not_slow_ones():
    """A time-out is a failure, not a tail; nothing that succeeded, no tail."""
    failed = request(3, 9000, answer(0, 9000), status="error")

    assert analyse([*many(2, mixed), failed]).tail.slow_ns == 200 * MS
    assert analyse([failed]).tail is None


@pytest.mark.parametrize("percentile", [0, 100, -1, 950, float("nan"), "x", None, True])
def test_a_percentile_is_between_0_and_100(percentile):
    """At 100 nothing would be slower."""
    with pytest.raises(ConfigurationError, match="between 0 and 100"):
        analyse([], tail=percentile)
