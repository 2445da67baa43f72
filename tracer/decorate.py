"""What a stage makes of a callable: the same callable, traced.

    function, coroutine function, (async) generator function    a function with the same metadata
    function that makes context managers                        the same, the stage inside: see `managers.py`
    staticmethod, classmethod                                   the same descriptor around a traced function
    class                                                       the same class, its own public methods traced
    any other callable object (a partial, a model, …)           a stand-in that answers as the object does
    singledispatchmethod, partialmethod                         a stand-in: what it binds to is traced

Everything that can be decided is decided here, once; at the call there is one span, one context switch and
the call itself.
"""

from __future__ import annotations

import copy
import functools
import inspect
import types
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from hotspan.tracer import config, semconv
from hotspan.tracer import span as spans
from hotspan.tracer.context import attach
from hotspan.tracer.deferred import COMPLETE, end_with
from hotspan.tracer.errors import ConfigurationError
from hotspan.tracer.managers import decorate_manager, makes_managers

if TYPE_CHECKING:
    from collections.abc import Callable

    from hotspan.tracer.stage import Stage

P = ParamSpec("P")
R = TypeVar("R")

# Methods that cannot be called before they are bound.
_METHODS: Final = (functools.singledispatchmethod, functools.partialmethod)
_MEMBERS: Final = (types.FunctionType, type(functools.cache(int)), *_METHODS)  # of a class, that are traced

_STREAM_FLAGS: Final = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE


def decorate(spec: Stage, fn: Any) -> Any:
    """Return `fn` traced as `spec`.

    Raises:
        ConfigurationError: `fn` cannot be called.
    """
    if isinstance(fn, (staticmethod, classmethod)):
        return type(fn)(decorate(spec, fn.__func__))
    is_method = isinstance(fn, _METHODS)
    if not (callable(fn) or is_method):
        msg = f"hotspan.{spec.stage} decorates callables, got {fn!r}; give its name as a string"
        raise ConfigurationError(msg)
    if config.DISABLED:
        return fn
    if isinstance(fn, type):
        return _decorate_class(spec, fn)
    if isinstance(fn, types.FunctionType):
        return _decorate_function(spec.named_after(fn.__name__), fn)
    named = fn.func if is_method or isinstance(fn, functools.partial) else fn
    return _stand_in(spec.named_after(getattr(named, "__name__", type(fn).__name__)), fn)


# --- Functions ---------------------------------------------------------------------------------------------


def _decorate_function(spec: Stage, fn: types.FunctionType) -> Any:
    if makes_managers(fn):
        return decorate_manager(spec, fn)
    if inspect.iscoroutinefunction(fn):
        return functools.update_wrapper(_wrap_coroutine(spec, fn), fn)
    return functools.update_wrapper(with_flags_of(fn, _wrap(spec, fn)), fn)


def _wrap(spec: Stage, fn: Callable[..., Any]) -> Callable[..., Any]:
    # Hot: locals instead of attributes, one try, and no work after the call but the end of the span.  Whether
    # anything is recorded is asked of `is_active` first; the function behind it reads the environment, once.
    # A call with keywords merges dicts, so one without them is made apart.
    recording, make_span, enter = config.recording, spans.make_span, attach
    name, attributes, kind = spec.span_name, spec.attributes, spec.kind
    generation = spec.stage == semconv.GENERATION

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not (config.is_active or recording()):
            return fn(*args, **kwargs)
        span = make_span(name, attributes, kind)
        token = enter(span)
        try:
            result = fn(*args, **kwargs) if kwargs else fn(*args)
            if type(result) not in COMPLETE:
                span.leave(token)
                return end_with(result, span, generation=generation)
        except BaseException as exc:
            span.fail(exc)
            span.close(token)
            raise
        span.close(token)
        return result

    return wrapper


def _wrap_coroutine(spec: Stage, fn: Callable[..., Any]) -> Callable[..., Any]:
    recording, make_span, enter = config.recording, spans.make_span, attach
    name, attributes, kind = spec.span_name, spec.attributes, spec.kind
    generation = spec.stage == semconv.GENERATION

    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not (config.is_active or recording()):
            return await fn(*args, **kwargs)
        span = make_span(name, attributes, kind)
        token = enter(span)
        try:
            result = await (fn(*args, **kwargs) if kwargs else fn(*args))
            if type(result) not in COMPLETE:
                span.leave(token)
                return end_with(result, span, generation=generation)
        except BaseException as exc:
            span.fail(exc)
            span.close(token)
            raise
        span.close(token)
        return result

    return wrapper


def with_flags_of(fn: Any, wrapper: Callable[P, R]) -> Callable[P, R]:
    """Return `wrapper` such that `inspect.isgeneratorfunction` and `isasyncgenfunction` answer as for `fn`.

    The flags only label the code object: since Python 3.11 it is an instruction, not a flag, that makes a
    call return a generator.  A wrapper that really were a generator function would run nothing, and so start
    no span, until its first item is asked for.
    """
    code = getattr(fn, "__code__", None)
    flags = code.co_flags & _STREAM_FLAGS if code is not None else 0
    if not flags or not isinstance(wrapper, types.FunctionType):
        return wrapper
    own = wrapper.__code__
    labelled = own.replace(co_flags=own.co_flags | flags)
    return types.FunctionType(labelled, wrapper.__globals__, own.co_name, None, wrapper.__closure__)


# --- Classes -----------------------------------------------------------------------------------------------


def _decorate_class(spec: Stage, cls: type) -> type:
    """Trace the class's own public methods and `__call__`, in place; all else is left as it is."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_") and name != "__call__":
            continue
        fn = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
        if isinstance(fn, _MEMBERS):
            label = cls.__name__ if name == "__call__" else f"{cls.__name__}.{name}"
            setattr(cls, name, decorate(spec.named_after(label), member))
    return cls


# --- Other callable objects --------------------------------------------------------------------------------

# Answered by the stand-in itself, or of no use on an instance.
_OWN_NAMES: Final = frozenset(dir(object)) - {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"} | {
    "__call__", "__class_getitem__", "__copy__", "__deepcopy__", "__del__", "__delattr__", "__dict__",
    "__get__", "__getattr__", "__getstate__", "__hash__", "__module__", "__set_name__",
    "__setattr__", "__setstate__", "__slots__", "__weakref__", "__wrapped__",
}  # fmt: skip


class _StandIn:
    # Stands for a callable object: calls are traced, everything else is the object's.  No docstring and no
    # method of its own shows through, so that `help`, `isinstance`, `inspect` and pickle see the object.
    __slots__ = ("__weakref__", "__wrapped__", "_hotspan_call", "_hotspan_spec")

    def __init__(self, spec: Stage, fn: Any) -> None:
        put = functools.partial(object.__setattr__, self)
        put("__wrapped__", fn)
        put("_hotspan_spec", spec)
        put("_hotspan_call", _wrap(spec, fn))

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._hotspan_call(*args, **kwargs)

    @property  # type: ignore[misc]  # isinstance() and inspect ask for it
    def __class__(self) -> type:
        return type(self.__wrapped__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__wrapped__, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.__wrapped__, name)

    def __dir__(self) -> list[str]:
        return dir(self.__wrapped__)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    def __str__(self) -> str:
        return str(self.__wrapped__)

    def __hash__(self) -> int:
        return hash(self.__wrapped__)

    def __copy__(self) -> Any:
        return _stand_in(self._hotspan_spec, copy.copy(self.__wrapped__))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return _stand_in(self._hotspan_spec, copy.deepcopy(self.__wrapped__, memo))

    def __reduce_ex__(self, _protocol: Any) -> tuple[Any, ...]:
        return _stand_in, (self._hotspan_spec, self.__wrapped__)


def _stand_in(spec: Stage, fn: Any) -> Any:
    kind: Any = type(fn)
    return _stand_in_type(kind)(spec, fn)


@functools.cache
def _stand_in_type(kind: type) -> Callable[..., Any]:
    """Return the class of stand-ins for objects of `kind`, with the special methods that `kind` has."""
    members: dict[str, Any] = {"__slots__": ()}
    for name in dir(kind):
        is_special = name.startswith("__") and name.endswith("__") and name not in _OWN_NAMES
        if is_special and callable(inspect.getattr_static(kind, name)):
            members[name] = _forward(name)
    for name in ("__doc__", "__module__"):
        members[name] = property(functools.partial(_attribute, name=name))
    members["__hash__"] = None if kind.__hash__ is None else _StandIn.__hash__  # else lost beside an __eq__
    if hasattr(kind, "__get__"):
        members["__get__"] = _bind
    return type(kind.__name__, (_StandIn,), members)


def _forward(name: str) -> Callable[..., Any]:
    def forward(self: _StandIn, /, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.__wrapped__, name)(*args, **kwargs)

    return forward


def _attribute(self: _StandIn, *, name: str) -> Any:
    return getattr(self.__wrapped__, name)


def _bind(self: _StandIn, instance: Any, owner: type | None = None) -> Any:
    # A method made of something else than a function (a cached one, say): what it binds to is traced.
    bound = self.__wrapped__.__get__(instance, owner)
    return self if bound is self.__wrapped__ else _stand_in(self._hotspan_spec, bound)
