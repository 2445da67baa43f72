"""Methods of an object of another library as a stage: one span around each call.

A call inside of a call (a method that uses another one of the same kind of object) is the same call.
"""

from __future__ import annotations

import contextvars
import itertools
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hotspan.tracer import clock, config, semconv
from hotspan.tracer import span as spans
from hotspan.tracer.faults import fault

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Method = Callable[..., Any]

_inside: Final = contextvars.ContextVar("hotspan-local-stage", default=False)


class Made(NamedTuple):
    """One call of a traced method.

    Attributes:
        owner: The object.
        args: Arguments by place, without the object.
        kwargs: Arguments by name.
        result: What the call returned; None, if it raised.
    """

    owner: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    result: Any

    def argument(self, place: int, *names: str) -> Any:
        """Return an argument, given by place or under one of its names; None where it is not given."""
        if len(self.args) > place:
            return self.args[place]
        return next((self.kwargs[name] for name in names if name in self.kwargs), None)


class LocalStage:
    """What the traced methods of one object have in common.

    Args:
        stage: The stage.
        name: Name of the spans.
        attributes: What every span says; those that are None are left out.
        finish: Called with a result before the span ends; the time that it takes is the call's.
    """

    def __init__(
        self,
        stage: str,
        name: str,
        attributes: Mapping[str, Any],
        *,
        finish: Callable[[Any], None] | None = None,
    ) -> None:
        self._stage, self._name, self._finish = stage, name, finish
        operation = semconv.OPERATION_OF_STAGE.get(stage)
        self._attributes = _known({semconv.OPERATION: operation, **attributes})
        self._n_before = itertools.count()

    def traced(self, describe: Callable[[Made], dict[str, Any]]) -> Callable[[Method], Method]:
        """Return what makes a traced method out of one.

        Args:
            describe: Returns what a span says of a call; what is None is left out.
        """

        def wrap(original: Method) -> Method:
            def method(owner: Any, /, *args: Any, **kwargs: Any) -> Any:
                if _inside.get() or not config.recording():
                    return original(owner, *args, **kwargs)
                span, result = self._start(), None
                token, current = _inside.set(True), span.enter()
                try:
                    result = original(owner, *args, **kwargs)
                    if self._finish is not None:
                        self._finish(result)
                except BaseException as exc:
                    span.fail(exc)
                    raise
                finally:
                    span.leave(current)
                    _inside.reset(token)
                    _tell(span, describe, Made(owner, args, kwargs, result))
                return result

            return method

        return wrap

    def _start(self) -> spans.Span:
        span = spans.start_span(self._name, self._stage, self._attributes)
        if next(self._n_before) == 0:
            span.set(semconv.COLD, True)
        return span


def _tell(span: spans.Span, describe: Callable[[Made], dict[str, Any]], call: Made) -> None:
    end_ns = clock.now_ns()
    try:
        if span.recording:
            span.set_many(_known(describe(call)))
    except Exception as own:  # noqa: BLE001 - the user gets the result, whatever we make of it
        fault(own)
    span.end(clock.to_wall_ns(end_ns))


def _known(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if value is not None}


def length(items: Any) -> int | None:
    """Return how many there are, None for what has no length."""
    return len(items) if hasattr(items, "__len__") else None
