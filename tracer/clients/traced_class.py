"""An object's methods traced, by giving the object a subclass of its own class.

    object ──► subclass ──► class        the traced methods there, everything else as it was

Nothing is put on the object: no cycle keeps it alive, so that a model which is dropped frees its memory at
once; its methods are bound methods as before; and what is copied or pickled of it is of the class it had.
"""

from __future__ import annotations

import copyreg
import functools
import importlib.util
import sys
from typing import TYPE_CHECKING, Any, Final

from hotspan.tracer.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Method = Callable[..., Any]

_MARK: Final = "hotspan_traced"


def is_traced(target: object) -> bool:
    """Return whether the object's methods are traced already."""
    return hasattr(type(target), _MARK)


def trace_methods(target: object, wrappers: Mapping[str, Callable[[Method], Method]]) -> None:
    """Put traced methods in the place of an object's methods; those that it does not have are left out.

    Args:
        target: Any object whose class can be inherited from.
        wrappers: Name -> what makes a traced function out of the function, both with `self` first.
    """
    kind: Any = type(target)
    members: dict[str, Any] = {
        "__slots__": (),  # the layout of the object stays
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
        "__reduce_ex__": _reducing_to(kind),
        _MARK: True,
    }
    for name, wrap in wrappers.items():
        original = _function(target, name)
        if original is not None:
            members[name] = functools.update_wrapper(wrap(original), original)
    traced = type(kind)(kind.__name__, (kind,), members)
    object.__setattr__(target, "__class__", traced)  # the object's own `__setattr__` may refuse


def _function(target: Any, name: str) -> Method | None:
    """Return a method as a function with `self` first; None where there is no such method."""
    own = getattr(target, "__dict__", {}).pop(name, None)
    if own is None:
        return getattr(type(target), name, None)

    # Somebody has put a function on the object itself, which hides the class's.
    def unbound(_self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return own(*args, **kwargs)

    return functools.update_wrapper(unbound, own)


def _reducing_to(kind: Any) -> Method:
    def __reduce_ex__(self: Any, protocol: Any, /) -> Any:  # noqa: N807 - it becomes the class's
        reduced = kind.__reduce_ex__(self, protocol)
        if not isinstance(reduced, tuple):
            return reduced
        make, arguments, *rest = reduced
        # `__newobj__` takes the object's own class alone.
        if make is copyreg.__newobj__:  # type: ignore[attr-defined]  # typeshed has it not
            make = kind.__new__
        return (make, tuple(kind if part is type(self) else part for part in arguments), *rest)

    return __reduce_ex__


def need_package(module: str, *, function: str, extra: str) -> Any:
    """Return a package that is needed for its objects to be there; None while it is not imported.

    Args:
        module: Its import name.
        function: Which function of ours needs it.
        extra: The extra that brings it.

    Raises:
        MissingDependencyError: It is not installed.
    """
    found = sys.modules.get(module)
    if found is None and importlib.util.find_spec(module) is None:
        msg = f"{function} needs the {module} package: pip install 'hotspan[{extra}]'"
        raise MissingDependencyError(msg)
    return found


def refusal(function: str, target: object, expected: str) -> str:
    """Return the message for an object that cannot be traced: by its type, since its `repr` may be long."""
    kind = type(target)
    return f"{function}: got a {kind.__module__}.{kind.__qualname__}; expected {expected}"
