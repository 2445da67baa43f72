"""A streaming span starts when the call is made, not when the stream ends or the first item comes."""

import hotspan
from hotspan.testing import FakeClock, capture


def test_start_and_duration():
    """200 ms to the first item and 300 ms more are one span of 500 ms that starts at 0."""

    @hotspan.generation
    def stream(clock):
        clock.advance(ms=200)
        yield "a"
        clock.advance(ms=300)
        yield "b"

    with FakeClock(0) as clock, capture() as captured:
        assert list(stream(clock)) == ["a", "b"]

    (span,) = captured.spans
    assert (span.start_ns, span.end_ns) == (0, 500_000_000)
    assert span.attributes["hotspan.generation.ttft_ns"] == 200_000_000
