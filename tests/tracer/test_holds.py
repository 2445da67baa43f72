"""Streams whose source went on while the consumer held them: told from what the pulls took."""

import pytest

import hotspan
from hotspan.analysis import analyse
from hotspan.exporters.reports.evidence import all_troubles
from hotspan.testing import capture
from hotspan.tracer import clock as process_clock
from hotspan.tracer import semconv
from hotspan.tracer.holds import n_at_once, was_held
from hotspan.tracer.record import Trace
from hotspan.tracer.testing import FakeClock

MS = 1_000_000
N = 6


class Source:
    """Makes a token each 10 ms: only when asked to, or all the time, as a network brings them."""

    def __init__(self, clock, *, goes_on):
        self.clock, self.goes_on = clock, goes_on

    def tokens(self, as_item=str):
        """Yield the tokens; one that is there already takes 20 us."""
        due_ns = process_clock.now_ns()
        for number in range(N):
            due_ns = (due_ns if self.goes_on else process_clock.now_ns()) + 10 * MS
            self.clock.advance(ns=max(20_000, due_ns - process_clock.now_ns()))
            yield as_item(number)


def chunk(number):
    """Return a token as a chunk of the OpenAI shape."""
    end = "stop" if number == N - 1 else None
    return {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": end}]}


def consumed(hold_ms, *, goes_on, as_item=str):
    """Return the span of a stream whose consumer holds each item, or the one that `hold_ms` names."""
    with FakeClock() as clock, capture() as captured:
        source = Source(clock, goes_on=goes_on)
        for number, _ in enumerate(hotspan.generation(source.tokens)(as_item)):
            clock.advance(ms=hold_ms.get(number, 0) if isinstance(hold_ms, dict) else hold_ms)
    return captured.spans[0]


@pytest.mark.parametrize("as_item", [str, chunk], ids=["text", "chunks"])
@pytest.mark.parametrize(
    ("hold_ms", "goes_on", "n_held"),
    [
        pytest.param(50, True, N - 1, id="slow-consumer-of-a-network"),
        pytest.param({2: 500}, True, 1, id="one-hold"),
        pytest.param(50, False, None, id="the-source-waits-too"),
        pytest.param(0, True, None, id="no-hold"),
        pytest.param({N - 1: 500}, True, None, id="hold-after-the-last"),
    ],
)
def test_tokens_that_came_at_once_after_a_hold_are_counted(hold_ms, goes_on, n_held, as_item):
    """A source that went on is marked; one that stood still with the consumer has true stamps, and is not."""
    said = consumed(hold_ms, goes_on=goes_on, as_item=as_item).attributes

    assert said.get(semconv.HELD_STAMPS) == n_held
    assert said[semconv.TTFT_NS] == 10 * MS
    if not goes_on:
        assert said[semconv.TPOT_NS] == 10 * MS


@pytest.mark.parametrize(
    ("stamps", "holds", "expected"),
    [
        pytest.param([1, 2], [], 0, id="none"),
        pytest.param([1, 2], [(0, 900 * MS)], 0, id="before-the-first"),
        pytest.param([1, 2], [(2, 900 * MS)], 0, id="after-the-last"),
        pytest.param([1, 2], [(1, 900 * MS)], 1, id="at-once"),
        pytest.param([1, 2 * MS], [(1, 900 * MS)], 0, id="made-after-it"),
        pytest.param([1, 2], [(1, MS)], 0, id="many-short-ones-together"),
        pytest.param([1, 2, 9 * MS, 9 * MS + 1], [(1, 50 * MS), (2, 99 * MS), (3, 150 * MS)], 2, id="some"),
    ],
)
def test_a_token_came_at_once_if_its_gap_is_nothing_against_the_hold(stamps, holds, expected):
    """A tenth of the hold at most, and below a millisecond; a hold has tokens on both its sides."""
    assert n_at_once(stamps, holds) == expected


def test_many_short_holds_are_no_long_one():
    """A quick consumer of a long stream holds it for more than a millisecond in all."""
    assert not was_held([(90, MS + 10_000), (180, 2 * MS + 30_000)])
    assert not was_held([(0, 900 * MS)])
    assert was_held([(90, MS + 10_000), (91, 51 * MS)])


def test_the_report_says_so_above_its_figures():
    """How many calls, which of their figures, and why; nothing where no stream was held."""
    spans = [consumed(50, goes_on=goes_on) for goes_on in (True, False)]
    held, not_held = (analyse([Trace(span.trace_id, [span])]) for span in spans)

    assert (held.generation.n_held, held.to_dict()["generation"]["held"]) == (1, 1)
    assert any(
        "1 model call" in line and "went on while the consumer held" in line for line in all_troubles(held)
    )
    assert not_held.generation.n_held == 0
    assert not any("held" in line for line in all_troubles(not_held))
