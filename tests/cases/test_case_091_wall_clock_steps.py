"""A step of the wall clock in the middle of a span changes no duration and no nesting."""

import time

import pytest

import hotspan
from hotspan.testing import capture


@pytest.mark.parametrize("step_s", [-5, 3_600])
def test_one_anchored_clock(step_s, monkeypatch):
    """Start and end come from one monotonic clock, and children stay inside their parent."""
    real = time.time_ns
    with capture() as captured:
        with hotspan.request():
            with hotspan.generation():
                monkeypatch.setattr(time, "time_ns", lambda: real() + step_s * 10**9)
                monkeypatch.setattr(time, "time", lambda: (real() + step_s * 10**9) / 1e9)
            with hotspan.step():
                pass
        monkeypatch.undo()
        generation, step, request = captured.spans

    assert request.start_ns <= generation.start_ns <= generation.end_ns <= step.start_ns <= step.end_ns
    assert step.end_ns <= request.end_ns
    assert request.duration_ns < 60 * 10**9
