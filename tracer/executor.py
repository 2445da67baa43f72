"""Executors whose calls run below the stage that submitted them; the rest is the standard library's.

    thread    the call runs in the OpenTelemetry context of the place that submitted it
    process   the call is sent with that place's `traceparent`, `tracestate` and baggage, and with where this
              process records to: its spans join the trace and land in the same file

Only OpenTelemetry's context is carried.  It is set and reset around each call, never entered, so that one
callable may run many times at once.
"""

from __future__ import annotations

from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from hotspan.tracer import config
from hotspan.tracer.context import attach, detach, get_context
from hotspan.tracer.faults import broken_call, fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from hotspan.tracer.settings import Settings

P = ParamSpec("P")
R = TypeVar("R")

# Not the application's global propagator: between a process and its child both ends are ours.
_PROPAGATORS: Final = (TraceContextTextMapPropagator(), W3CBaggagePropagator())


class ThreadPoolExecutor(futures.ThreadPoolExecutor):
    """A `concurrent.futures.ThreadPoolExecutor` whose calls run below the stage that submitted them.

    `submit`, `map` and `loop.run_in_executor` carry the current stage; results, exceptions, cancellation,
    initializer and shutdown are the base class's.  The initializer belongs to a thread, not to a stage.
    """

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> futures.Future[R]:
        """Run `fn(*args, **kwargs)` in a thread, below the stage that is current now."""
        return super().submit(_below_current(fn), *args, **kwargs)

    def map(self, fn: Callable[..., R], *iterables: Iterable[Any], **options: Any) -> Iterator[R]:
        """Run `fn` for each item in a thread, below the stage that is current now."""
        return super().map(_below_current(fn), *iterables, **options)


class ProcessPoolExecutor(futures.ProcessPoolExecutor):
    """A `concurrent.futures.ProcessPoolExecutor` whose calls continue the submitting stage's trace.

    The worker records where this process records (file, OTLP, service name, sampling), unless it called
    `hotspan.configure` itself; span processors and a provider are objects of this process and stay here.  It
    delivers what it recorded at the latest when it ends, so a pool that was shut down has written everything.
    What a worker that was killed had not delivered, of the last tenth of a second, is lost uncounted; how
    many calls failed with their process is noted in the parent's file.

    Args:
        max_workers: As for the base class, like all others.
        mp_context: As for the base class.
        initializer: As for the base class; spans of its own are traces of their own.
        initargs: As for the base class.
        **options: As for the base class, e.g. `max_tasks_per_child`.
    """

    def __init__(
        self,
        max_workers: int | None = None,
        mp_context: Any = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        **options: Any,
    ) -> None:
        if callable(initializer):
            initializer = _Remote(initializer, {}, config.for_worker())
        super().__init__(max_workers, mp_context, initializer, initargs, **options)

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> futures.Future[R]:
        """Run `fn(*args, **kwargs)` in a process, below the stage that is current now."""
        future = super().submit(_remote(fn), *args, **kwargs)
        future.add_done_callback(_note_broken)
        return future

    def map(self, fn: Callable[..., R], *iterables: Iterable[Any], **options: Any) -> Iterator[R]:
        """Run `fn` for each item in a process, below the stage that is current now."""
        return super().map(_remote(fn), *iterables, **options)


@dataclass(frozen=True, slots=True)
class _Below:
    """A callable that runs in the context that was current when this was made."""

    fn: Callable[..., Any]
    context: Context

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        token = attach(self.context)
        try:
            return self.fn(*args, **kwargs)
        finally:
            detach(token)


def _below_current(fn: Callable[P, R]) -> Callable[P, R]:
    # `map` may submit late, from wherever its results are consumed (`buffersize`): it has wrapped already.
    return fn if isinstance(fn, _Below) else _Below(fn, get_context())


@dataclass(frozen=True, slots=True)
class _Remote:
    """A callable that can be pickled and continues the trace of the process that made it."""

    fn: Callable[..., Any]
    headers: dict[str, str]
    settings: Settings | None

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if self.settings is not None:
            config.adopt(self.settings)
        # Also without headers: a forked worker was born with the context of the call that made it.
        token = attach(_extract(self.headers))
        try:
            return self.fn(*args, **kwargs)
        finally:
            detach(token)


def _note_broken(future: futures.Future[Any]) -> None:
    if not future.cancelled() and isinstance(future.exception(), BrokenProcessPool):
        broken_call()


def _remote(fn: Callable[P, R]) -> Callable[P, R]:
    return fn if isinstance(fn, _Remote) else _Remote(fn, _inject(), config.for_worker())


def _inject() -> dict[str, str]:
    headers: dict[str, str] = {}
    for propagator in _PROPAGATORS:
        try:
            propagator.inject(headers, get_context())
        except Exception as own:  # noqa: BLE001 - baggage may hold anything; the call is made all the same
            fault(own)
    return headers


def _extract(headers: dict[str, str]) -> Context:
    context = Context()
    for propagator in _PROPAGATORS:
        context = propagator.extract(headers, context)
    return context
