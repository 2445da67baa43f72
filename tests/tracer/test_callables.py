"""What becomes of each kind of callable: it keeps its names, its kind and its arguments."""

import abc
import copy
import functools
import inspect
import pickle
import threading
import types

import pytest

import hotspan
from hotspan.testing import capture


def plain(a: int, /, b: "str" = "x", *args: int, c: float = 1.0, **kwargs: str) -> bool:
    """Say what a plain function is."""
    return bool((a, b, args, c, kwargs))


async def coroutine(a):
    """Say what a coroutine function is."""
    return a


def generator(n):
    """Say what a generator function is."""
    yield from range(n)


async def async_generator(n):
    """Say what an asynchronous generator function is."""
    for i in range(n):
        yield i


TRACED = {fn.__name__: fn for fn in (plain, coroutine, generator, async_generator)}
KINDS = [
    inspect.isfunction,
    inspect.iscoroutinefunction,
    inspect.isgeneratorfunction,
    inspect.isasyncgenfunction,
]


@pytest.mark.parametrize("fn", [plain, coroutine, generator, async_generator], ids=lambda fn: fn.__name__)
def test_metadata_stays(fn):
    """Signature, names, docstring, annotations and every `inspect.is*function` answer as before."""
    traced = hotspan.embedding(fn)

    assert inspect.signature(traced) == inspect.signature(fn)
    assert inspect.getsource(traced) == inspect.getsource(fn)
    for name in ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__"):
        assert getattr(traced, name) == getattr(fn, name)
    assert [kind(traced) for kind in KINDS] == [kind(fn) for kind in KINDS]


@hotspan.tool
def by_name(x):
    """Return the double, found by name when it is unpickled."""
    return 2 * x


class Model:
    """A callable object with state, a method, items and an own attribute."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        """Multiply."""
        return self.factor * x

    def __len__(self):
        return self.factor

    def __eq__(self, other):
        return isinstance(other, Model) and self.factor == other.factor

    def __hash__(self):
        return hash(self.factor)

    def describe(self):
        """Return the factor as text."""
        return f"x{self.factor}"


def test_functions_are_pickled_by_name():
    """A decorated function of a module can be sent to another process."""
    assert pickle.loads(pickle.dumps(by_name)) is by_name  # noqa: S301 - our own bytes


def test_callable_object_answers_as_itself():
    """Of a callable object only the calls change: type, attributes, methods, equality, length, repr stay."""
    model = Model(3)
    with capture() as captured:
        traced = hotspan.embedding("model")(model)
        assert traced(2) == 6

    assert isinstance(traced, Model)
    assert not inspect.isfunction(traced)
    assert (traced.factor, traced.describe(), len(traced), traced.__doc__) == (3, "x3", 3, Model.__doc__)
    assert traced == model
    assert hash(traced) == hash(model)
    assert repr(traced) == repr(model)
    assert inspect.signature(traced) == inspect.signature(model)
    traced.factor = 5
    assert model.factor == 5
    assert [span.name for span in captured.spans] == ["embeddings model"]


@pytest.mark.parametrize(
    "again",
    [
        pytest.param(copy.copy, id="copy"),
        pytest.param(copy.deepcopy, id="deepcopy"),
        pytest.param(lambda fn: pickle.loads(pickle.dumps(fn)), id="pickle"),  # noqa: S301 - our own bytes
    ],
)
@pytest.mark.parametrize("fn", [Model(3), functools.partial(plain, 1)], ids=["object", "partial"])
def test_callable_object_can_be_copied(again, fn):
    """A copy of a decorated callable object is a decorated callable object."""
    made = again(hotspan.embedding(fn))
    with capture() as captured:
        made(2)

    assert isinstance(made, type(fn))
    assert len(captured.spans) == 1


def test_a_partial_is_called_as_what_it_calls():
    """A tool's span has the name of the function, not of the class `partial`."""

    def search(query):
        return query

    with capture() as captured:
        hotspan.tool(functools.partial(search, "why"))()
    assert [span.name for span in captured.spans] == ["execute_tool search"]


def test_partials_are_still_partials():
    """A partial keeps its parts, and one of a coroutine function is still known as one."""
    traced = hotspan.embedding(functools.partial(coroutine, 1))

    assert isinstance(traced, functools.partial)
    assert traced.args == (1,)
    assert inspect.iscoroutinefunction(traced)


def test_cached_function_keeps_its_cache():
    """What `lru_cache` gives a function is there, and a cached method binds to its instance."""

    class Index:
        @hotspan.retrieval
        @functools.lru_cache(maxsize=8)  # noqa: B019 - the point of the test
        def search(self, query):
            return self, query

    index = Index()
    with capture() as captured:
        assert index.search("a") == (index, "a")
        assert index.search("a") == (index, "a")

    assert Index.search.cache_info().hits == 1
    Index.search.cache_clear()
    assert len(captured.spans) == 2


def test_builtin_functions_can_be_traced():
    """A function of C is called as it is, and is bound to no instance."""

    class Holder:
        size = hotspan.step(len)

    with capture() as captured:
        assert Holder().size([1, 2]) == 2

    assert Holder.size.__name__ == "len"
    assert len(captured.spans) == 1


def test_abstract_methods_stay_abstract():
    """A decorated abstract method must still be overridden."""

    class Base(abc.ABC):
        @hotspan.step
        @abc.abstractmethod
        def run(self):
            """Run."""

    with pytest.raises(TypeError, match="abstract"):
        Base()


def test_type_of_generator_stays():
    """What a decorated generator function returns is a generator of the same name."""
    made = hotspan.generation(generator)(1)

    assert type(made) is types.GeneratorType
    assert (made.__name__, made.__qualname__) == (generator.__name__, generator.__qualname__)
    assert inspect.getgeneratorstate(made) == inspect.GEN_CREATED
    made.close()


@pytest.mark.parametrize("wrong", [3, None, [], object()], ids=repr)
def test_only_callables_are_decorated(wrong):
    """What cannot be called is refused with a sentence that names it."""
    with pytest.raises(hotspan.ConfigurationError, match="decorates callables"):
        hotspan.stage("x")(wrong)


@pytest.mark.parametrize("wrong", ["", 3, None], ids=repr)
def test_a_stage_needs_a_name(wrong):
    """A stage without a usable name is refused where it is made."""
    with pytest.raises(hotspan.ConfigurationError, match="needs a name"):
        hotspan.stage(wrong)


def test_one_stage_object_serves_many_at_once():
    """One object may be entered inside itself and by other threads; each entry ends its own span."""
    shared = hotspan.step("shared")
    entered = threading.Barrier(4)

    def work():
        with shared as outer:
            entered.wait(10)
            with shared as inner:
                assert hotspan.current() is inner
            assert hotspan.current() is outer

    with capture() as captured:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        spans = captured.spans

    ids = {span.span_id: span for span in spans}
    assert len(spans) == 8
    assert sorted(span.parent_id in ids for span in spans) == [False] * 4 + [True] * 4


def test_a_stage_left_in_another_context_ends_its_span():
    """An exit in a context that knows nothing of the entry still ends the span, once."""
    from contextvars import Context  # noqa: PLC0415 - next to its only use

    stage = hotspan.step("elsewhere")
    with capture() as captured:
        Context().run(stage.__enter__)
        Context().run(stage.__exit__, None, None, None)
        Context().run(stage.__exit__, None, None, None)

    assert [span.name for span in captured.spans] == ["step elsewhere"]
