"""Static and class methods in either order, and whole classes: right arguments, one span a call."""

import pytest

import hotspan
from hotspan.testing import capture


class Orders:
    """Every order of decorators."""

    @hotspan.step
    @staticmethod
    def stage_static(a):
        """Return the argument."""
        return a

    @staticmethod
    @hotspan.step
    def static_stage(a):
        """Return the argument."""
        return a

    @hotspan.step
    @classmethod
    def stage_class(cls, a):
        """Return class and argument."""
        return cls, a

    @classmethod
    @hotspan.step
    def class_stage(cls, a):
        """Return class and argument."""
        return cls, a


class Derived(Orders):
    """A class below."""


@pytest.mark.parametrize(
    "owner", [Orders, Orders(), Derived, Derived()], ids=["class", "object", "sub", "sub-object"]
)
@pytest.mark.parametrize("name", ["stage_static", "static_stage", "stage_class", "class_stage"])
def test_either_order(owner, name):
    """Called on the class and on an instance, each gets its own arguments and gives one span."""
    cls = owner if isinstance(owner, type) else type(owner)
    with capture() as captured:
        result = getattr(owner, name)(7)

    assert result == (7 if "static" in name else (cls, 7))
    assert len(captured.spans) == 1


class Base:
    """Has a method that is inherited."""

    def inherited(self):
        """Return who was asked."""
        return "inherited", self

    def overridden(self):
        """Return what stands below."""
        return "base"


@hotspan.tool
class Search(Base):
    """A whole class."""

    limit = 3

    class Nested:
        """A class inside."""

        def method(self):
            """Return itself."""
            return self

    def run(self, a, *, b=0):
        """Return everything."""
        return self, a, b

    def overridden(self):
        """Return both."""
        return "own", super().overridden()

    @staticmethod
    def static(a):
        """Return the argument."""
        return a

    @classmethod
    def make(cls):
        """Return an instance."""
        return cls()

    @property
    def size(self):
        """Return a number."""
        return 5

    def __call__(self, a):
        """Return the argument."""
        return a

    def _helper(self):
        return self

    async def late(self):
        """Return when awaited."""
        return "late"

    def items(self):
        """Yield twice."""
        yield from (1, 2)


SEARCH = Search()


@pytest.mark.parametrize(
    ("call", "result", "names"),
    [
        pytest.param(lambda: SEARCH.run(1, b=2), (SEARCH, 1, 2), ["execute_tool Search.run"], id="method"),
        pytest.param(SEARCH.overridden, ("own", "base"), ["execute_tool Search.overridden"], id="super"),
        pytest.param(lambda: SEARCH.static(1), 1, ["execute_tool Search.static"], id="static-on-object"),
        pytest.param(lambda: Search.static(1), 1, ["execute_tool Search.static"], id="static-on-class"),
        pytest.param(lambda: type(Search.make()), Search, ["execute_tool Search.make"], id="class-method"),
        pytest.param(lambda: SEARCH(1), 1, ["execute_tool Search"], id="call"),
        pytest.param(lambda: list(SEARCH.items()), [1, 2], ["execute_tool Search.items"], id="generator"),
        pytest.param(lambda: SEARCH.size, 5, [], id="property"),
        pytest.param(SEARCH.inherited, ("inherited", SEARCH), [], id="inherited"),
        pytest.param(getattr(SEARCH, "_helper"), SEARCH, [], id="private"),  # noqa: B009 - private on purpose
        pytest.param(lambda: type(Search.Nested().method()), Search.Nested, [], id="nested-class"),
        pytest.param(lambda: Search.limit, 3, [], id="class-attribute"),
    ],
)
def test_a_whole_class(call, result, names):
    """Its own public methods give one span a call; everything else is as it was."""
    with capture() as captured:
        assert call() == result

    assert [span.name for span in captured.spans] == names


def test_the_class_is_the_same_class():
    """Decorating a class changes neither its identity nor its names."""
    assert isinstance(SEARCH, Search)
    assert (Search.__name__, Search.__doc__, Search.__mro__[1]) == ("Search", "A whole class.", Base)
    assert isinstance(vars(Search)["size"], property)
