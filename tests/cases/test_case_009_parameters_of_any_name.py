"""A function's parameters may have any name: none collides with an option of the decorator."""

import pytest

import hotspan
from hotspan.testing import capture


def test_no_name_collides():
    """Positional-only, keyword-only and variable parameters arrive, whatever they are called."""

    @hotspan.tool("t", model="m")
    def fn(self, /, name, span=1, *args, config=2, **kwargs):
        return self, name, span, args, config, kwargs

    @hotspan.tool
    async def coroutine(fn, spec, *, recording, wrapper, kwargs, **others):
        return fn, spec, recording, wrapper, kwargs, others

    with capture():
        assert fn(0, "n", 3, 4, config=5, self=6, fn=7, stage=8) == (
            0,
            "n",
            3,
            (4,),
            5,
            {"self": 6, "fn": 7, "stage": 8},
        )
        made = coroutine(1, 2, recording=3, wrapper=4, kwargs=5, args=6, self=7)
        with pytest.raises(StopIteration) as stop:
            made.send(None)
        assert stop.value.value == (1, 2, 3, 4, 5, {"args": 6, "self": 7})


def test_attributes_may_have_any_name_too():
    """What is given to a stage as a keyword is an attribute, called as it is given."""
    with capture() as captured:
        with hotspan.stage("x", name="n", fn=1, stage="s", self=2):
            pass

    attributes = captured.spans[0].attributes
    assert {key: attributes[key] for key in ("name", "fn", "stage", "self")} == {
        "name": "n",
        "fn": 1,
        "stage": "s",
        "self": 2,
    }
