"""Stages: one object that is a decorator and a context manager, sync and async.

The span's name and its constant attributes are made once, with the object; see `decorate.py` for what becomes
of a callable.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, TypeVar, overload

from hotspan.tracer import config, semconv
from hotspan.tracer import span as spans
from hotspan.tracer.attributes import MAX_NAME, snapshot, text_of
from hotspan.tracer.context import STAGE_KEY, attach, get_context
from hotspan.tracer.decorate import decorate
from hotspan.tracer.errors import ConfigurationError
from hotspan.tracer.faults import is_the_programs
from hotspan.tracer.span import NOOP_SPAN, Span, make_span

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hotspan.tracer.record import Kind

P = ParamSpec("P")
R = TypeVar("R")

_CALL_KEYS = {"model": semconv.REQUEST_MODEL, "top_k": semconv.REQUEST_TOP_K, "engine": semconv.ENGINE}
_NAME_KEYS = {
    semconv.AGENT: semconv.AGENT_NAME,
    semconv.TOOL: semconv.TOOL_NAME,
    semconv.RETRIEVAL: semconv.DATA_SOURCE,
}
# Stages that take the function's name when they are given none: a tool is what its function is called.
_NAMED_BY_FUNCTION = frozenset({semconv.REQUEST, semconv.AGENT, semconv.TOOL})


class Stage:
    """One stage of a pipeline, to decorate callables with or to use in a `with` statement.

    Made by `hotspan.embedding(...)`, `hotspan.stage("name", ...)` and their like.  One object may be entered
    any number of times, nested and concurrently.
    """

    __slots__ = ("_entered", "_given", "attributes", "kind", "name", "span_name", "stage")

    def __init__(self, stage: str, name: str | None, given: Mapping[str, Any]) -> None:
        if not isinstance(stage, str) or not stage:
            msg = f"a stage needs a name, got {stage!r}: write e.g. hotspan.stage('postprocess')"
            raise ConfigurationError(msg)
        self.stage = text_of(stage, MAX_NAME)
        self.kind: Kind = "client" if stage == semconv.GENERATION else "internal"
        self.name, self._given = None if name is None else text_of(name, MAX_NAME), dict(given)
        self._entered: dict[int, Span] = {}  # id -> span that a `with` statement entered and has not left
        self.attributes = self._constant_attributes()
        self.span_name = self._span_name()

    def _constant_attributes(self) -> dict[str, Any]:
        attributes: dict[str, Any] = {semconv.STAGE: self.stage}
        if self.stage in semconv.OPERATION_OF_STAGE:
            attributes[semconv.OPERATION] = semconv.OPERATION_OF_STAGE[self.stage]
        if self.stage in semconv.OPENINFERENCE_KIND_OF_STAGE:
            attributes[semconv.OPENINFERENCE_KIND] = semconv.OPENINFERENCE_KIND_OF_STAGE[self.stage]
        if self.name is not None and self.stage in _NAME_KEYS:
            attributes[_NAME_KEYS[self.stage]] = self.name
        attributes.update(snapshot({_CALL_KEYS.get(key, key): value for key, value in self._given.items()}))
        return attributes

    def _span_name(self) -> str:
        operation = semconv.OPERATION_OF_STAGE.get(self.stage, self.stage)
        label = self.name or self.attributes.get(semconv.REQUEST_MODEL)
        return f"{operation} {label}" if label else operation

    def start(self) -> Span:
        """Start a span of this stage below the current one; it is not made current."""
        if not config.recording():
            return NOOP_SPAN
        return spans.make_span(self.span_name, self.attributes, self.kind)

    # --- Decorator -----------------------------------------------------------------------------------------

    def __call__(self, fn: Callable[P, R]) -> Callable[P, R]:
        """Return `fn` traced: same signature, type, docstring, results and exceptions.

        A class is returned with its own public methods (and `__call__`) traced; its properties, nested
        classes and inherited members stay as they are.
        """
        return decorate(self, fn)  # type: ignore[no-any-return]  # the same callable

    def named_after(self, name: str) -> Stage:
        """Return this stage under a callable's name, where such stages are called so and none was given."""
        if self.name is None and name and self.stage in _NAMED_BY_FUNCTION:
            return Stage(self.stage, name, self._given)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Stage, (self.stage, self.name, self._given)

    # --- Context manager -----------------------------------------------------------------------------------

    # Hot, as the wrapper in `decorate.py`: `is_active` is asked before the function which reads the
    # environment, and a span that was entered is kept by its id, which is at hand.

    def __enter__(self) -> Span:
        if not (config.is_active or config.recording()):
            return NOOP_SPAN
        span = make_span(self.span_name, self.attributes, self.kind)
        self._entered[span.span_id] = span
        span.entry = attach(span)
        return span

    def __exit__(self, exc_type: object, exc: BaseException | None, tb: object) -> None:
        span: Any = get_context()
        # As a rule the innermost span is the one that is left.
        if type(span) is not Span or self._entered.pop(span.span_id, None) is None:
            span = self._innermost()
            if span is None:
                return
        if exc is not None:
            span.fail(exc)
        span.close(span.entry)
        span.entry = None  # one object less for the collector to look at while the span waits

    def _innermost(self) -> Span | None:
        """Return the span that the `with` statement which is being left had entered.

        One object may be entered many times at once, by tasks and threads and nested, so it is found by the
        context.  Where the context is another one (an exit stack that is closed by another task, a generator
        that is finished by the garbage collector), it is the one entered last.
        """
        entered = self._entered
        span = spans.current_span()
        while span is not None:
            if entered.pop(span.span_id, None) is not None:
                return span
            outer = span.base.get(STAGE_KEY)
            span = outer if type(outer) is Span else None
        return entered.popitem()[1] if entered else None

    async def __aenter__(self) -> Span:
        return self.__enter__()

    async def __aexit__(self, exc_type: object, exc: BaseException | None, tb: object) -> None:
        self.__exit__(exc_type, exc, tb)

    def __repr__(self) -> str:
        return f"<hotspan stage {self.span_name!r}>"


class _Untraced(Stage):
    """A stage under `HOTSPAN_DISABLED=1`: nothing is asked, and a `with` statement costs next to nothing."""

    __slots__ = ()

    # In C, and called with no argument: a function of Python's would cost twice as much.
    __enter__ = itertools.repeat(NOOP_SPAN).__next__

    def __exit__(self, exc_type: object, exc: object, tb: object) -> None:
        """Do nothing: nothing was entered."""


_stage_of: Final[type[Stage]] = _Untraced if config.DISABLED else Stage


class StageFactory(Protocol):
    """What `hotspan.embedding` is: used bare as a decorator, or called with a name and attributes."""

    @overload
    def __call__(self, fn: Callable[P, R], /) -> Callable[P, R]: ...
    @overload
    def __call__(self, name: str | None = None, /, **attributes: Any) -> Stage: ...


class OwnStageFactory(Protocol):
    """What `hotspan.stage` is: the name that is given is the stage."""

    @overload
    def __call__(self, fn: Callable[P, R], /) -> Callable[P, R]: ...
    @overload
    def __call__(self, name: str, /, **attributes: Any) -> Stage: ...


_MAX_KNOWN: Final = 1024  # names of one stage that are not looked at again


def _factory(stage: str, doc: str) -> StageFactory:
    # Hot: `with hotspan.step("plan")` in a loop finds the one object again, since a stage may be entered many
    # times at once.  A closure, since the call of an object costs half as much again.
    known: dict[str | None, Stage] = {}

    def make(name: Any = None, /, **attributes: Any) -> Any:
        if not attributes:
            try:
                return known[name]
            except KeyError:
                pass
            except Exception as exc:
                if is_the_programs(exc):
                    raise
        if name is None or isinstance(name, str):
            made = _stage_of(stage, name, attributes)
            return made if attributes else _remembered(known, name, made)
        return _stage_of(stage, None, attributes)(name)

    _label(make, stage, doc)
    return make


def _own_stage_factory(doc: str) -> OwnStageFactory:
    known: dict[str | None, Stage] = {}

    def make(name: Any, /, **attributes: Any) -> Any:
        if not attributes:
            try:
                return known[name]
            except KeyError:
                pass
            except Exception as exc:
                if is_the_programs(exc):
                    raise
        if callable(name) and not isinstance(name, str):
            return _stage_of(getattr(name, "__name__", type(name).__name__), None, attributes)(name)
        made = _stage_of(name, None, attributes)
        return made if attributes else _remembered(known, name, made)

    _label(make, "stage", doc)
    return make


def _remembered(known: dict[str | None, Stage], name: str | None, made: Stage) -> Stage:
    if len(known) >= _MAX_KNOWN:
        known.clear()
    known[name] = made
    return made


def _label(make: Any, name: str, doc: str) -> None:
    make.__name__ = make.__qualname__ = name
    make.__doc__ = doc


request = _factory(semconv.REQUEST, "One user request: the root of a trace.")
agent = _factory(semconv.AGENT, "One agent run: a loop of model and tool calls.")
step = _factory(semconv.STEP, "One turn of an agent's loop.")
embedding = _factory(semconv.EMBEDDING, "Text to vector.")
retrieval = _factory(semconv.RETRIEVAL, "A query to passages.")
rerank = _factory(semconv.RERANK, "Passages to better ordered passages.")
context_assembly = _factory(semconv.CONTEXT_ASSEMBLY, "Passages to a prompt within a budget.")
generation = _factory(semconv.GENERATION, "One model call; on a generator with token times.")
tool = _factory(semconv.TOOL, "One tool call of an agent.")
stage = _own_stage_factory("Any stage of your own: the name that is given is the stage.")


def current() -> Span:
    """Return the current stage's span; outside of any, one whose methods do nothing."""
    return spans.current_span() or NOOP_SPAN


__all__ = [
    "Stage",
    "StageFactory",
    "agent",
    "context_assembly",
    "current",
    "embedding",
    "generation",
    "request",
    "rerank",
    "retrieval",
    "stage",
    "step",
    "tool",
]
