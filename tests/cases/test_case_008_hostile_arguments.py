"""Arguments and attributes that raise when looked at never break the call that they are given to."""

import pytest

import hotspan
from hotspan.testing import capture


class Hostile:
    """Raises at everything that tracing could do with an argument."""

    def _refuse(self, *_args, **_kwargs):
        msg = "do not touch"
        raise RuntimeError(msg)

    __repr__ = __str__ = __deepcopy__ = __copy__ = __reduce_ex__ = __eq__ = __bool__ = __len__ = _refuse
    __hash__ = __iter__ = __getattr__ = model_dump = item = tolist = _refuse
    shape = ()


@pytest.mark.parametrize("capture_content", [False, True])
@pytest.mark.parametrize(
    "stage", [hotspan.step, hotspan.tool, hotspan.generation, hotspan.retrieval], ids=repr
)
def test_the_call_goes_through(stage, capture_content):
    """The result is the function's, and an attribute of such a value is a marker."""
    hostile = Hostile()

    @stage
    def fn(a, *, key):
        hotspan.current().set("value", a).set_many({"list": [key], "map": {"k": key}})
        return a

    with capture(capture_content=capture_content) as captured:
        assert fn(hostile, key=hostile) is hostile

    attributes = captured.spans[0].attributes
    assert attributes["value"] == attributes["list"] == attributes["map"] == "<unreadable>"


def test_an_exception_that_cannot_be_shown_is_still_the_exception():
    """A user's exception with a broken `__str__` leaves the stage as itself."""

    class Unprintable(Exception):  # noqa: N818 - what a program raises
        def __str__(self):
            raise RuntimeError

    with capture(capture_content=True) as captured:
        with pytest.raises(Unprintable), hotspan.step():
            raise Unprintable

    assert captured.spans[0].events[0].attributes["exception.message"] == "<unprintable>"
