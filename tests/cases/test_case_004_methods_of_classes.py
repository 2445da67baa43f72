"""Static and class methods in either order, and whole classes: right arguments, one span a call."""

import abc
import asyncio
import functools

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


class Shapes:
    """Methods that are no functions."""

    def __init__(self, side):
        self.side = side

    @functools.singledispatchmethod
    def area(self, of):
        """Return the area of what has no rule."""
        raise TypeError(of)

    @area.register
    def _(self, of: int):
        return self.side * of

    @area.register
    async def _(self, of: float):
        await asyncio.sleep(0)
        return self.side * of

    @functools.singledispatchmethod
    @classmethod
    def made(cls, of):
        """Return the class and the argument."""
        return cls, of

    def scaled(self, by, *, plus=0):
        """Return a number."""
        return self.side * by + plus

    twice = functools.partialmethod(scaled, 2)

    @functools.cache  # noqa: B019 - as users do
    def cached(self):
        """Return the side."""
        return self.side

    @functools.cached_property
    def kept(self):
        """Return the side."""
        return self.side


Traced = hotspan.tool(type("Traced", (Shapes,), dict(vars(Shapes), __doc__="The same, traced.")))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        pytest.param(lambda s: s.area(2), "area", id="dispatched"),
        pytest.param(lambda s: asyncio.run(s.area(2.5)), "area", id="dispatched-to-a-coroutine"),
        pytest.param(lambda s: s.made(1)[1], "made", id="class-method-on-object"),
        pytest.param(lambda s: type(s).made(1)[1], "made", id="class-method-on-class"),
        pytest.param(lambda s: s.twice(), "twice", id="partial"),
        pytest.param(lambda s: s.twice(plus=1), "twice", id="partial-with-more"),
        pytest.param(lambda s: type(s).twice(s, plus=1), "twice", id="partial-on-class"),
        pytest.param(lambda s: s.cached(), "cached", id="cached"),
        pytest.param(lambda s: s.kept, None, id="cached-property"),
    ],
)
def test_methods_that_are_no_functions(call, name):
    """Each gives one span a call, with the right arguments, on each of two objects."""
    for side in (3, 5):
        expected = call(Shapes(side))
        with capture() as captured:
            assert call(Traced(side)) == expected

        assert [span.name for span in captured.spans] == ([f"execute_tool Traced.{name}"] if name else [])


def test_what_they_answer_beside_a_call_stays():
    """`register`, the cache's figures, errors and abstractness are those of the bare ones."""
    shapes = Traced(3)
    with capture() as captured, pytest.raises(TypeError, match="text"):
        shapes.area("text")
    assert captured.spans[0].status == "error"

    Traced.area.register(str, lambda self, of: of * self.side)
    assert shapes.area("ab") == "ababab"
    assert Traced.cached.cache_info().hits >= 0
    assert isinstance(vars(Traced)["area"], functools.singledispatchmethod)
    assert isinstance(vars(Traced)["twice"], functools.partialmethod)


@pytest.mark.parametrize("decorate", [hotspan.tool, hotspan.tool("t")], ids=["bare", "named"])
def test_a_stage_directly_above_one(decorate):
    """A stage decorates a dispatched method in the class body too; `register` still works there."""

    class Own(abc.ABC):
        @decorate
        @functools.singledispatchmethod
        @abc.abstractmethod
        def area(self, of):
            """Return the argument."""
            return of

        @area.register
        def _(self, of: int):
            return -of

        half = decorate(functools.partialmethod(lambda self, by: (self, by), 2))

    class Concrete(Own):
        area = Own.__dict__["area"]

    assert Own.__abstractmethods__ == {"area"}
    Concrete.__abstractmethods__ = frozenset()
    own = Concrete()
    with capture() as captured:
        assert (own.area(3), own.area("x"), own.half()) == (-3, "x", (own, 2))

    assert len(captured.spans) == 3
