"""Stages: one object that is a decorator and a context manager, sync and async.

Everything that can be decided is decided at decoration: the span's name, its constant attributes and the kind
of the callable.  At the call there is one span, one context switch and the call itself.
"""

from __future__ import annotations

import functools
import inspect
import types
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from hotspan.tracer import config, semconv
from hotspan.tracer import span as spans
from hotspan.tracer.attributes import snapshot
from hotspan.tracer.context import STAGE_KEY
from hotspan.tracer.errors import ConfigurationError
from hotspan.tracer.span import NOOP_SPAN, Span
from hotspan.tracer.streaming import DEFERRED, adopt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hotspan.tracer.record import Kind

P = ParamSpec("P")
R = TypeVar("R")

_STREAM_FLAGS = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
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

    __slots__ = ("_given", "_name", "attributes", "kind", "span_name", "stage")

    def __init__(self, stage: str, name: str | None, given: Mapping[str, Any]) -> None:
        if not isinstance(stage, str) or not stage:
            msg = f"a stage needs a name, got {stage!r}: write e.g. hotspan.stage('postprocess')"
            raise ConfigurationError(msg)
        self.stage = stage
        self.kind: Kind = "client" if stage == semconv.GENERATION else "internal"
        self._name, self._given = name, given
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
        """Return `fn` traced: same signature, type, docstring, results and exceptions."""
        if isinstance(fn, (staticmethod, classmethod)):
            return type(fn)(self(fn.__func__))  # type: ignore[return-value]  # a descriptor stays one
        if not callable(fn):
            msg = f"hotspan.{self.stage} decorates callables, got {fn!r}; give its name as a string"
            raise ConfigurationError(msg)
        return _decorate(self._named_after(fn), fn)

    def _named_after(self, fn: Callable[..., Any]) -> Stage:
        name = getattr(fn, "__name__", None)
        if self._name is None and name and self.stage in _NAMED_BY_FUNCTION:
            return Stage(self.stage, name, self._given)
        return self

    # --- Context manager -----------------------------------------------------------------------------------

    def __enter__(self) -> Span:
        span = self.start()
        if span is not NOOP_SPAN:
            span.owner = self
            span._token = spans.attach(span)  # noqa: SLF001 - kept where only this entry finds it
        return span

    def __exit__(self, exc_type: object, exc: BaseException | None, tb: object) -> None:
        span = self._entered()
        if span is None:
            return
        if exc is not None:
            span.fail(exc)
        spans.detach(span._token)  # noqa: SLF001 - as in __enter__
        span.end()

    def _entered(self) -> Span | None:
        # One object may be entered many times at once, so the entry is found by the context, not kept here.
        span = spans.current_span()
        while span is not None and (span.owner is not self or span.end_ns):
            outer = span.base.get(STAGE_KEY)
            span = outer if type(outer) is Span else None
        return span

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
            return Stage(self._stage, name, attributes)
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
        return Stage(name, None, attributes)


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


def _decorate(spec: Stage, fn: Callable[..., Any]) -> Any:
    wrapper = _wrap_coroutine(spec, fn) if inspect.iscoroutinefunction(fn) else _wrap(spec, fn)
    functools.update_wrapper(wrapper, fn)
    return wrapper


def _wrap(spec: Stage, fn: Callable[..., Any]) -> Callable[..., Any]:
    # Hot: locals instead of attributes, one try, and no work after the call but the end of the span.
    recording, make_span, attach, detach = config.recording, spans.make_span, spans.attach, spans.detach
    name, attributes, kind = spec.span_name, spec.attributes, spec.kind
    generation = spec.stage == semconv.GENERATION

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not recording():
            return fn(*args, **kwargs)
        span = make_span(name, attributes, kind)
        token = attach(span)
        try:
            result = fn(*args, **kwargs)
        except BaseException as exc:
            span.fail(exc)
            span.end()
            raise
        finally:
            detach(token)
        if type(result) in DEFERRED:
            return adopt(result, span, generation=generation)
        span.end()
        return result

    return _with_flags_of(fn, wrapper)


def _wrap_coroutine(spec: Stage, fn: Callable[..., Any]) -> Callable[..., Any]:
    recording, make_span, attach, detach = config.recording, spans.make_span, spans.attach, spans.detach
    name, attributes, kind = spec.span_name, spec.attributes, spec.kind
    generation = spec.stage == semconv.GENERATION

    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not recording():
            return await fn(*args, **kwargs)
        span = make_span(name, attributes, kind)
        token = attach(span)
        try:
            result = await fn(*args, **kwargs)
        except BaseException as exc:
            span.fail(exc)
            span.end()
            raise
        finally:
            detach(token)
        if type(result) in DEFERRED:
            return adopt(result, span, generation=generation)
        span.end()
        return result

    return wrapper


def _with_flags_of(fn: Callable[..., Any], wrapper: Callable[..., Any]) -> Callable[..., Any]:
    """Return `wrapper` such that `inspect.isgeneratorfunction` and `isasyncgenfunction` answer as for `fn`.

    The flags only label the code object: since Python 3.11 it is an instruction, not a flag, that makes a
    call return a generator.  A wrapper that really were a generator function would run nothing, and so start
    no span, until its first item is asked for.
    """
    code: types.CodeType | None = getattr(fn, "__code__", None)
    flags = code.co_flags & _STREAM_FLAGS if code is not None else 0
    if not flags or not isinstance(wrapper, types.FunctionType):
        return wrapper
    own = wrapper.__code__
    labelled = own.replace(co_flags=own.co_flags | flags)
    return types.FunctionType(labelled, wrapper.__globals__, own.co_name, None, wrapper.__closure__)


def current() -> Span:
    """Return the current stage's span; outside of any, one whose methods do nothing."""
    return spans.current_span() or NOOP_SPAN


def propagate(fn: Callable[P, R]) -> Callable[P, R]:
    """Return `fn` such that it runs below the stage that is current now, in whatever thread it is called.

    OpenTelemetry's context is carried, nothing else; one wrapped callable may run many times at once.

    Example:
        `pool.submit(hotspan.propagate(search), query)`
    """
    context = spans.get_context()

    if inspect.iscoroutinefunction(fn):

        async def run_async(*args: Any, **kwargs: Any) -> Any:
            token = spans.attach(context)
            try:
                return await fn(*args, **kwargs)
            finally:
                spans.detach(token)

        return functools.update_wrapper(run_async, fn)  # type: ignore[return-value]  # the same callable kind

    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        token = spans.attach(context)
        try:
            return fn(*args, **kwargs)
        finally:
            spans.detach(token)

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
