"""Stages: one object that is a decorator and a context manager, sync and async.

The span's name and its constant attributes are made once, with the object; see `decorate.py` for what becomes
of a callable.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from hotspan.tracer import config, semconv
from hotspan.tracer import span as spans
from hotspan.tracer.attributes import snapshot
from hotspan.tracer.context import STAGE_KEY, attach, detach, get_context
from hotspan.tracer.decorate import decorate
from hotspan.tracer.errors import ConfigurationError
from hotspan.tracer.span import NOOP_SPAN, Span

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

    __slots__ = ("_entered", "_given", "_name", "attributes", "kind", "span_name", "stage")

    def __init__(self, stage: str, name: str | None, given: Mapping[str, Any]) -> None:
        if not isinstance(stage, str) or not stage:
            msg = f"a stage needs a name, got {stage!r}: write e.g. hotspan.stage('postprocess')"
            raise ConfigurationError(msg)
        self.stage = stage
        self.kind: Kind = "client" if stage == semconv.GENERATION else "internal"
        self._name, self._given = name, dict(given)
        self._entered: dict[int, Span] = {}  # spans that a `with` statement made current and not yet left
        self.attributes = self._constant_attributes()
        self.span_name = self._span_name()

    def _constant_attributes(self) -> dict[str, Any]:
        attributes: dict[str, Any] = {semconv.STAGE: self.stage}
        if self.stage in semconv.OPERATION_OF_STAGE:
            attributes[semconv.OPERATION] = semconv.OPERATION_OF_STAGE[self.stage]
        if self.stage in semconv.OPENINFERENCE_KIND_OF_STAGE:
            attributes[semconv.OPENINFERENCE_KIND] = semconv.OPENINFERENCE_KIND_OF_STAGE[self.stage]
        if self._name is not None and self.stage in _NAME_KEYS:
            attributes[_NAME_KEYS[self.stage]] = self._name
        attributes.update(snapshot({_CALL_KEYS.get(key, key): value for key, value in self._given.items()}))
        return attributes

    def _span_name(self) -> str:
        operation = semconv.OPERATION_OF_STAGE.get(self.stage, self.stage)
        label = self._name or self.attributes.get(semconv.REQUEST_MODEL)
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
        if self._name is None and name and self.stage in _NAMED_BY_FUNCTION:
            return Stage(self.stage, name, self._given)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Stage, (self.stage, self._name, self._given)

    # --- Context manager -----------------------------------------------------------------------------------

    def __enter__(self) -> Span:
        if not config.recording():
            return NOOP_SPAN
        span = spans.make_span(self.span_name, self.attributes, self.kind)
        self._entered[id(span)] = span
        span.entry = attach(span)
        return span

    def __exit__(self, exc_type: object, exc: BaseException | None, tb: object) -> None:
        span: Any = get_context()
        if self._entered.pop(id(span), None) is None:  # as a rule the innermost span is the one that is left
            span = self._innermost()
            if span is None:
                return
        if exc is not None:
            span.fail(exc)
        token, span.entry = span.entry, None
        detach(token)
        span.end()

    def _innermost(self) -> Span | None:
        """Return the span that the `with` statement which is being left had entered.

        One object may be entered many times at once, by tasks and threads and nested, so it is found by the
        context.  Where the context is another one (an exit stack that is closed by another task, a generator
        that is finished by the garbage collector), it is the one entered last.
        """
        entered = self._entered
        span = spans.current_span()
        while span is not None:
            if entered.pop(id(span), None) is not None:
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


class StageFactory:
    """What `hotspan.embedding` is: used bare as a decorator, or called with a name and attributes."""

    def __init__(self, stage: str, doc: str) -> None:
        self._stage = stage
        self.__doc__ = doc

    @overload
    def __call__(self, fn: Callable[P, R], /) -> Callable[P, R]: ...
    @overload
    def __call__(self, name: str | None = None, /, **attributes: Any) -> Stage: ...

    def __call__(self, name: Any = None, /, **attributes: Any) -> Any:
        """Decorate a callable, or return the stage with this name and these attributes."""
        if name is None or isinstance(name, str):
            return Stage(self._stage, name, attributes) if attributes else _plain_stage(self._stage, name)
        return Stage(self._stage, None, attributes)(name)

    def __repr__(self) -> str:
        return f"<hotspan.{self._stage}>"


class _OwnStage:
    """What `hotspan.stage` is: the name that is given is the stage."""

    @overload
    def __call__(self, fn: Callable[P, R], /) -> Callable[P, R]: ...
    @overload
    def __call__(self, name: str, /, **attributes: Any) -> Stage: ...

    def __call__(self, name: Any, /, **attributes: Any) -> Any:
        """Return the stage of this name, or decorate a callable as a stage of the callable's name."""
        if callable(name) and not isinstance(name, str):
            return Stage(getattr(name, "__name__", type(name).__name__), None, {})(name)
        return (
            Stage(name, None, attributes) if attributes or not isinstance(name, str) else _plain_stage(name)
        )


@functools.lru_cache(maxsize=1024)
def _plain_stage(stage: str, name: str | None = None) -> Stage:
    # `with hotspan.step("plan")` in a loop makes one object: a stage may be entered many times at once.
    return Stage(stage, name, {})


request = StageFactory(semconv.REQUEST, "One user request: the root of a trace.")
agent = StageFactory(semconv.AGENT, "One agent run: a loop of model and tool calls.")
step = StageFactory(semconv.STEP, "One turn of an agent's loop.")
embedding = StageFactory(semconv.EMBEDDING, "Text to vector.")
retrieval = StageFactory(semconv.RETRIEVAL, "A query to passages.")
rerank = StageFactory(semconv.RERANK, "Passages to better ordered passages.")
context_assembly = StageFactory(semconv.CONTEXT_ASSEMBLY, "Passages to a prompt within a budget.")
generation = StageFactory(semconv.GENERATION, "One model call; on a generator with token times.")
tool = StageFactory(semconv.TOOL, "One tool call of an agent.")
stage = _OwnStage()


def current() -> Span:
    """Return the current stage's span; outside of any, one whose methods do nothing."""
    return spans.current_span() or NOOP_SPAN


def propagate(fn: Callable[P, R]) -> Callable[P, R]:
    """Return `fn` such that it runs below the stage that is current now, in whatever thread it is called.

    OpenTelemetry's context is carried, nothing else; one wrapped callable may run many times at once.

    Example:
        `pool.submit(hotspan.propagate(search), query)`
    """
    context = get_context()

    if inspect.iscoroutinefunction(fn):

        async def run_async(*args: Any, **kwargs: Any) -> Any:
            token = attach(context)
            try:
                return await fn(*args, **kwargs)
            finally:
                detach(token)

        return functools.update_wrapper(run_async, fn)  # type: ignore[return-value]  # the same callable kind

    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        token = attach(context)
        try:
            return fn(*args, **kwargs)
        finally:
            detach(token)

    return functools.update_wrapper(run, fn)


__all__ = [
    "Stage",
    "StageFactory",
    "agent",
    "context_assembly",
    "current",
    "embedding",
    "generation",
    "propagate",
    "request",
    "rerank",
    "retrieval",
    "stage",
    "step",
    "tool",
]
