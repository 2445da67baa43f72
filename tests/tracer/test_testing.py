"""The test kit that users get: a clock that stands still, ids that are known, what was recorded."""

import pytest

import hotspan
from hotspan.testing import FakeClock, build_trace, capture, deterministic_ids
from hotspan.tracer import config


@hotspan.request
def answer(clock):
    """Take 10 ms, of which embedding takes 4."""
    clock.advance(ms=3)
    with hotspan.embedding():
        clock.advance(ms=4)
    clock.advance(ms=3)


@pytest.mark.parametrize("order", ["clock-outside", "clock-inside"])
def test_times_are_exact(order):
    """Under the fake clock durations are what the test says, whichever of the two is entered first."""
    if order == "clock-outside":
        with FakeClock(1_000) as clock, capture() as captured:
            answer(clock)
    else:
        with capture() as captured, FakeClock(1_000) as clock:
            answer(clock)

    root, embedding = captured.one("request answer"), captured.one("embeddings")
    assert (root.start_ns, root.duration_ns) == (1_000, 10_000_000)
    assert (embedding.start_ns, embedding.duration_ns) == (1_000 + 3_000_000, 4_000_000)


def test_a_ticking_clock_moves_at_each_reading():
    """With `tick_ns` no two stamps are equal."""
    with FakeClock(tick_ns=5) as clock, capture() as captured:
        with hotspan.step():
            clock.advance(ns=2, s=1)

    assert captured.spans[0].duration_ns == 1_000_000_007


def test_ids_are_known():
    """Ids count up in the order in which they are needed."""
    with deterministic_ids(), capture() as captured:
        with hotspan.request(), hotspan.step():
            pass
    step, request = captured.spans

    assert (int(request.trace_id, 16), int(request.span_id, 16), int(step.span_id, 16)) == (1, 2, 3)


def test_capture_nests_and_restores():
    """An inner capture takes what runs inside it; the outer one has the rest."""
    with capture() as outer:
        with capture() as inner:
            with hotspan.step("in"):
                pass
        with hotspan.step("out"):
            pass

    assert ([s.name for s in inner.spans], [s.name for s in outer.spans]) == (["step in"], ["step out"])


def test_one_says_what_there_is():
    """Asked for a span that is not there, the kit names those that are."""
    with capture() as captured:
        with hotspan.step("there"):
            pass

    with pytest.raises(AssertionError, match="step there"):
        captured.one("step elsewhere")


def test_build_trace_links_by_name():
    """A trace in one literal: names are ids, stages and attributes by name."""
    trace = build_trace(("r", 0, 10), ("e", 2, 5, "r"), stages={"e": "embedding"}, attributes={"r": {"k": 1}})

    assert [span.name for span in trace.children_of(trace.by_id["r"])] == ["e"]
    assert trace.by_id["e"].attributes == {"hotspan.stage": "embedding"}
    assert trace.by_id["r"].attributes == {"k": 1}


def test_a_program_that_configures_itself_is_captured_all_the_same(tmp_path):
    """The arguments are checked, the file is not touched, and what was configured before holds after it."""
    before = config.settings()
    with capture() as captured:
        hotspan.configure(file=tmp_path / "run.jsonl")
        with hotspan.step("in"):
            pass
        with pytest.raises(hotspan.ConfigurationError):
            hotspan.configure(sample_ratio=2)

    assert [span.name for span in captured.spans] == ["step in"]
    assert not (tmp_path / "run.jsonl").exists()
    assert config.settings() is before


def test_where_nothing_is_recorded_nothing_can_be_captured(monkeypatch):
    """Under `HOTSPAN_DISABLED` a test that looks at spans is told why there are none."""
    monkeypatch.setattr(config, "DISABLED", True)
    with pytest.raises(hotspan.ConfigurationError, match="HOTSPAN_DISABLED"), capture():
        pass


def test_a_clock_never_goes_back():
    """A step back is the test's own mistake."""
    with FakeClock() as clock, pytest.raises(hotspan.ConfigurationError, match="never goes back"):
        clock.advance(ms=-5)
