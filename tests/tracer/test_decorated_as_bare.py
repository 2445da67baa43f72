"""A decorated callable behaves as the bare one: every kind, every way out, side by side.

Each scenario (`tests/scenarios/`) is written once, is run with the bare callable and with the decorated one,
and says what it saw.
"""

import gc

import pytest
from scenarios import async_generators, functions, generators

import hotspan
from hotspan.testing import capture

SCENARIOS = [*functions.SCENARIOS, *generators.SCENARIOS, *async_generators.SCENARIOS]


@pytest.mark.parametrize("stage", [hotspan.step, hotspan.generation(model="m")], ids=["step", "generation"])
@pytest.mark.parametrize(("scenario", "ways_out"), SCENARIOS)
def test_decorated_is_as_bare(scenario, ways_out, stage):
    """The same values, exceptions, warnings and complaints of the event loop, and one span a call."""
    bare = scenario(lambda fn: fn)
    with capture() as captured:
        decorated = scenario(stage)
        gc.collect()

    assert decorated == bare
    if ways_out is not None:
        found = [(span.status, span.attributes.get("hotspan.outcome")) for span in captured.spans]
        assert sorted(found, key=str) == sorted(ways_out, key=str)


@pytest.mark.parametrize(("scenario", "_ways_out"), SCENARIOS)
def test_decorated_and_switched_off_is_as_bare(scenario, _ways_out):
    """Where nothing is recorded the callable is only passed through."""
    assert scenario(hotspan.step) == scenario(lambda fn: fn)


@pytest.mark.parametrize(("scenario", "_ways_out"), SCENARIOS)
def test_decorated_and_not_sampled_is_as_bare(scenario, _ways_out):
    """A request that is not sampled behaves the same and writes nothing."""
    with capture(sample_ratio=0.0) as captured:
        assert scenario(hotspan.step) == scenario(lambda fn: fn)
        gc.collect()

    assert captured.spans == []
