"""What an engine says of itself differs by version, mixes clocks, and may be missing: null, no nonsense."""

from types import SimpleNamespace

import pytest

from hotspan.tracer import semconv
from hotspan.tracer.clients.vllm_output import account, times_of_whole

WALL_S, ENGINE_S = 1_700_000_000.0, 5_000.0  # moments of two clocks
WHOLE = {
    "arrival_time": WALL_S,
    "queued_ts": ENGINE_S,
    "scheduled_ts": ENGINE_S + 0.25,
    "first_token_ts": ENGINE_S + 0.75,
    "last_token_ts": ENGINE_S + 2.75,
    "num_generation_tokens": 5,
}
S = 1_000_000_000


def said(**changes):
    """Return metrics with something changed; None takes a field away."""
    return SimpleNamespace(**{name: v for name, v in {**WHOLE, **changes}.items() if v is not None})


def test_durations_are_differences_of_one_clock():
    """Queue, prefill and decode from the engine's stamps; the arrival is of another clock, and unused."""
    expected = {
        semconv.ACCOUNT_QUEUE_NS: S // 4,
        semconv.ACCOUNT_PREFILL_NS: S // 2,
        semconv.ACCOUNT_DECODE_NS: 2 * S,
        semconv.ACCOUNT_SOURCE: "metrics",
    }

    assert account(said()) == account(said(arrival_time=None)) == expected


@pytest.mark.parametrize(
    ("metrics", "known"),
    [
        pytest.param(None, set(), id="no-metrics"),
        pytest.param(SimpleNamespace(), set(), id="another-version"),
        pytest.param(said(queued_ts=0.0), {"prefill", "decode"}, id="no-queue"),
        pytest.param(said(queued_ts=None), {"prefill", "decode"}, id="queue-not-there"),
        pytest.param(said(first_token_ts=0.0, last_token_ts=0.0), {"queue"}, id="no-token-came"),
        pytest.param(said(queued_ts=WALL_S), {"prefill", "decode"}, id="backwards"),
        pytest.param(said(last_token_ts=ENGINE_S + 0.75), {"queue", "prefill", "decode"}, id="one-token"),
    ],
)
def test_what_is_not_said_is_not_there(metrics, known):
    """A missing stamp takes the durations away that need it, and no others."""
    found = account(metrics)

    assert {key.rpartition(".")[2].removesuffix("_ns") for key in found if key.endswith("_ns")} == known
    assert (semconv.ACCOUNT_SOURCE in found) is bool(known)


def test_without_them_a_whole_answer_has_no_token_times():
    """The client knows when the answer was there, and does not guess when its first token was."""
    assert times_of_whole(None, 3 * S, n_answers=1) == {}
    assert times_of_whole(said(), 3 * S, n_answers=1) == {
        semconv.TTFT_NS: S,
        semconv.LAST_TOKEN_NS: 3 * S,
        semconv.TPOT_NS: S / 2,
    }


def test_an_account_longer_than_the_call_gives_no_negative_time():
    """Durations of another clock may exceed the client's own by a little."""
    assert times_of_whole(said(), S, n_answers=1)[semconv.TTFT_NS] == 0
