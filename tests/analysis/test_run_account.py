"""The phases of a run, divided by what the engine's metrics endpoint counted meanwhile."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotspan.analysis.model import PHASES, PhaseRow
from hotspan.analysis.run_account import BY_ENDPOINT, divided
from hotspan.analysis.telemetry import EngineTelemetry

MS = 1_000_000


def row(name, mean_ms, *, source="client", n_calls=10):
    """Return a phase of ten calls, with a share of request time of a thousandth for each millisecond."""
    return PhaseRow(
        name, mean_ms * MS, mean_ms * MS, mean_ms * MS, mean_ms / 1000, {source: n_calls}, n_calls
    )


def engine(**said):
    """Return what ten requests of 30 ms queue and 20 ms prefill left at an endpoint."""
    return EngineTelemetry(
        "vllm", "h:1", **{"n_requests": 10, "queue_ns": 300 * MS, "prefill_ns": 200 * MS, **said}
    )


def means(rows):
    """Return the means in milliseconds."""
    return {one.name: pytest.approx(one.mean_ns / MS) for one in rows}


RUN = (row("send", 1), row("first_token_wait", 80), row("decode", 300))


def divide(rows=RUN, *engines, n_attempts=10, n_tokens=640):
    """Return the divided phases of ten calls."""
    return divided(rows, engines or [engine()], n_calls=10, n_attempts=n_attempts, n_tokens=n_tokens)


def test_the_wait_for_the_first_token_is_divided():
    """Means and shares go on adding up; there are no percentiles of what no call says."""
    rows = divide()

    assert means(rows) == {"send": 1, "server_before_engine": 30, "queue": 30, "prefill": 20, "decode": 300}
    assert [one.name for one in rows] == [name for name in PHASES if name in means(rows)]
    queue = next(one for one in rows if one.name == "queue")
    assert (queue.p50_ns, queue.p95_ns, queue.sources) == (None, None, {BY_ENDPOINT: 10})
    assert sum(one.critical_path_ratio for one in rows) == pytest.approx(0.381)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({"n_requests": 25}, id="others-were-served-too"),
        pytest.param({"n_requests": 0}, id="counted-nothing"),
        pytest.param({"prefill_ns": None}, id="no-prefill"),
        pytest.param({"n_requests": None, "output_tokens": None}, id="nothing-to-compare-with"),
        pytest.param({"n_requests": None, "output_tokens": 9000}, id="other-tokens"),
    ],
)
def test_an_endpoint_that_counted_something_else_divides_nothing(said):
    """Whose time it was must be known."""
    assert divide(RUN, engine(**said)) == RUN


def test_calls_with_an_account_of_their_own_are_left_alone():
    """Two routes are not mixed."""
    own = (*RUN, row("queue", 5, source="response's metrics", n_calls=3))

    assert divide(own) == own


def test_without_a_queue_the_rest_is_not_the_servers():
    """llama.cpp's endpoint knows no queue and no number of requests: its tokens tell whose they were."""
    rows = divide(RUN, engine(n_requests=None, queue_ns=None, output_tokens=640))

    assert means(rows) == {"send": 1, "first_token_wait": 60, "prefill": 20, "decode": 300}


def test_several_endpoints_are_added_up():
    """Two replicas served five calls each."""
    half = engine(n_requests=5, queue_ns=150 * MS, prefill_ns=100 * MS)

    assert means(divide(RUN, half, half)) == means(divide())


def test_a_run_without_samples_stays_as_it_is():
    """Nothing was sampled."""
    assert divided(RUN, [], n_calls=10, n_attempts=10, n_tokens=0) == RUN


@given(
    st.floats(1, 1e12),
    st.none() | st.integers(0, 10**13),
    st.none() | st.integers(0, 10**13),
    st.integers(1, 50),
    st.integers(0, 60),
)
def test_the_means_go_on_adding_up(wait_ns, queue_ns, prefill_ns, n_waiting, n_counted):
    """Whatever an endpoint counted, no phase is negative and the sum is the same."""
    wait = PhaseRow("first_token_wait", wait_ns, None, None, 0.5, {"client": n_waiting}, n_waiting)
    said = engine(n_requests=n_counted, queue_ns=queue_ns, prefill_ns=prefill_ns)

    rows = divided([wait], [said], n_calls=50, n_attempts=50, n_tokens=0)

    assert sum(one.mean_ns for one in rows) == pytest.approx(wait_ns)
    assert all(one.mean_ns >= 0 for one in rows)
    assert sum(one.critical_path_ratio for one in rows) == pytest.approx(0.5)
